//! Documents as Markdown, for pull requests and summaries of jobs: CommonMark with GitHub's tables.

mod inline;

use units::{printable, printable_lines};

use crate::document::list::{Item, Lead, List};
use crate::document::table::{Cell, Column, Side, Table};
use crate::document::text::Text;
use crate::document::{Content, Document, Importance};
use crate::markdown::inline::{at_begin, fenced, inline, line};
use crate::terminal::chart;
use crate::terminal::table::bar;

/// The width of pictures, which are text.
const WIDTH: usize = 72;

/// The document as Markdown, at full size.
pub fn markdown_text(document: &Document) -> String {
    let mut page = Page::default();
    let contents = chart::with_simple(document.shown(Importance::Full).collect());
    contents.into_iter().for_each(|content| page.content(content));
    page.text
}

/// The blocks so far.
#[derive(Default)]
struct Page {
    text: String,
    /// The list that is the last block, and whether it has the other mark.
    list: Option<(Lead, bool)>,
}

impl Page {
    fn content(&mut self, content: &Content) {
        match content {
            Content::Title(text) => self.block(&format!("# {}", inline(text))),
            Content::Heading(text) => self.heading(&inline(text)),
            Content::Paragraph(text) => self.block(&line(text)),
            Content::List(list) => self.list(list),
            Content::Table(table) => self.table(table),
            Content::Chart(chart) => self.block(&fenced("", &chart::lines(chart, WIDTH))),
            Content::Doubts(doubts) => {
                self.heading("Doubts (reasons not to trust a number)");
                self.items(Lead::Bullet, doubts.iter().map(|doubt| vec![line(doubt)]));
            }
            Content::Verbatim(lines) if lines.is_empty() => {}
            Content::Verbatim(lines) => self.block(&fenced("", &printable_lines(lines))),
            // A page has all of it elsewhere.
            Content::Fitted(_) | Content::Footer(_) => {}
        }
    }

    fn heading(&mut self, title: &str) {
        if !title.is_empty() {
            self.block(&format!("## {title}"));
        }
    }

    /// Adds a block, with an empty line before it.
    fn block(&mut self, block: &str) {
        if block.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(block);
        if !block.ends_with('\n') {
            self.text.push('\n');
        }
        self.list = None;
    }

    /// Adds a list of items, each of blocks.
    fn items(&mut self, lead: Lead, items: impl Iterator<Item = Vec<String>>) {
        // Lists with the same mark would be one.
        let is_other = self.list == Some((lead, false));
        let item = |(at, blocks): (usize, Vec<String>)| {
            let mark = match (lead, is_other) {
                (Lead::Number, false) => format!("{}. ", at + 1),
                (Lead::Number, true) => format!("{}) ", at + 1),
                (_, false) => "- ".to_owned(),
                (_, true) => "* ".to_owned(),
            };
            indented(&mark, &blocks)
        };
        let text: String = items.enumerate().map(item).collect();
        if !text.is_empty() {
            self.block(&text);
            self.list = Some((lead, is_other));
        }
    }

    fn list(&mut self, list: &List) {
        if list.lead != Lead::None {
            self.items(list.lead, list.items.iter().map(item));
            return;
        }
        let is_line = |item: &Item| {
            item.paragraphs.len() == 1
                && item.commands.is_empty()
                && item.verbatim.is_none()
        };
        if list.items.iter().all(is_line) {
            let lines = list.items.iter().flat_map(item).filter(|line| !line.is_empty());
            self.block(&lines.collect::<Vec<_>>().join("\\\n"));
        } else {
            list.items.iter().flat_map(item).for_each(|block| self.block(&block));
        }
    }

    fn table(&mut self, table: &Table) {
        if table.is_terms() {
            let cells = |row: &Vec<Cell>| row.iter().map(cell).collect::<Vec<_>>();
            let items = table.rows.iter().map(|row| vec![term(&cells(row))]);
            self.items(Lead::Bullet, items);
        } else {
            self.block(&rows(table));
        }
        self.block(&line(&table.rest));
        self.block(&line(&table.legend));
    }
}

/// The blocks, with a mark before the first line, and as much space before the others.
fn indented(mark: &str, blocks: &[String]) -> String {
    let space = " ".repeat(mark.len());
    let mut text = String::new();
    let blocks = blocks.iter().filter(|block| !block.is_empty());
    for line in blocks.flat_map(|block| block.lines().chain([""])) {
        let before = if text.is_empty() { mark } else { &space };
        let before = if line.is_empty() { before.trim_end() } else { before };
        text.push_str(&format!("{before}{line}\n"));
    }
    // An empty item, or the empty line between blocks after the last one.
    let end = if text.is_empty() { mark.trim_end() } else { text.trim_end_matches('\n') };
    format!("{end}\n")
}

/// The blocks of an item.
fn item(item: &Item) -> Vec<String> {
    let mut blocks: Vec<String> = item.paragraphs.iter().map(line).collect();
    blocks.extend(item.commands.iter().map(|command| fenced("sh", &printable(command))));
    blocks.extend(item.verbatim.as_ref().map(|line| fenced("", &printable(line))));
    blocks
}

/// A term and its description as an item.
fn term(cells: &[String]) -> String {
    match cells {
        [term, description, ..] if term.is_empty() => at_begin(description.clone()),
        [term, description, ..] if !description.is_empty() => {
            format!("**{term}**: {description}")
        }
        [term, ..] if !term.is_empty() => format!("**{term}**"),
        _ => String::new(),
    }
}

fn rows(table: &Table) -> String {
    if table.columns.is_empty() {
        return String::new();
    }
    let heads = table.columns.iter().map(head).collect();
    let sides = table.columns.iter().map(|column| match column.side {
        Side::Left => ":--".to_owned(),
        Side::Right => "--:".to_owned(),
    });
    let own = table.rows.iter().map(|row| {
        let cells = row.iter().map(cell).chain(std::iter::repeat(String::new()));
        cells.take(table.columns.len()).collect()
    });
    let rows = [heads, sides.collect()].into_iter().chain(own);
    rows.map(|row: Vec<String>| format!("| {} |\n", row.join(" | "))).collect()
}

/// Both headings of a column, in one line.
fn head(column: &Column) -> String {
    inline(&column.heading())
}

/// The cell at full length; a step to the right is an em space.
fn cell(cell: &Cell) -> String {
    let text = match cell.bar {
        Some(part) => Text::from(bar(part)),
        None => cell.text.clone(),
    };
    let deep = Text::from("\u{2003}".repeat(cell.depth));
    inline(&Text::join([deep, text, Text::from(&*cell.tail)], ""))
}

#[cfg(test)]
mod tests;
