//! Doubts for the terminal: they stand last, where the eye rests.

use recording::Doubt;

use crate::paragraph::paragraph;

/// The doubts as a closing section; nothing where there are none.
pub(crate) fn doubts(doubts: &[Doubt]) -> String {
    if doubts.is_empty() {
        return String::new();
    }
    let lines: String =
        doubts.iter().map(|doubt| paragraph("  - ", &doubt.to_string())).collect();
    format!("\nDoubts: reasons to take these numbers with care\n{lines}")
}
