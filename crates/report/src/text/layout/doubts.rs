//! Doubts for the terminal: they stand last, where the eye rests.

use recording::Doubt;
use units::printable;

use crate::text::layout::paragraph::paragraph;

/// The doubts as a closing section; nothing where there are none.
pub fn doubts(doubts: &[Doubt]) -> String {
    section(doubts.iter().map(|doubt| printable(&doubt.to_string()).into_owned()))
}

/// Reasons to doubt as a closing section; nothing where there are none.
pub(crate) fn section(reasons: impl Iterator<Item = String>) -> String {
    let lines: String = reasons.map(|reason| paragraph("  - ", &reason)).collect();
    if lines.is_empty() {
        return lines;
    }
    format!("\nDoubts: reasons to take these numbers with care\n{lines}")
}
