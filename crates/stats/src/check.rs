//! The summary of `check`: ticks while the tool rests, then noise on all CPUs at once.

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
