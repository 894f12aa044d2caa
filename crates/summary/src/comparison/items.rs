//! Recordings that are lists of items, such as wake-ups: a part of the list has a summary, too.

use std::ops::Range;

use recording::Body;
use stats::ItemUnit;
use units::Nanos;

use crate::imported::{ImportedSummary, interval_ns, intervals};
use crate::jitter::JitterSummary;
use crate::latency::LatencySummary;
use crate::summary::Summary;

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
        match body {
            Body::Latency { spec, series } => {
                let wakeups = series.cpus.iter().map(|cpu| cpu.wakeups.len());
                let of = |range| {
                    Summary::Latency(LatencySummary::of_part(spec, series, range))
                };
                Some(Self {
                    unit: ItemUnit::Wakeups,
                    count: wakeups.min().unwrap_or(0),
                    each_ns: None,
                    summarize: Box::new(of),
                })
            }
            Body::Jitter { spec, series } => {
                let of =
                    |range| Summary::Jitter(JitterSummary::of_part(spec, series, range));
                Some(Self {
                    unit: ItemUnit::Tests,
                    count: series.tests.len(),
                    each_ns: None,
                    summarize: Box::new(of),
                })
            }
            Body::Imported { spec, series } => {
                let of = |range: Range<usize>| {
                    Summary::Imported(ImportedSummary::of_part(spec, series, &range))
                };
                Some(Self {
                    unit: ItemUnit::Intervals,
                    count: intervals(series),
                    each_ns: interval_ns(series),
                    summarize: Box::new(of),
                })
            }
            Body::Noise { .. }
            | Body::Check { .. }
            | Body::Ticks { .. }
            | Body::Calls { .. }
            | Body::Run { .. }
            | Body::Wakers { .. }
            | Body::NohzTest { .. }
            | Body::NohzStress { .. }
            | Body::Slices { .. }
            | Body::Guests { .. }
            | Body::Program { .. } => None,
        }
    }
}
