//! Overview of a machine: parameters and measured values.

use serde::{Deserialize, Serialize};
use units::{CpuSet, Nanos};

use crate::{AtScaleSpec, NoiseSeries, TicksSeries};

/// The parameters of `check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSpec {
    /// The CPUs whose noise is measured.
    pub cpus: CpuSet,
    /// The CPUs whose timer interrupts are counted.
    pub rest_cpus: CpuSet,
    /// How long timer interrupts are counted while noisefloor is idle.
    pub idle_ns: Nanos,
    /// How long noise is measured.
    pub noise_ns: Nanos,
    /// The ranks for which the effect of the noise is reported; `None`: the default ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_scale: Option<AtScaleSpec>,
}

/// The measured values of `check`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckSeries {
    /// Timer interrupts while noisefloor was idle.
    pub rest: TicksSeries,
    /// Noise of all CPUs at once.
    pub noise: NoiseSeries,
}
