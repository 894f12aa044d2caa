//! The cost of `slices` in a guest of the lab: instructions of each CPU.

use recording::Counts;
use serde::Serialize;
use units::Instructions;

use crate::cell::counts::CpuWork;
use crate::slices::SlicesSummary;

/// Time slices in a guest, and the instructions of each CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlicesCost {
    /// The results of the guest; in exact mode a nanosecond is an instruction of any CPU.
    #[serde(flatten)]
    pub summary: SlicesSummary,
    /// The instructions of each CPU.
    pub cpus: Vec<CpuWork>,
}

impl SlicesCost {
    /// Each round is a phase.
    pub(crate) fn of(summary: SlicesSummary, counts: &Counts) -> Self {
        let cpus = CpuWork::of(&counts.phases, Some(summary.results.wall_ns));
        Self { cpus, summary }
    }

    /// Instructions of programs and of the kernel, on all CPUs.
    pub fn instructions(&self) -> [Instructions; 2] {
        let kernel = self.cpus.iter().map(|work| work.kernel_instructions);
        let kernel: Instructions = kernel.sum();
        let all = self.cpus.iter().map(|work| work.instructions.get()).sum::<u64>();
        [Instructions::new(all.saturating_sub(kernel.get())), kernel]
    }
}
