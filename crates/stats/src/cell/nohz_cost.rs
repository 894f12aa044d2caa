//! Whether the tick of a guest's CPU stopped, and what was executed until then.

use recording::{Counts, NohzSeries, NohzSpec};
use serde::Serialize;

use crate::NohzTestSummary;
use crate::counts::CpuWork;

/// Whether the tick of a guest's CPU stopped, and what was executed meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NohzCost {
    /// What the guest saw; in exact mode a nanosecond of it is an instruction of any CPU.
    #[serde(flatten)]
    pub test: NohzTestSummary,
    /// What each CPU executed until the tick stopped.
    pub entering: Vec<CpuWork>,
    /// What each CPU executed while the thread stayed on.
    pub staying: Vec<CpuWork>,
}

impl NohzCost {
    /// Each try is a phase, and the stay the last one, where there was one. What was executed is
    /// that of the try whose wait is reported.
    pub(super) fn of(spec: &NohzSpec, series: &NohzSeries, counts: &Counts) -> Self {
        let observed = series.observed.as_ref().map(|observed| observed.span_ns);
        let test = NohzTestSummary::of(spec, series);
        let mut tries = series.tries.iter().zip(&counts.phases).rev();
        let reported = tries.find(|(tried, _)| Some(tried.wait_ns) == test.wait_ns);
        Self {
            entering: CpuWork::of(reported.map(|(_, phase)| phase), None),
            staying: CpuWork::of(counts.phases.get(series.tries.len()), observed),
            test,
        }
    }
}
