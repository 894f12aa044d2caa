//! The CPUs that a table lists if there are many: those that lost most.

use summary::{CpuNoiseSummary, NoiseSummary};

use crate::number;
use crate::text::layout::paragraph::paragraph;

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
pub(crate) fn left_out(summary: &NoiseSummary, shown: &[&CpuNoiseSummary]) -> String {
    let all = summary.by_loss();
    let Some(next) = all.get(shown.len()) else { return String::new() };
    let count = all.len() - shown.len();
    let most = number::known(next.noise_ppm, number::share);
    let text = format!(
        "These CPUs lost most; each of {count} more lost {most} or less (see --json)."
    );
    paragraph("  ", &text)
}
