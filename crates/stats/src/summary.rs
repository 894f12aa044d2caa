//! The summary of a recording, of whatever kind: the one way from what was measured to the
//! numbers that are printed.

use recording::{Body, Recording};
use serde::Serialize;

use crate::{
    CallsSummary, CheckSummary, JitterSummary, LatencySummary, NohzStressSummary,
    NohzTestSummary, NoiseSummary, RunSummary, SlicesSummary, TicksSummary,
    WakersSummary,
};

macro_rules! types {
    ($($(#[$about:meta])* $kind:ident $_name:literal $_spec:ident $_series:ident $summary:ident;)*) => {
        /// The numbers of a recording, by kind of measurement.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum Summary {
            $($(#[$about])* $kind($summary),)*
        }
    };
}
recording::kinds!(types);

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
