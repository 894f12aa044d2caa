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
use crate::document::list::List;
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
    /// Forms of the same, from long to short, of which one screen has the first that fits.
    Fitted(Vec<Document>),
    /// The last line of a screen, below all reports on it.
    Footer(Text),
}

impl Document {
    /// With another part, which is shown always.
    #[expect(clippy::should_implement_trait, reason = "documents are no numbers")]
    #[must_use]
    pub fn add(mut self, part: impl Into<Self>) -> Self {
        self.blocks.extend(part.into().blocks);
        self
    }

    /// With a part that is shown with `--full` only.
    pub(crate) fn add_full(self, part: impl Into<Self>) -> Self {
        self.add(part.into().only(Shown::Full))
    }

    /// With a part that a report with `--full` does not show: other parts say more.
    pub(crate) fn add_screen(self, part: impl Into<Self>) -> Self {
        self.add(part.into().only(Shown::Screen))
    }

    /// With a part of which one screen has a shorter form.
    pub(crate) fn add_or(self, long: impl Into<Self>, short: impl Into<Self>) -> Self {
        self.add(long.into().only(Shown::Long)).add(short.into().only(Shown::Short))
    }

    /// With a paragraph for each text, without a space between them.
    pub(crate) fn lines(self, lines: impl IntoIterator<Item = Text>) -> Self {
        self.add(List::lines(lines))
    }

    /// With each of these parts.
    pub(crate) fn add_all(self, parts: impl IntoIterator<Item: Into<Self>>) -> Self {
        parts.into_iter().fold(self, Self::add)
    }

    /// With the title of the parts that follow.
    pub(crate) fn heading(self, title: impl Into<Text>) -> Self {
        self.add(Content::Heading(title.into()))
    }

    /// A part below a title; nothing if it is empty.
    pub(crate) fn section(title: impl Into<Text>, part: impl Into<Self>) -> Self {
        let part = part.into();
        if part.is_empty() { part } else { Self::default().heading(title).add(part) }
    }

    /// The same document, whose page has this title.
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: Text::from(title.into()), ..self }
    }

    /// With the doubts of a recording, as the last section.
    #[must_use]
    pub fn doubts(self, doubts: &[Doubt]) -> Self {
        self.reasons(doubts.iter().map(|doubt| Text::from(doubt.to_string())))
    }

    /// The same for reasons as text.
    pub(crate) fn reasons(self, reasons: impl IntoIterator<Item = Text>) -> Self {
        self.add(Content::Doubts(reasons.into_iter().collect()))
    }

    /// With another report below a title of its own.
    #[must_use]
    pub fn add_titled(self, title: &str, other: Self) -> Self {
        self.without_footer().add(Content::Title(Text::name(title))).add(other)
    }

    fn without_footer(mut self) -> Self {
        self.blocks.retain(|block| !matches!(block.content, Content::Footer(_)));
        for block in &mut self.blocks {
            if let Content::Fitted(forms) = &mut block.content {
                let all = std::mem::take(forms).into_iter();
                *forms = all.map(Self::without_footer).collect();
            }
        }
        self
    }

    /// With the reasons why files are not part of the report.
    #[must_use]
    pub fn left_out(self, reasons: impl IntoIterator<Item = String>) -> Self {
        self.reasons(reasons.into_iter().map(|why| text!("left out: {}", why)))
    }

    /// All of its blocks that would be shown always.
    fn only(mut self, shown: Shown) -> Self {
        let blocks = self.blocks.iter_mut().filter(|one| one.shown == Shown::Always);
        blocks.for_each(|block| block.shown = shown);
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

impl Content {
    /// Whether there is nothing to show.
    fn is_empty(&self) -> bool {
        match self {
            Self::Title(text)
            | Self::Heading(text)
            | Self::Paragraph(text)
            | Self::Footer(text) => text.is_empty(),
            Self::List(list) => list.items.is_empty(),
            Self::Table(table) => table.is_empty(),
            Self::Chart(_) => false,
            Self::Doubts(reasons) => reasons.is_empty(),
            Self::Verbatim(lines) => lines.is_empty(),
            Self::Fitted(forms) => forms.is_empty(),
        }
    }
}

impl<T: Into<Content>> From<T> for Document {
    /// A document of one block; of none if that is empty.
    fn from(content: T) -> Self {
        let block = Block { shown: Shown::Always, content: content.into() };
        let blocks = std::iter::once(block).filter(|block| !block.content.is_empty());
        Self { blocks: blocks.collect(), ..Self::default() }
    }
}

impl<T: Into<Document>> From<Option<T>> for Document {
    fn from(part: Option<T>) -> Self {
        part.map_or_else(Self::default, Into::into)
    }
}

/// Texts are paragraphs.
macro_rules! paragraphs {
    ($($type:ty),+) => {
        $(impl From<$type> for Content {
            fn from(text: $type) -> Self {
                Self::Paragraph(text.into())
            }
        })+
    };
}
paragraphs!(Text, &str, String);

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
