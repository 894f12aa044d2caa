//! Reports of several recordings: sets of runs and cells compared, settings tried, runs repeated, and
//! the history of a machine. Each has its data, its document and its JSON in one place.

pub(crate) mod boots;
pub(crate) mod cells;
pub(crate) mod compared_sets;
mod differing;
mod doubts;
pub(crate) mod history;
mod quantities;
pub(crate) mod repeated;
mod section;
pub(crate) mod sets;
pub(crate) mod tried;
mod verdict;

use summary::RunSet;

use crate::document::text::{Figure, Text, text};
use crate::number;

/// The letter of a set: A is the base. Sets after Z have numbers.
pub(crate) fn letter(set: usize) -> String {
    let letter = u8::try_from(set).ok().filter(|set| *set < 26);
    letter.map_or_else(
        || format!("({})", set + 1),
        |set| char::from(b'A' + set).to_string(),
    )
}

fn number_of(count: usize) -> Figure {
    number::count(u64::try_from(count).unwrap_or(u64::MAX))
}

/// A number with its noun.
fn counted(count: usize, one: &str, several: &str) -> Text {
    text!("{} {}", number_of(count), if count == 1 { one } else { several })
}

/// So many of the texts, and the number of the others.
fn first(shown: usize, mut texts: Vec<Text>, between: &str) -> Text {
    let left_out = texts.split_off(shown.min(texts.len())).len();
    if left_out > 0 {
        texts.push(text!("{} more", number_of(left_out)));
    }
    Text::join(texts, between)
}

/// The number of runs in words.
fn runs(set: &RunSet) -> Text {
    counted(set.runs(), "run", "runs")
}

/// When the runs of a set were taken, after a comma.
fn taken(set: &RunSet) -> Text {
    match &set.taken {
        Some([first, last]) if first == last => text!(", {}", Text::name(first)),
        Some([first, last]) => {
            text!(", {} to {}", Text::name(first), Text::name(last))
        }
        None => Text::default(),
    }
}
