//! The summary of a recording, of whatever kind: the one way from what was measured to the
//! numbers that are printed.

use recording::{Body, Recording};
use serde::Serialize;

use crate::{
    CallsSummary, CheckSummary, JitterSummary, LatencySummary, NohzStressSummary,
    NohzTestSummary, NoiseSummary, RunSummary, SlicesSummary, TicksSummary,
    WakersSummary,
};

/// What a recording says, by kind of measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Summary {
    /// Time that busy loops lost.
    Noise(NoiseSummary),
    /// Timer interrupts a second.
    Ticks(TicksSummary),
    /// Overview of a machine.
    Check(CheckSummary),
    /// Costs of single requests to the kernel.
    Calls(CallsSummary),
    /// Timer wake-up latency.
    Latency(LatencySummary),
    /// Interruptions of a program.
    Run(RunSummary),
    /// Threads by their wake-ups.
    Wakers(WakersSummary),
    /// Whether the tick stops.
    NohzTest(NohzTestSummary),
    /// How often the tick stops.
    NohzStress(NohzStressSummary),
    /// Variation of a workload's run time.
    Jitter(JitterSummary),
    /// Time slices of CPU-bound tasks.
    Slices(SlicesSummary),
}

impl Summary {
    /// Summarises a recording.
    pub fn of(recording: &Recording) -> Self {
        match &recording.body {
            Body::Noise { series, .. } => Self::Noise(NoiseSummary::of(series)),
            Body::Ticks { series, .. } => Self::Ticks(TicksSummary::of(&series.samples)),
            Body::Check { series, .. } => Self::Check(CheckSummary::of(series)),
            Body::Calls { spec, series } => Self::Calls(CallsSummary::of(spec, series)),
            Body::Latency { spec, series } => {
                Self::Latency(LatencySummary::of(spec, series))
            }
            Body::Run { spec, series } => Self::Run(RunSummary::of(spec, series)),
            Body::Wakers { spec, series } => {
                Self::Wakers(WakersSummary::of(spec.top, series))
            }
            Body::NohzTest { spec, series } => {
                Self::NohzTest(NohzTestSummary::of(spec, series))
            }
            Body::NohzStress { spec, series } => {
                Self::NohzStress(NohzStressSummary::of(spec, series))
            }
            Body::Jitter { spec, series } => {
                Self::Jitter(JitterSummary::of(spec, series))
            }
            Body::Slices { spec, series } => {
                let hz = recording.facts.tick.hz.get().copied();
                Self::Slices(SlicesSummary::of(hz, spec, series))
            }
        }
    }
}
