//! The summary of `check`: ticks while the tool rests, then noise on all CPUs at once.

use recording::CheckSeries;
use serde::{Deserialize, Serialize};

use crate::{NoiseSummary, TicksSummary, Verdict};

/// What `check` found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckSummary {
    /// Ticks while this tool rested.
    pub rest: TicksSummary,
    /// Whether the machine is busy, what its CPUs lost to what, and what that means.
    pub verdict: Verdict,
    /// Noise on all CPUs at once, and what `/proc` counted in the meantime.
    pub noise: NoiseSummary,
}

impl CheckSummary {
    /// Summarises what was seen.
    pub fn of(series: &CheckSeries) -> Self {
        let noise = NoiseSummary::of(&series.noise);
        let verdict = Verdict::of(&noise, &series.noise.cpus);
        Self { rest: TicksSummary::of(&series.rest.samples), verdict, noise }
    }
}
