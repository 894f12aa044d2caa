//! The CPUs that a table lists if there are many: those that lost most.

use stats::{CpuNoiseSummary, NoiseSummary};

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
    by_loss(summary).into_iter().take(worst).collect()
}

/// The CPUs in descending order of loss.
pub(crate) fn by_loss(summary: &NoiseSummary) -> Vec<&CpuNoiseSummary> {
    let mut cpus: Vec<&CpuNoiseSummary> = summary.cpus.iter().collect();
    let loss = |cpu: &CpuNoiseSummary| cpu.noise_ppm.map_or(-1.0, |ppm| ppm.get());
    cpus.sort_by(|a, b| loss(b).total_cmp(&loss(a)).then(a.cpu.cmp(&b.cpu)));
    cpus
}

/// A sentence about the CPUs that are not listed; empty if all are.
pub(crate) fn left_out(summary: &NoiseSummary, shown: &[&CpuNoiseSummary]) -> String {
    let all = by_loss(summary);
    let Some(next) = all.get(shown.len()) else { return String::new() };
    let count = all.len() - shown.len();
    let most = number::known(next.noise_ppm, number::share);
    let text = format!(
        "These CPUs lost most; each of {count} more lost {most} or less (see --json)."
    );
    paragraph("  ", &text)
}
