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
    by_loss(summary).into_iter().take(worst).collect()
}

/// The CPUs, those that lost most first.
pub(crate) fn by_loss(summary: &NoiseSummary) -> Vec<&CpuNoiseSummary> {
    let mut cpus: Vec<&CpuNoiseSummary> = summary.cpus.iter().collect();
    let loss = |cpu: &CpuNoiseSummary| cpu.noise_ppm.map_or(-1.0, |ppm| ppm.get());
    cpus.sort_by(|a, b| loss(b).total_cmp(&loss(a)).then(a.cpu.cmp(&b.cpu)));
    cpus
}

/// What is to be known of the CPUs that are not listed; nothing where all are.
pub(crate) fn left_out(summary: &NoiseSummary, shown: &[&CpuNoiseSummary]) -> String {
    let all = by_loss(summary);
    let Some(next) = all.get(shown.len()) else { return String::new() };
    let count = all.len() - shown.len();
    let most = number::known(next.noise_ppm, number::share);
    let text = format!(
        "These lost most; {count} more CPUs lost {most} or less each (see --json)."
    );
    paragraph("  ", &text)
}
