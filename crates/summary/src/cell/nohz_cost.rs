//! Whether the tick of a guest's CPU stopped, and the instructions until then and after.

use recording::{Counts, NohzSeries, NohzSpec};
use serde::Serialize;

use crate::cell::counts::CpuWork;
use crate::nohz::NohzTestSummary;

/// Whether the tick of a guest's CPU stopped, and the instructions of the test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NohzCost {
    /// The guest's own result; in exact mode its nanoseconds are instructions of any CPU.
    #[serde(flatten)]
    pub test: NohzTestSummary,
    /// The instructions of each CPU until the tick stopped.
    pub entering: Vec<CpuWork>,
    /// The instructions of each CPU while the stopped tick was observed.
    pub observing: Vec<CpuWork>,
}

impl NohzCost {
    /// Each try is a phase, and the observation after them, if any, is the last one. The instructions
    /// are those of the try whose wait is reported.
    pub(super) fn of(spec: &NohzSpec, series: &NohzSeries, counts: &Counts) -> Self {
        let observed = series.observed.as_ref().map(|observed| observed.span_ns);
        let test = NohzTestSummary::of(spec, series);
        let mut tries = series.tries.iter().zip(&counts.phases).rev();
        let reported = tries.find(|(tried, _)| Some(tried.wait_ns) == test.wait_ns);
        Self {
            entering: CpuWork::of(reported.map(|(_, phase)| phase), None),
            observing: CpuWork::of(counts.phases.get(series.tries.len()), observed),
            test,
        }
    }
}
