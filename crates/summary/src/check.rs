//! The summary of `check`: ticks without load by noisefloor, then noise on all CPUs at once.

use recording::{AtScaleSpec, CheckSeries};
use serde::Serialize;

use crate::noise::NoiseSummary;
use crate::noise::verdict::Verdict;
use crate::ticks::TicksSummary;

/// The results of `check`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckSummary {
    /// Ticks while noisefloor slept.
    pub rest: TicksSummary,
    /// Whether the machine is busy, the attribution of lost time, and its consequences.
    pub verdict: Box<Verdict>,
    /// Noise on all CPUs at once.
    pub noise: NoiseSummary,
}

impl CheckSummary {
    /// Summarizes a series, with the effect of its noise on these ranks, or the default ones.
    pub fn of(asked: Option<&AtScaleSpec>, series: &CheckSeries) -> Self {
        let noise = NoiseSummary::with_at_scale(&series.noise, asked);
        let verdict = Box::new(Verdict::of(&noise, &series.noise.cpus));
        Self { rest: TicksSummary::of_series(&series.rest), verdict, noise }
    }
}
