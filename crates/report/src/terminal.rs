//! Documents as text for a terminal of a width: folded lines, and aligned columns.
//!
//! Characters that a terminal interprets or does not show are escaped here, in names and in all else.

pub(crate) mod chart;
pub(crate) mod paragraph;
pub(crate) mod table;
pub(crate) mod width;

use units::{printable, printable_lines};

use crate::document::list::{Item, Lead, List};
use crate::document::{Content, Document, Importance};
use crate::fitting::columns::columns;
use crate::terminal::paragraph::{folded_text, in_one_line, with_lead};
use crate::terminal::width::width;

/// The document as text at full size, for tests.
#[cfg(test)]
pub(crate) fn full_text(document: &Document) -> String {
    terminal_text(document, View::FULL)
}

/// The same on one screen.
#[cfg(test)]
pub(crate) fn screen_text(document: &Document) -> String {
    terminal_text(document, View { size: Importance::Screen, ..View::FULL })
}

/// What a terminal shows of a document.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// The size of the report.
    pub size: Importance,
    /// Whether simple charts are drawn.
    pub has_pictures: bool,
}

impl View {
    /// All text, without charts.
    pub const FULL: Self = Self { size: Importance::Full, has_pictures: false };
}

/// The document as text, as wide as the terminal.
pub fn terminal_text(document: &Document, view: View) -> String {
    let shown: Vec<&Content> = document.shown(view.size).collect();
    let is_chart =
        |content: Option<&&Content>| matches!(content, Some(Content::Chart(_)));
    let mut text = String::new();
    let mut before = None;
    for (at, &content) in shown.iter().enumerate() {
        let is_of_pictures = is_chart(Some(&content))
            || (matches!(content, Content::Heading(_)) && is_chart(shown.get(at + 1)));
        if is_of_pictures && !view.has_pictures {
            continue;
        }
        let block = block(content);
        if !block.is_empty() {
            if !text.is_empty() && !is_attached(before, content) {
                text.push('\n');
            }
            text.push_str(&block);
            before = Some(content);
        }
    }
    text
}

/// Whether a block follows the one before it without a space: the content of a section, below its title.
fn is_attached(before: Option<&Content>, content: &Content) -> bool {
    let has_no_head = match content {
        Content::Table(table) => !table.has_head(),
        Content::List(_) | Content::Verbatim(_) => true,
        Content::Title(_)
        | Content::Heading(_)
        | Content::Paragraph(_)
        | Content::Chart(_)
        | Content::Doubts(_) => false,
    };
    has_no_head && matches!(before, Some(Content::Heading(_)))
}

fn block(content: &Content) -> String {
    match content {
        Content::Title(text) => {
            let line = in_one_line(text);
            format!("{line}\n{}\n", "─".repeat(columns(&line).min(width())))
        }
        Content::Heading(text) | Content::Paragraph(text) => folded_text("", text),
        Content::List(list) => self::list(list),
        Content::Table(table) => table::table(table, width()),
        Content::Doubts(doubts) => {
            let items = doubts.iter().map(|doubt| folded_text("  - ", doubt));
            format!(
                "Doubts (reasons not to trust a number)\n{}",
                items.collect::<String>()
            )
        }
        Content::Chart(chart) => chart::lines(chart, width()),
        Content::Verbatim(lines) => printable_lines(lines).into_owned(),
    }
}

fn list(list: &List) -> String {
    let lead = |at: usize| match list.lead {
        Lead::None => String::new(),
        Lead::Bullet => "  - ".to_owned(),
        Lead::Number => format!("{:>3}. ", at + 1),
    };
    list.items.iter().enumerate().map(|(at, one)| item(&lead(at), one)).collect()
}

fn item(lead: &str, item: &Item) -> String {
    let space = " ".repeat(lead.len());
    let leads = std::iter::once(lead).chain(std::iter::repeat(&*space));
    let texts = item.paragraphs.iter().zip(leads);
    let mut text: String = texts.map(|(text, lead)| folded_text(lead, text)).collect();
    if let Some(command) = &item.command {
        text.push_str(&with_lead(&format!("{space}$ "), &printable(command)));
    }
    if let Some(line) = &item.verbatim {
        text.push_str(&format!("{space}{}\n", printable(line)));
    }
    text
}
