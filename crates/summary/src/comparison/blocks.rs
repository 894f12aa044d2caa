//! The blocks of one run, where two sets are one run each.
//!
//! A run is divided into equal blocks, and each block is observed as if it was a run. Blocks are
//! powers of two long, so that two runs have blocks of the same length: the longest gap of a second
//! is longer than that of a millisecond. What differs between runs only (where memory lies, what
//! else the machine does that hour) is in no block.

use recording::{Blamed, CpuNoise, NoiseSeries, Recording};
use stats::{Block, BlockUnit};
use units::{Cpu, Nanos, Span};

use crate::comparison::observation::{Observation, culprits};
use crate::metrics::read::gaps;
use crate::metrics::table::GapNumbers;
use crate::noise::NoiseSummary;
use crate::noise::culprits::GapTotal;
use crate::noise::over_time::common;
use crate::summary::Items;

/// With fewer blocks, their dependence cannot be estimated.
const BLOCKS_MIN: u64 = 16;
/// So many lengths are tried: the longest has 16 to 31 blocks, and the shortest up to 255.
const LENGTHS: u32 = 4;

/// A run in blocks of one length.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    pub(crate) block: Block,
    /// The duration of an item, of items that last differently long in other runs.
    pub(crate) item_ns: Option<Nanos>,
    pub(crate) blocks: Vec<Observation>,
}

/// Durations of items are the same if the longer one is longer by at most this share: intervals of a log
/// are never exactly as long as they should be.
const ROUNDING: f64 = 0.1;

impl Level {
    /// Whether its blocks are as long as those of another run: the longest gap of ten intervals of a
    /// minute is longer than that of ten seconds.
    pub(crate) fn is_as_long_as(&self, other: &Self) -> bool {
        let is_same = match (self.item_ns, other.item_ns) {
            (Some(one), Some(other)) => is_about(one, other),
            (one, other) => one == other,
        };
        self.block == other.block && is_same
    }
}

fn is_about(one: Nanos, other: Nanos) -> bool {
    let [shorter, longer] = [one.min(other), one.max(other)].map(|it| it.get() as f64);
    longer <= shorter * (1.0 + ROUNDING)
}

/// A run in blocks of several lengths, the shortest first; empty for a kind without a series in time.
pub(crate) fn levels(recording: &Recording) -> Vec<Level> {
    match (recording.body.noise(), Items::of(&recording.body)) {
        (Some(series), _) => noise(series),
        (None, Some(all)) => items(&all),
        (None, None) => Vec::new(),
    }
}

/// Blocks of each length that a run of `total` can be divided into.
fn divided(
    total: u64,
    unit: BlockUnit,
    blocks: impl Fn(u64, u64) -> Vec<Observation>,
) -> Vec<Level> {
    let Some(longest) = (total / BLOCKS_MIN).checked_ilog2() else { return Vec::new() };
    let shortest = longest.saturating_sub(LENGTHS - 1);
    let level = |power: u32| {
        let length = 1 << power;
        let block = Block { length, unit };
        Level { block, item_ns: None, blocks: blocks(length, total / length) }
    };
    (shortest..=longest).map(level).collect()
}

/// Blocks of items; what is left at the end is in none.
fn items(all: &Items<'_>) -> Vec<Level> {
    let blocks = |length: u64, count: u64| {
        let at = |index: u64| usize::try_from(index * length).unwrap_or(usize::MAX);
        let block = |index| (all.summarize)(at(index)..at(index + 1));
        (0..count).map(|index| Observation::of_summary(&block(index))).collect()
    };
    let levels = divided(all.count as u64, BlockUnit::Items(all.unit), blocks);
    let timed = |level| Level { item_ns: all.each_ns, ..level };
    levels.into_iter().map(timed).collect()
}

/// Blocks of the time in which the gaps of all CPUs were stored. A gap belongs to the block in which it
/// starts; its time to those in which it was.
pub(crate) fn noise(series: &NoiseSeries) -> Vec<Level> {
    let total =
        series.cpus.iter().map(recording::CpuNoise::window).min().unwrap_or(Nanos::ZERO);
    let is_traced = NoiseSummary::is_source(series.source);
    let block = |index: u64, length: u64| {
        let [start, length] = [index * length, length].map(Nanos::from_nanos);
        let block = Span { start, length };
        let parts = series.cpus.iter().map(|cpu| CpuPart::of(cpu, block));
        let parts: Vec<CpuPart<'_>> = parts.collect();
        let shares = || parts.iter().filter_map(|part| part.blamed);
        let time = length.saturating_mul(parts.len() as u64);
        let culprits = is_traced.then(|| culprits(shares(), Nanos::ZERO, time));
        let numbers = parts.iter().map(|part| (part.cpu, part.numbers(length)));
        Observation::new(gaps(numbers), culprits)
    };
    let blocks = |length, count| (0..count).map(|index| block(index, length)).collect();
    divided(total.get(), BlockUnit::Ns, blocks)
}

/// The gaps of a CPU in a block, and their shares.
struct CpuPart<'a> {
    cpu: Cpu,
    gaps: &'a [Span],
    /// The time of gaps in the block, also of one that began before.
    noise: Nanos,
    blamed: Option<(&'a Blamed, &'a [recording::Share])>,
}

impl<'a> CpuPart<'a> {
    /// Gaps and shares are in the order of time.
    fn of(cpu: &'a CpuNoise, block: Span) -> Self {
        let at = |time| cpu.gaps.partition_point(|gap| gap.start < time);
        let [from, to] = [block.start, block.end()].map(at);
        let inside = cpu.gaps[from.saturating_sub(1)..to].iter();
        let shares = |blamed: &'a Blamed| {
            let at = |gap| blamed.shares.partition_point(|share| share.gap < gap);
            (blamed, &blamed.shares[at(from)..at(to)])
        };
        Self {
            cpu: cpu.cpu,
            gaps: &cpu.gaps[from..to],
            noise: inside.map(|gap| common(*gap, block)).sum(),
            blamed: cpu.blamed.as_ref().map(shares),
        }
    }

    fn numbers(&self, elapsed: Nanos) -> GapNumbers {
        let max = self.gaps.iter().map(|gap| gap.length).max().unwrap_or(Nanos::ZERO);
        let total = GapTotal { gaps: self.gaps.len() as u64, ns: self.noise, max };
        GapNumbers::of(elapsed, total, self.gaps)
    }
}

#[cfg(test)]
mod tests {
    use recording::{
        Bin, BinnedInterval, CulpritKind, ImportedLengths, ImportedSeries, ImportedSpec,
        LengthKind, Source,
    };
    use stats::ItemUnit;
    use units::Ppm;

    use super::*;
    use crate::comparison::compare;
    use crate::comparison::run_set::RunSet;
    use crate::example::{blamed, cpu_noise, noise as series, share};

    /// Gaps every 10 ms, each twice as long in the second half of the run.
    fn gaps() -> Vec<Span> {
        let gap = |n: u64| Span {
            start: Nanos::from_millis(10 * n),
            length: Nanos::from_micros(if n < 50 { 10 } else { 20 }),
        };
        (0..100).map(gap).collect()
    }

    fn values(level: &Level, key: &str) -> Vec<f64> {
        let metrics = level.blocks.iter().flat_map(|block| &block.metrics);
        let own = metrics.filter(|one| one.metric == key);
        own.map(|one| one.value).collect()
    }

    /// Check that blocks are powers of two long, and that a run has from 16 of them on.
    #[test]
    fn lengths() {
        let levels = noise(&series(None, vec![cpu_noise(&gaps())]));
        let lengths: Vec<u64> = levels.iter().map(|level| level.block.length).collect();
        assert_eq!(lengths, [1 << 22, 1 << 23, 1 << 24, 1 << 25]);
        let counts: Vec<usize> = levels.iter().map(|level| level.blocks.len()).collect();
        assert_eq!(counts, [238, 119, 59, 29]);
        assert_eq!(divided(15, BlockUnit::Items(ItemUnit::Tests), |_, _| Vec::new()), []);
        assert_eq!(
            divided(16, BlockUnit::Items(ItemUnit::Tests), |_, _| Vec::new()).len(),
            1
        );
    }

    /// Check that each gap is in one block, and that a block without gaps has no median.
    #[test]
    fn all_gaps() {
        let levels = noise(&series(None, vec![cpu_noise(&gaps())]));
        for level in &levels {
            let seconds = level.block.length as f64 / 1e9;
            let all: f64 = values(level, "gaps_hz").iter().map(|hz| hz * seconds).sum();
            let covered = level.block.length * level.blocks.len() as u64;
            let expected = covered.div_ceil(10_000_000) as f64;
            assert!((all - expected).abs() < 1e-6, "{all} {expected}");
        }
        assert!(values(&levels[0], "gap_ns_p50").len() < levels[0].blocks.len());
        let medians = values(&levels[3], "gap_ns_p50");
        assert_eq!([medians[0], medians[28]], [1e4, 2e4]);
    }

    /// Check that blocks of items have all of them, and the keys of the contract.
    #[test]
    fn blocks_of_items() {
        let text = include_str!("../../../recording/tests/golden/latency-1.json");
        let recording = Recording::from_json(text, "latency".as_ref()).unwrap();
        let Some(all) = Items::of(&recording.body) else { panic!() };
        let levels = levels(&recording);
        let longest = levels.last().unwrap();
        assert_eq!(longest.blocks.len() as u64, all.count as u64 / longest.block.length);
        let block = serde_json::to_value(longest.block).unwrap();
        let length = longest.block.length;
        assert_eq!(block, serde_json::json!({"length": length, "unit": "wakeups"}));
        assert!(longest.blocks.iter().all(|block| !block.metrics.is_empty()));
    }

    /// A log of 32 intervals of so many milliseconds, of which the last is shorter.
    fn log(interval_ms: u64) -> recording::Body {
        let interval = |n: u64| BinnedInterval {
            start_ns: Nanos::from_millis(n * interval_ms),
            length_ns: Nanos::from_millis(if n < 31 { interval_ms } else { 1 }),
            bins: vec![Bin {
                from_ns: Nanos::from_nanos(n % 3),
                until_ns: Nanos::from_nanos(n % 3 + 1),
                count: 1,
            }],
        };
        let lengths = ImportedLengths {
            intervals: (0..32).map(interval).collect(),
            ..ImportedLengths::new(LengthKind::WakeupLatency, None)
        };
        let spec = ImportedSpec {
            measured_by: "jHiccup".to_owned(),
            cpus: units::CpuSet::default(),
            threshold_ns: None,
            resolution_ns: None,
        };
        let series = ImportedSeries { command: None, lengths: vec![lengths] };
        recording::Body::Imported { spec, series }
    }

    /// Check that logs have common blocks only if their intervals last equally long, but for a tenth: a
    /// block of two intervals of a minute is not one of two seconds.
    #[test]
    fn intervals_of_logs() {
        let set = |interval_ms| {
            let body = log(interval_ms);
            let all = Items::of(&body).unwrap();
            let whole = (all.summarize)(0..32);
            RunSet {
                observations: vec![Observation::of_summary(&whole)],
                levels: items(&all),
                ..RunSet::default()
            }
        };
        let blocks = |a, b| {
            let compared = compare(&set(a), &[set(b)], Ppm::new(1e5));
            let one = &compared[0].metrics[0];
            (one.block.map(|block| block.length), one.values)
        };
        // The longest blocks are 16 of two of the 32 intervals. Without blocks, a log is one value.
        assert_eq!(blocks(1_000, 1_000), (Some(2), [16; 2]));
        assert_eq!(blocks(1_000, 1_004), (Some(2), [16; 2]));
        assert_eq!(blocks(1_000, 60_000), (None, [1; 2]));
        assert_eq!(blocks(200, 100), (None, [1; 2]));
    }

    /// Check that the time of a gap is in the blocks in which it was.
    #[test]
    fn long_gaps() {
        let block = 1 << 22;
        let gap = |start, length| Span {
            start: Nanos::from_nanos(start),
            length: Nanos::from_nanos(length),
        };
        let gaps = [gap(block / 2, 2 * block), gap(3 * block, block / 4)];
        let levels = noise(&series(None, vec![cpu_noise(&gaps)]));
        let found = &values(&levels[0], "noise_ppm")[..5];
        assert_eq!(found, [5e5, 1e6, 5e5, 2.5e5, 0.0]);
    }

    /// Check that shares are in the blocks of their gaps.
    #[test]
    fn shares_of_blocks() {
        let mut cpu = cpu_noise(&gaps());
        let share = |(n, gap): (usize, &Span)| {
            let name = if n < 50 { "kworker/3:1-events" } else { "kworker/3:0" };
            share(n, CulpritKind::Thread, name, None, gap.length.get())
        };
        cpu.blamed =
            Some(blamed(&gaps().iter().enumerate().map(share).collect::<Vec<_>>()));
        let levels = noise(&series(Some(Source::Bpf), vec![cpu]));
        for level in &levels {
            let sum = |block: &Observation| -> f64 {
                block.culprits.iter().flatten().map(|one| one.ppm.get()).sum()
            };
            let found: Vec<f64> = level.blocks.iter().map(sum).collect();
            let noise = values(level, "noise_ppm");
            assert!(found.iter().zip(noise).all(|(a, b)| (a - b).abs() < 1e-9));
            let names =
                level.blocks.iter().flat_map(|block| block.culprits.iter().flatten());
            let expected = (CulpritKind::Thread, "kworker/3");
            assert!(names.into_iter().all(|one| one.key() == expected));
        }
    }
}
