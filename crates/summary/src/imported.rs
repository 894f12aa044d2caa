//! The summary of lengths that another tool measured.
//!
//! Lengths that were counted in bins of one width are rounded down, as by the tools that have such
//! bins. In the bins of a log, which are the wider the longer their lengths are, a quantile is the
//! longest length of its bin, as in HdrHistogram. A quantile beyond the last bin is unknown.

use std::ops::Range;

use recording::{
    Bin, BinnedInterval, ImportedLengths, ImportedSeries, ImportedSpec, LengthKind,
};
use serde::Serialize;
use stats::{Distribution, Latencies, mean, rank};
use units::{Cpu, Nanos, PerSecond, Ppm};

/// Lengths that another tool measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImportedSummary {
    /// The tool and its version.
    pub measured_by: String,
    /// The lengths, by CPU and kind.
    pub lengths: Vec<LengthsSummary>,
}

/// Lengths of one kind on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LengthsSummary {
    /// What they are.
    pub kind: LengthKind,
    /// The CPU; null if it is unknown.
    pub cpu: Option<Cpu>,
    /// The tag that a log has for them; null without one.
    pub tag: Option<String>,
    /// The time in which they were measured; null if it is unknown.
    pub elapsed_ns: Option<Nanos>,
    /// Their number; null if it is unknown.
    pub count: Option<u64>,
    /// How many of them are longer than the last bin.
    pub beyond: u64,
    /// Gaps per second; null of other lengths.
    pub gaps_hz: Option<PerSecond>,
    /// The sum of gaps as a share of the time; null of other lengths.
    pub noise_ppm: Option<Ppm>,
    /// The lengths.
    pub ns: Distribution<Latencies>,
}

impl ImportedSummary {
    /// Summarizes a file of another tool.
    pub fn of(spec: &ImportedSpec, series: &ImportedSeries) -> Self {
        Self {
            measured_by: spec.measured_by.clone(),
            lengths: summaries(spec, series.lengths.iter()),
        }
    }

    /// Summarizes some intervals of a log.
    pub(crate) fn of_part(
        spec: &ImportedSpec,
        series: &ImportedSeries,
        intervals: &Range<usize>,
    ) -> Self {
        let part = |one: &ImportedLengths| ImportedLengths {
            tag: one.tag.clone(),
            intervals: one.intervals.get(intervals.clone()).unwrap_or_default().to_vec(),
            ..ImportedLengths::new(one.kind, one.cpu)
        };
        let parts: Vec<ImportedLengths> = series.lengths.iter().map(part).collect();
        let lengths = summaries(spec, parts.iter());
        Self { measured_by: spec.measured_by.clone(), lengths }
    }
}

fn summaries<'a>(
    spec: &ImportedSpec,
    lengths: impl Iterator<Item = &'a ImportedLengths>,
) -> Vec<LengthsSummary> {
    let rounding = Rounding::of(spec);
    lengths.map(|one| LengthsSummary::of(one, rounding)).collect()
}

/// Which length stands for those of a bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// The shortest.
    Down,
    /// The longest.
    Up,
}

impl Rounding {
    pub(crate) fn of(spec: &ImportedSpec) -> Self {
        if spec.resolution_ns.is_some() { Self::Down } else { Self::Up }
    }

    pub(crate) fn length(self, bin: Bin) -> Nanos {
        match self {
            Self::Down => bin.from_ns,
            Self::Up => longest(bin),
        }
    }
}

/// The number of intervals that all lengths of a log have.
pub(crate) fn intervals(series: &ImportedSeries) -> usize {
    series.lengths.iter().map(|one| one.intervals.len()).min().unwrap_or(0)
}

/// The usual duration of an interval of a log: the median, because the last one may be cut short.
pub(crate) fn interval_ns(series: &ImportedSeries) -> Option<Nanos> {
    let all = series.lengths.iter().flat_map(|one| &one.intervals);
    let mut lengths: Vec<Nanos> = all.map(|one| one.length_ns).collect();
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).copied()
}

impl LengthsSummary {
    fn of(input: &ImportedLengths, rounding: Rounding) -> Self {
        let bins = bins(input);
        let binned = Bin::total(&bins);
        let count = input.count.or((!bins.is_empty()).then_some(binned));
        let of_intervals = input.intervals.iter().map(|one| one.length_ns).sum();
        let elapsed_ns =
            input.elapsed_ns.or((!input.intervals.is_empty()).then_some(of_intervals));
        let is_gap = input.kind == LengthKind::Gap;
        let per_time = elapsed_ns.filter(|_| is_gap);
        let sum = input.sum_ns.map(|sum| u128::from(sum.get()));
        let sum = sum.or_else(|| (count == Some(binned)).then(|| middles(&bins)));
        let mean = sum.zip(count).and_then(|(sum, count)| mean(sum, count));
        let noise_ns = sum.and_then(|sum| u64::try_from(sum).ok()).map(Nanos::from_nanos);
        let beyond = match bins.is_empty() {
            true => 0,
            false => count.unwrap_or(binned).saturating_sub(binned),
        };
        Self {
            kind: input.kind,
            cpu: input.cpu,
            tag: input.tag.clone(),
            elapsed_ns,
            count,
            beyond,
            gaps_hz: count.zip(per_time).and_then(|(n, time)| PerSecond::of(n, time)),
            noise_ppm: noise_ns.zip(per_time).and_then(|(sum, time)| Ppm::of(sum, time)),
            ns: Distribution {
                mean: mean.map(Nanos::from_nanos),
                ..distribution(input, &bins, count, rounding)
            },
        }
    }
}

/// All bins in rising order.
fn bins(input: &ImportedLengths) -> Vec<Bin> {
    let of_intervals = input.intervals.iter().flat_map(|one: &BinnedInterval| &one.bins);
    Bin::merged(input.bins.iter().chain(of_intervals))
}

/// All but the mean.
fn distribution(
    input: &ImportedLengths,
    bins: &[Bin],
    count: Option<u64>,
    rounding: Rounding,
) -> Distribution<Latencies> {
    let least = input.min_ns.unwrap_or(Nanos::ZERO);
    let quantile = |millionths: u32| {
        let known = input.quantiles.iter().find(|(share, _)| *share == millionths);
        let known = known.map(|(_, length)| *length);
        let length = || in_bins(bins, count?, millionths, rounding);
        known.or_else(|| length().map(|length| length.max(least)))
    };
    Distribution {
        min: input.min_ns.or(bins.first().map(|bin| bin.from_ns)),
        max: input.max_ns.or(bins.last().map(|bin| rounding.length(*bin))),
        ..Distribution::new(|key| quantile(key.millionths()?))
    }
}

fn longest(bin: Bin) -> Nanos {
    bin.until_ns.saturating_sub(Nanos::from_nanos(1)).max(bin.from_ns)
}

/// The length of the bin with that quantile; `None` if it is beyond the last one.
fn in_bins(
    bins: &[Bin],
    count: u64,
    millionths: u32,
    rounding: Rounding,
) -> Option<Nanos> {
    let rank = rank(count.into(), millionths);
    let mut below = 0;
    let reaches = |bin: &&Bin| {
        below += u128::from(bin.count);
        below >= rank
    };
    bins.iter().find(reaches).map(|bin| rounding.length(*bin))
}

/// The sum of lengths of which each is the middle of its bin.
fn middles(bins: &[Bin]) -> u128 {
    let twice = |bin: &Bin| {
        let ends = u128::from(bin.from_ns.get()) + u128::from(longest(*bin).get());
        ends.saturating_mul(u128::from(bin.count))
    };
    bins.iter().map(twice).fold(0, u128::saturating_add) / 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stats::DistributionKey;

    use super::*;

    fn ns(length: u64) -> Nanos {
        Nanos::from_nanos(length)
    }

    fn bin(from: u64, until: u64, count: u64) -> Bin {
        Bin { from_ns: ns(from), until_ns: ns(until), count }
    }

    /// Check that a quantile is an end of its bin, and unknown beyond the last one.
    #[test]
    fn quantiles_of_bins() {
        let input = ImportedLengths {
            bins: vec![bin(0, 10, 50), bin(10, 20, 49)],
            count: Some(100),
            max_ns: Some(ns(70)),
            ..ImportedLengths::new(LengthKind::WakeupLatency, None)
        };
        let down = LengthsSummary::of(&input, Rounding::Down).ns;
        assert_eq!((down.p50, down.p99), (Some(ns(0)), Some(ns(10))));
        let found = LengthsSummary::of(&input, Rounding::Up);
        assert_eq!((found.ns.p50, found.ns.p99), (Some(ns(9)), Some(ns(19))));
        assert_eq!((found.ns.p99_9, found.ns.max), (None, Some(ns(70))));
        assert_eq!((found.beyond, found.count, found.noise_ppm), (1, Some(100), None));
        assert_eq!(found.ns.mean, None);
    }

    /// Check that the quantiles of a tool, and its sum, are not computed again.
    #[test]
    fn statistics_of_the_tool() {
        let input = ImportedLengths {
            elapsed_ns: Some(Nanos::from_secs(2)),
            count: Some(4),
            sum_ns: Some(ns(2_000)),
            quantiles: vec![(500_000, ns(300)), (990_000, ns(900))],
            ..ImportedLengths::new(LengthKind::Gap, Some(Cpu::new(1)))
        };
        let found = LengthsSummary::of(&input, Rounding::Up);
        let of = found.ns;
        assert_eq!([of.mean, of.p50, of.p99], [500, 300, 900].map(|it| Some(ns(it))));
        assert_eq!((of.p99_9, of.max, found.beyond), (None, None, 0));
        assert_eq!(found.gaps_hz.unwrap().get(), 2.0);
        assert_eq!(found.noise_ppm.unwrap().get(), 1.0);
    }

    proptest! {
        /// Check that the intervals of a log, put together, have the quantiles of the values, but for the
        /// width of a bin, and that parts add up.
        #[test]
        fn intervals_add_up(values in proptest::collection::vec(0_u64..500, 1..200)) {
            let interval = |values: &[u64]| {
                let bins = values.iter().map(|value| bin(value / 8 * 8, value / 8 * 8 + 8, 1));
                BinnedInterval { start_ns: ns(0), length_ns: ns(1), bins: bins.collect() }
            };
            let input = ImportedLengths {
                intervals: values.chunks(7).map(interval).collect(),
                ..ImportedLengths::new(LengthKind::Value, None)
            };
            let found = LengthsSummary::of(&input, Rounding::Up);
            prop_assert_eq!(found.count, Some(values.len() as u64));
            let exact = Distribution::<Latencies>::of(values.iter().map(|it| ns(*it)));
            for (key, exact) in [
                (DistributionKey::P50, exact.p50),
                (DistributionKey::P99, exact.p99),
                (DistributionKey::P99_9, exact.p99_9),
            ] {
                let millionths = key.millionths().unwrap();
                let found = in_bins(
                    &bins(&input),
                    values.len() as u64,
                    millionths,
                    Rounding::Up,
                )
                .unwrap();
                prop_assert_eq!(found.get() / 8, exact.unwrap().get() / 8);
            }
        }
    }
}
