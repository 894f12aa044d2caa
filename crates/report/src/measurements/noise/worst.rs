//! The CPUs that a table lists if there are many: those that lost most.

use summary::{CpuNoiseSummary, NoiseSummary};

use crate::document::text::{Text, text};
use crate::number;

/// The CPUs to list: all in ascending order; of more than `all`, the `worst` ones that lost most,
/// in descending order of loss.
pub(crate) fn worst(
    summary: &NoiseSummary,
    all: usize,
    worst: usize,
) -> Vec<&CpuNoiseSummary> {
    if summary.cpus.len() <= all {
        return summary.cpus.iter().collect();
    }
    summary.by_loss().into_iter().take(worst).collect()
}

/// A sentence about the CPUs that are not listed; empty if all are.
pub(crate) fn left_out(summary: &NoiseSummary, shown: usize) -> Text {
    let all = summary.by_loss();
    let Some(next) = all.get(shown) else { return Text::default() };
    text!(
        "These CPUs lost most; each of {} more lost {} or less (see --json).",
        (all.len() - shown).to_string(),
        number::known(next.noise_ppm),
    )
}
