//! The summary of a recording of any kind. Every printed number of a recording is computed here.

use recording::{Body, Recording};
use serde::Serialize;

use crate::calls::CallsSummary;
use crate::check::CheckSummary;
use crate::guests::GuestsSummary;
use crate::imported::ImportedSummary;
use crate::jitter::JitterSummary;
use crate::latency::LatencySummary;
use crate::nohz::{NohzStressSummary, NohzTestSummary};
use crate::noise::NoiseSummary;
use crate::program::ProgramSummary;
use crate::run::RunSummary;
use crate::slices::SlicesSummary;
use crate::ticks::TicksSummary;
use crate::wakers::WakersSummary;

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
    /// The OS noise, of the kinds that measure it on their own CPUs.
    pub fn noise(&self) -> Option<&NoiseSummary> {
        match self {
            Self::Noise(noise) => Some(noise),
            Self::Check(check) => Some(&check.noise),
            Self::Ticks(_)
            | Self::Calls(_)
            | Self::Latency(_)
            | Self::Run(_)
            | Self::Wakers(_)
            | Self::NohzTest(_)
            | Self::NohzStress(_)
            | Self::Jitter(_)
            | Self::Slices(_)
            | Self::Guests(_)
            | Self::Program(_)
            | Self::Imported(_) => None,
        }
    }

    /// Summarizes a recording.
    pub fn of(recording: &Recording) -> Self {
        match &recording.body {
            Body::Noise { series, .. } => Self::Noise(NoiseSummary::of(series)),
            Body::Ticks { series, .. } => Self::Ticks(TicksSummary::of_series(series)),
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
            Body::Guests { spec, series } => {
                Self::Guests(GuestsSummary::of(spec, series))
            }
            Body::Program { spec, series } => {
                Self::Program(ProgramSummary::of(spec, series))
            }
            Body::Imported { spec, series } => {
                Self::Imported(ImportedSummary::of(spec, series))
            }
        }
    }
}
