//! Running text, broken into lines as wide as the terminal, at most 80 columns.

use units::printable;

use crate::document::text::{Mark, Text};
use crate::fitting::columns::columns;
use crate::fitting::lines::wrapped;
use crate::terminal::width::width;

/// Text beside its lead has at least this width.
const LEAST: usize = 10;

/// Stands for a space at which lines are not broken; no printable text has it.
pub(crate) const FIXED: char = '\u{1}';

/// The text in lines; the first starts with `lead`, the others with as many spaces.
pub(crate) fn folded_text(lead: &str, text: &Text) -> String {
    with_lead(lead, &unbroken(text))
}

/// The same for words without marks.
pub(crate) fn with_lead(lead: &str, words: &str) -> String {
    paragraph(lead, words).replace(FIXED, " ")
}

/// The text with fixed spaces in its numbers, and before the numbers of CPUs.
pub(crate) fn unbroken(text: &Text) -> String {
    let mut all = String::new();
    for part in text.parts() {
        match part.mark {
            Mark::Number => all.extend(part.text.chars().map(fixed)),
            Mark::Cpus => {
                if all.ends_with("CPU ") || all.ends_with("CPUs ") {
                    all.pop();
                    all.push(FIXED);
                }
                all.push_str(&part.text);
            }
            Mark::Words | Mark::Name | Mark::Command => {
                all.push_str(&printable(&part.text));
            }
        }
    }
    all
}

fn fixed(c: char) -> char {
    if c == ' ' { FIXED } else { c }
}

/// The words in lines of at most 80 columns, each with its newline. The first
/// starts with `lead`, the others with as many spaces.
fn paragraph(lead: &str, text: &str) -> String {
    let indent = " ".repeat(columns(lead));
    let lines = wrapped(text, width().saturating_sub(columns(lead)).max(LEAST));
    let mut paragraph = String::new();
    for (at, line) in lines.iter().enumerate() {
        let lead = if at == 0 { lead } else { &indent };
        paragraph.push_str(format!("{lead}{line}").trim_end());
        paragraph.push('\n');
    }
    paragraph
}

/// The text in one line.
pub(crate) fn in_one_line(text: &Text) -> String {
    printable(&text.to_string()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that text is broken at spaces and indented to its lead.
    #[test]
    fn indents() {
        let text = paragraph("  1. ", &"word ".repeat(20));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("  1. word") && lines[0].len() <= 80);
        assert!(lines[1].starts_with("     word"));
    }
}
