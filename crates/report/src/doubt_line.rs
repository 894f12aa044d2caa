//! The doubts of a report in one line, where there is no room for all of them.

use recording::Doubt;

/// The gravest doubt in its words, and how many others there are; `None` without doubts.
pub(crate) fn doubt_line(doubts: &[Doubt]) -> Option<String> {
    let gravest = doubts.iter().find(|doubt| doubt.is_grave()).or(doubts.first())?;
    let more = match doubts.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Some(format!("Doubt: {}{more}.", gravest.text))
}
