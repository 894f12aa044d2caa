//! Reports of several recordings: sets of runs and cells compared, settings tried, runs repeated, and
//! the history of a machine. Each has its data, its document and its JSON in one place.

pub(crate) mod boots;
pub(crate) mod cells;
pub(crate) mod differing;
mod doubts;
pub(crate) mod duet;
pub(crate) mod history;
pub(crate) mod main_metric;
mod quantities;
pub(crate) mod repeated;
mod section;
pub(crate) mod sets;
pub(crate) mod tried;
pub(crate) mod verdict;
pub(crate) mod verdicts;

use summary::{Comparison, RunSet};
use units::Ppm;

use crate::document::text::{Text, text};
use crate::number;

/// Sets of runs, and how each but the first differs from the first.
#[derive(Debug, Clone, Copy)]
pub struct ComparedSets<'a> {
    /// The name of each set, as the user wrote it.
    pub names: &'a [String],
    /// The sets, the base first.
    pub sets: &'a [RunSet],
    /// The comparisons of the other sets with the base.
    pub comparisons: &'a [Comparison],
    /// The smallest relative difference of interest.
    pub smallest: Ppm,
}

impl ComparedSets<'_> {
    /// Whether a set has the same runs as the first one.
    pub(crate) fn is_same(&self, other: usize) -> bool {
        self.comparisons[other - 1].is_of_same_runs(&self.sets[0], &self.sets[other])
    }
}

/// The letter of a set: A is the base. Sets after Z have numbers.
pub(crate) fn letter(set: usize) -> String {
    let letter = u8::try_from(set).ok().filter(|set| *set < 26);
    letter.map_or_else(
        || format!("({})", set + 1),
        |set| char::from(b'A' + set).to_string(),
    )
}

/// The number of runs in words.
fn runs(set: &RunSet) -> Text {
    number::counted(set.runs() as u64, "run")
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
