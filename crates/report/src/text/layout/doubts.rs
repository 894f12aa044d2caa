//! Doubts for the terminal: the last section of a report.

use recording::Doubt;
use units::printable;

use crate::text::layout::paragraph::paragraph;

/// The doubts as the last section of a report; empty if there are none.
pub fn doubts(doubts: &[Doubt]) -> String {
    section(doubts.iter().map(|doubt| printable(&doubt.to_string()).into_owned()))
}

/// The same for reasons as text.
pub(crate) fn section(reasons: impl Iterator<Item = String>) -> String {
    let lines: String = reasons.map(|reason| paragraph("  - ", &reason)).collect();
    if lines.is_empty() {
        return lines;
    }
    format!("\nDoubts (reasons not to trust a number)\n{lines}")
}
