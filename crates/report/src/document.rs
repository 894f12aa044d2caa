//! A report as data: headings, paragraphs, lists and tables, in the order in which they are read.
//!
//! A document does not know where it will be shown: lines are folded, columns aligned, and names
//! escaped in the renderers only (`terminal`, `markdown`, `html`). Numbers, names, CPU lists and
//! commands are marked in its [`Text`].

pub(crate) mod chart;
pub(crate) mod list;
pub(crate) mod table;
pub(crate) mod text;

use recording::Doubt;

use crate::document::chart::Chart;
use crate::document::list::{Item, List};
use crate::document::table::Table;
use crate::document::text::{Text, text};

/// The size of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Importance {
    /// One screen.
    Screen,
    /// All of it: with `--full`, and on pages.
    Full,
}

/// A report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// What a page of it is called.
    pub(crate) title: Text,
    pub(crate) blocks: Vec<Block>,
}

/// A part of a report.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Block {
    pub(crate) shown: Shown,
    pub(crate) content: Content,
}

/// Which reports show a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// All.
    Always,
    /// Those with `--full`; pages have it in a fold.
    Full,
    /// One screen, and pages: with `--full`, other blocks say more.
    Screen,
    /// Those with `--full`, and pages: one screen has a shorter block in its place.
    Long,
    /// One screen only.
    Short,
}

/// What a block consists of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// The title of one of several reports.
    Title(Text),
    /// The title of the blocks that follow.
    Heading(Text),
    /// Sentences.
    Paragraph(Text),
    /// Items, or steps with their commands.
    List(List),
    /// A table, with the legend of its columns.
    Table(Table),
    /// A picture, with the numbers in it.
    Chart(Box<Chart>),
    /// Reasons not to trust a number.
    Doubts(Vec<Text>),
    /// Lines that are not folded: paths, and the output of programs.
    Verbatim(String),
}

impl Document {
    fn push(&mut self, shown: Shown, content: impl Into<Content>) {
        self.blocks.push(Block { shown, content: content.into() });
    }

    /// Adds a block that is shown always.
    pub(crate) fn add(&mut self, content: impl Into<Content>) {
        self.push(Shown::Always, content);
    }

    /// The same, of which one screen has a shorter form.
    pub(crate) fn add_or(
        &mut self,
        content: impl Into<Content>,
        short: impl Into<Content>,
    ) {
        self.push(Shown::Long, content);
        self.push(Shown::Short, short);
    }

    /// Adds a block that is shown with `--full` only.
    pub(crate) fn add_full(&mut self, content: impl Into<Content>) {
        self.push(Shown::Full, content);
    }

    /// Adds lines at the end of a screen: what pages have elsewhere.
    pub(crate) fn footer(&mut self, lines: impl IntoIterator<Item = Text>) {
        self.push(Shown::Short, List::lines(lines.into_iter().map(Item::new).collect()));
    }

    /// Adds the title of the blocks that follow.
    pub(crate) fn heading(&mut self, title: impl Into<Text>) {
        self.add(Content::Heading(title.into()));
    }

    /// Adds a paragraph; an empty text adds none.
    pub(crate) fn paragraph(&mut self, text: impl Into<Text>) {
        let text = text.into();
        if !text.is_empty() {
            self.add(Content::Paragraph(text));
        }
    }

    /// Adds a paragraph that is shown with `--full` only.
    pub(crate) fn detail(&mut self, text: impl Into<Text>) {
        let text = text.into();
        if !text.is_empty() {
            self.add_full(Content::Paragraph(text));
        }
    }

    /// Adds a paragraph for each text, without a space between them.
    pub(crate) fn lines(&mut self, lines: impl IntoIterator<Item = Text>) {
        let items: Vec<Item> = lines.into_iter().map(Item::new).collect();
        if !items.is_empty() {
            self.add(List::lines(items));
        }
    }

    /// A block below a title.
    pub(crate) fn section(title: impl Into<Text>, content: impl Into<Content>) -> Self {
        let mut section = Self::default();
        section.heading(title);
        section.add(content);
        section
    }

    /// The same document, whose page has this title.
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = Text::from(title.into());
        self
    }

    /// Adds the doubts of a recording, as the last section.
    pub fn doubts(&mut self, doubts: &[Doubt]) {
        self.reasons(doubts.iter().map(|doubt| Text::from(doubt.to_string())));
    }

    /// The same for reasons as text.
    pub(crate) fn reasons(&mut self, reasons: impl IntoIterator<Item = Text>) {
        let reasons: Vec<Text> = reasons.into_iter().collect();
        if !reasons.is_empty() {
            self.add(Content::Doubts(reasons));
        }
    }

    /// Adds another report below a title of its own.
    pub fn append_titled(&mut self, title: &str, other: Self) {
        self.add(Content::Title(Text::name(title)));
        self.append(other);
    }

    /// Adds the reasons why files are not part of the report.
    pub fn left_out(&mut self, reasons: impl IntoIterator<Item = String>) {
        self.reasons(reasons.into_iter().map(|why| text!("left out: {}", why)));
    }

    /// Adds all blocks of another document.
    pub fn append(&mut self, other: Document) {
        self.blocks.extend(other.blocks);
    }

    /// The same document, all of whose blocks are shown with `--full` only.
    pub(crate) fn only_full(mut self) -> Self {
        self.blocks.iter_mut().for_each(|block| block.shown = Shown::Full);
        self
    }

    /// The same document, which a report with `--full` does not show: other blocks say more.
    pub(crate) fn only_screen(mut self) -> Self {
        self.blocks.iter_mut().for_each(|block| block.shown = Shown::Screen);
        self
    }

    /// The blocks that a report of this size shows.
    pub(crate) fn shown(&self, size: Importance) -> impl Iterator<Item = &Content> {
        let hidden = match size {
            Importance::Screen => [Shown::Full, Shown::Long],
            Importance::Full => [Shown::Screen, Shown::Short],
        };
        let blocks = self.blocks.iter();
        blocks.filter(move |one| !hidden.contains(&one.shown)).map(|one| &one.content)
    }

    /// Whether it has no block.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

impl From<List> for Content {
    fn from(list: List) -> Self {
        Self::List(list)
    }
}

impl From<Chart> for Content {
    fn from(chart: Chart) -> Self {
        Self::Chart(Box::new(chart))
    }
}

impl From<Table> for Content {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

#[cfg(test)]
pub(crate) mod arbitrary;
