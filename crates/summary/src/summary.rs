//! The summary of a recording of any kind, and what a kind has besides: a list of items, and a log.
//! Every printed number of a recording is computed here. A further kind adds its name to each `match`.

use std::ops::Range;

use recording::{Body, LengthKind, Recording};
use serde::Serialize;
use stats::ItemUnit;
use units::Nanos;

use crate::benchmarks::BenchmarksSummary;
use crate::calls::CallsSummary;
use crate::check::CheckSummary;
use crate::guests::GuestsSummary;
use crate::imported::{ImportedSummary, interval_ns, intervals as imported_intervals};
use crate::jitter::JitterSummary;
use crate::latency::LatencySummary;
use crate::length_log;
use crate::length_log::{LengthLog, NoLog};
use crate::nohz::{NohzStressSummary, NohzTestSummary};
use crate::noise::NoiseSummary;
use crate::program::ProgramSummary;
use crate::run::RunSummary;
use crate::scale::ScaleSummary;
use crate::slices::SlicesSummary;
use crate::ticks::TicksSummary;
use crate::top::TopSummary;
use crate::wakers::WakersSummary;
use crate::watch::WatchSummary;

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
        if let Self::Check(check) = self {
            return Some(&check.noise);
        }
        let Self::Noise(noise) = self else { return None };
        Some(noise)
    }

    /// Summarizes a recording.
    pub fn of(recording: &Recording) -> Self {
        match &recording.body {
            Body::Noise { spec, series } => {
                let asked = spec.at_scale.as_ref();
                Self::Noise(NoiseSummary::with_at_scale(series, asked))
            }
            Body::Ticks { series, .. } => Self::Ticks(TicksSummary::of_series(series)),
            Body::Check { spec, series } => {
                Self::Check(CheckSummary::of(spec.at_scale.as_ref(), series))
            }
            Body::Calls { spec, series } => Self::Calls(CallsSummary::of(spec, series)),
            Body::Latency { spec, series } => {
                Self::Latency(LatencySummary::of(spec, series))
            }
            Body::Run { spec, series } => Self::Run(RunSummary::of(spec, series)),
            Body::Wakers { spec, series } => {
                Self::Wakers(WakersSummary::of(spec.top, series))
            }
            Body::Watch { series, .. } => Self::Watch(WatchSummary::of(series)),
            Body::Top { series, .. } => Self::Top(TopSummary::of(series)),
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
            Body::Scale { spec, series } => Self::Scale(ScaleSummary::of(spec, series)),
            Body::Imported { spec, series } => {
                Self::Imported(ImportedSummary::of(spec, series))
            }
            Body::Benchmarks { spec, series } => {
                Self::Benchmarks(BenchmarksSummary::of(spec, series))
            }
        }
    }
}

/// A recording that is a list of items in the order of time.
pub(crate) struct Items<'a> {
    pub(crate) unit: ItemUnit,
    pub(crate) count: usize,
    /// The duration of each, if it depends on the program that wrote them.
    pub(crate) each_ns: Option<Nanos>,
    /// The summary of some of them.
    pub(crate) summarize: Box<dyn Fn(Range<usize>) -> Summary + 'a>,
}

impl<'a> Items<'a> {
    /// The items of a recording; `None` for other kinds.
    pub(crate) fn of(body: &'a Body) -> Option<Self> {
        let items =
            |unit, count, summarize: Box<dyn Fn(Range<usize>) -> Summary + 'a>| Self {
                unit,
                count,
                each_ns: None,
                summarize,
            };
        if let Body::Latency { spec, series } = body {
            let count = series.cpus.iter().map(|cpu| cpu.wakeups.len()).min();
            let of =
                |range| Summary::Latency(LatencySummary::of_part(spec, series, range));
            return Some(items(ItemUnit::Wakeups, count.unwrap_or(0), Box::new(of)));
        }
        if let Body::Jitter { spec, series } = body {
            let of = |range| Summary::Jitter(JitterSummary::of_part(spec, series, range));
            return Some(items(ItemUnit::Tests, series.tests.len(), Box::new(of)));
        }
        let Body::Imported { spec, series } = body else { return None };
        let of =
            |range| Summary::Imported(ImportedSummary::of_part(spec, series, &range));
        let items = items(ItemUnit::Intervals, imported_intervals(series), Box::new(of));
        Some(Self { each_ns: interval_ns(series), ..items })
    }
}

impl LengthLog {
    /// The lengths of a recording, in the intervals of its log, or of one second (longer ones if the
    /// recording has more than a million of them).
    ///
    /// # Errors
    /// It has none, too many, or not all of them.
    pub fn of(recording: &Recording) -> Result<Self, NoLog> {
        let of_noise = |series| (LengthKind::Gap, length_log::noise(series));
        #[expect(clippy::wildcard_enum_match_arm, reason = "other kinds have no lengths")]
        let (kind, intervals) = match &recording.body {
            Body::Noise { series, .. } => of_noise(series),
            Body::Check { series, .. } => of_noise(&series.noise),
            Body::Latency { spec, series } => {
                let intervals = length_log::latency(&series.cpus, spec.interval_ns)?;
                (LengthKind::WakeupLatency, intervals)
            }
            Body::Jitter { spec, series } => {
                (LengthKind::Value, vec![length_log::jitter(spec.cpu, series)])
            }
            Body::Imported { spec, series } => length_log::imported(spec, series)?,
            _ => return Err(NoLog::OtherKind),
        };
        Ok(Self::new(kind, intervals))
    }
}
