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

/// The lines of one screen.
const SCREEN: usize = 24;

/// The document as text at full size, for tests.
#[cfg(test)]
pub(crate) fn full_text(document: &Document) -> String {
    terminal_text(document, View::FULL)
}

/// The same on one screen.
#[cfg(test)]
pub(crate) fn screen_text(document: &Document) -> String {
    terminal_text(document, View::SCREEN)
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
    /// One screen of it.
    const SCREEN: Self = Self { size: Importance::Screen, ..Self::FULL };
}

/// Whole lines of a report, which a terminal may set apart by a colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What they are.
    pub role: Role,
    /// The lines, each with its line feed.
    pub lines: String,
}

/// What lines of a report are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Anything else.
    Plain,
    /// The title of the report or of a section.
    Title,
    /// A command to type.
    Command,
    /// A reason not to trust a number.
    Doubt,
}

/// The document as text, as wide as the terminal.
pub fn terminal_text(document: &Document, view: View) -> String {
    terminal_parts(document, view).into_iter().map(|part| part.lines).collect()
}

/// The same, in parts.
pub fn terminal_parts(document: &Document, view: View) -> Vec<Part> {
    let shown: Vec<&Content> = document.shown(view.size).collect();
    let shown = if view.has_pictures { chart::with_simple(shown) } else { shown };
    let is_chart =
        |content: Option<&&Content>| matches!(content, Some(Content::Chart(_)));
    let mut parts = Vec::new();
    let mut before = None;
    for (at, &content) in shown.iter().enumerate() {
        let is_of_pictures = is_chart(Some(&content))
            || (matches!(content, Content::Heading(_)) && is_chart(shown.get(at + 1)));
        if is_of_pictures && !view.has_pictures {
            continue;
        }
        let block: Vec<Part> =
            block(content).into_iter().filter(|part| !part.lines.is_empty()).collect();
        if !block.is_empty() {
            if !parts.is_empty() && !is_attached(before, content) {
                parts.push(Part::new(Role::Plain, "\n".to_owned()));
            }
            parts.extend(block);
            before = Some(content);
        }
    }
    parts
}

impl Part {
    fn new(role: Role, lines: String) -> Self {
        Self { role, lines }
    }
}

/// Whether a block follows the one before it without a space: the content of a section, below its title,
/// and the last line below others.
fn is_attached(before: Option<&Content>, content: &Content) -> bool {
    if let Content::Footer(_) = content {
        return matches!(before, Some(Content::List(list)) if list.lead == Lead::None);
    }
    let has_no_head = match content {
        Content::Table(table) => !table.has_head(),
        Content::List(_) | Content::Verbatim(_) => true,
        Content::Title(_)
        | Content::Heading(_)
        | Content::Paragraph(_)
        | Content::Chart(_)
        | Content::Doubts(_)
        | Content::Fitted(_)
        | Content::Footer(_) => false,
    };
    has_no_head && matches!(before, Some(Content::Heading(_)))
}

fn block(content: &Content) -> Vec<Part> {
    let plain = |lines| vec![Part::new(Role::Plain, lines)];
    match content {
        Content::Title(text) => {
            let line = in_one_line(text);
            let rule = "─".repeat(columns(&line).min(width()));
            vec![Part::new(Role::Title, line + "\n"), Part::new(Role::Plain, rule + "\n")]
        }
        Content::Heading(text) => vec![Part::new(Role::Title, folded_text("", text))],
        Content::Paragraph(text) | Content::Footer(text) => plain(folded_text("", text)),
        Content::List(list) => self::list(list),
        Content::Table(table) => plain(table::table(table, width())),
        Content::Doubts(doubts) => {
            let items = doubts.iter().map(|doubt| folded_text("  - ", doubt));
            let title = "Doubts (reasons not to trust a number)\n".to_owned();
            vec![Part::new(Role::Doubt, title), Part::new(Role::Plain, items.collect())]
        }
        Content::Chart(chart) => plain(chart::lines(chart, width())),
        Content::Verbatim(lines) => plain(printable_lines(lines).into_owned()),
        Content::Fitted(forms) => fitted(forms),
    }
}

/// The first form that fits on one screen, or else the last one.
fn fitted(forms: &[Document]) -> Vec<Part> {
    let lines = |parts: &[Part]| {
        parts.iter().map(|part| part.lines.lines().count()).sum::<usize>()
    };
    let mut parts = Vec::new();
    for form in forms {
        parts = terminal_parts(form, View::SCREEN);
        if lines(&parts) <= SCREEN {
            break;
        }
    }
    parts
}

fn list(list: &List) -> Vec<Part> {
    let lead = |at: usize| match list.lead {
        Lead::None => String::new(),
        Lead::Bullet => "  - ".to_owned(),
        Lead::Number => format!("{:>3}. ", at + 1),
    };
    list.items.iter().enumerate().flat_map(|(at, one)| item(&lead(at), one)).collect()
}

fn item(lead: &str, item: &Item) -> Vec<Part> {
    let space = " ".repeat(lead.len());
    let leads = std::iter::once(lead).chain(std::iter::repeat(&*space));
    let texts = item.paragraphs.iter().zip(leads);
    let texts = texts.map(|(text, lead)| folded_text(lead, text)).collect();
    let mut parts = vec![Part::new(Role::Plain, texts)];
    for command in &item.commands {
        let line = with_lead(&format!("{space}$ "), &printable(command));
        parts.push(Part::new(Role::Command, line));
    }
    if let Some(line) = &item.verbatim {
        let line = format!("{space}{}\n", printable(line));
        parts.push(Part::new(Role::Plain, line));
    }
    parts
}
