//! Which CPUs a table lists where there are too many: those that lost most.

use stats::{CpuNoiseSummary, NoiseSummary};

use crate::number;
use crate::text::layout::paragraph::paragraph;

/// The CPUs to list: all in rising order, or of more than `all` the `worst` ones, those
/// that lost most first.
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

/// What is to be known of the CPUs that are not listed; nothing where all are.
pub(crate) fn left_out(summary: &NoiseSummary, shown: &[&CpuNoiseSummary]) -> String {
    let all = summary.by_loss();
    let Some(next) = all.get(shown.len()) else { return String::new() };
    let count = all.len() - shown.len();
    let most = number::known(next.noise_ppm, number::share);
    let text = format!(
        "These lost most; {count} more CPUs lost {most} or less each (see --json)."
    );
    paragraph("  ", &text)
}
