//! The lengths of a recording by time and CPU: what a log of HdrHistogram contains.

use recording::{
    Bin, CpuLatency, CpuNoise, ImportedLengths, ImportedSeries, ImportedSpec,
    JitterSeries, LengthKind, NoiseSeries,
};
use units::{Cpu, LengthUnit, Nanos};

use crate::imported::Rounding;

/// The shortest interval, of which longer ones are multiples.
const INTERVAL_MIN: Nanos = Nanos::from_secs(1);
/// The largest number of intervals: a week of a CPU in seconds is less.
const INTERVALS_MAX: u64 = 1_000_000;
/// The largest number of samples, which take 16 bytes each.
const SAMPLES_MAX: u64 = 100_000_000;

/// Why a recording has no log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLog {
    /// Its kind has no lengths.
    OtherKind,
    /// It has more samples than a log is written for: a wake-up can stand for any number of them.
    TooManySamples,
    /// Some of its lengths are in no bin: the log would lack them, and the longest are among them.
    Incomplete,
}

/// The lengths of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LengthLog {
    /// What they are.
    pub kind: LengthKind,
    /// The intervals of all CPUs, in the order of their start.
    pub intervals: Vec<LengthInterval>,
}

/// The lengths of one CPU in a part of the measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LengthInterval {
    /// The CPU, if it is known.
    pub cpu: Option<Cpu>,
    /// A tag, of logs that have one.
    pub tag: Option<String>,
    /// Its beginning, from that of the recording.
    pub start_ns: Nanos,
    /// Its duration.
    pub length_ns: Nanos,
    /// The lengths, and how often each occurred.
    pub lengths: Vec<(Nanos, u64)>,
}

impl LengthLog {
    /// The lengths of intervals in any order.
    pub(crate) fn new(kind: LengthKind, mut intervals: Vec<LengthInterval>) -> Self {
        intervals.sort_by_key(|one| one.start_ns);
        Self { kind, intervals }
    }

    /// The CPU, if all lengths are of the same.
    pub fn only_cpu(&self) -> Option<Cpu> {
        let first = self.intervals.first()?.cpu?;
        self.intervals.iter().all(|one| one.cpu == Some(first)).then_some(first)
    }
}

/// The duration of an interval: a second, or as many as it takes for all CPUs to have few intervals.
fn interval_length(elapsed: impl Iterator<Item = Nanos>) -> Nanos {
    let seconds = elapsed.map(|it| it.get().div_ceil(INTERVAL_MIN.get()));
    let seconds = seconds.fold(0, u64::saturating_add);
    INTERVAL_MIN.saturating_mul(seconds.div_ceil(INTERVALS_MAX).max(1))
}

/// Empty intervals of a CPU, the last of which ends with the measurement.
fn empty_intervals(cpu: Cpu, elapsed: Nanos, length: Nanos) -> Vec<LengthInterval> {
    let count = elapsed.get().div_ceil(length.get());
    let interval = |at: u64| {
        let start_ns = length.saturating_mul(at);
        let length_ns = elapsed.saturating_sub(start_ns).min(length);
        LengthInterval {
            cpu: Some(cpu),
            tag: None,
            start_ns,
            length_ns,
            lengths: Vec::new(),
        }
    };
    (0..count).map(interval).collect()
}

/// Adds a length to the interval of its time, or to the last one.
fn add(intervals: &mut [LengthInterval], at: Nanos, length: Nanos) {
    let Some(each) = intervals.first().map(|first| first.length_ns) else { return };
    let last = intervals.len() - 1;
    let at = usize::try_from(at.get() / each.get()).unwrap_or(last).min(last);
    if let Some(interval) = intervals.get_mut(at) {
        interval.lengths.push((length, 1));
    }
}

pub(crate) fn noise(series: &NoiseSeries) -> Vec<LengthInterval> {
    let length = interval_length(series.cpus.iter().map(CpuNoise::window));
    let of = |cpu: &CpuNoise| {
        let mut intervals = empty_intervals(cpu.cpu, cpu.window(), length);
        cpu.gaps.iter().for_each(|gap| add(&mut intervals, gap.start, gap.length));
        intervals
    };
    series.cpus.iter().flat_map(of).collect()
}

/// # Errors
/// There are too many samples.
pub(crate) fn latency(
    cpus: &[CpuLatency],
    interval: Nanos,
) -> Result<Vec<LengthInterval>, NoLog> {
    let samples = cpus.iter().map(expiries).fold(0, u64::saturating_add);
    if samples > SAMPLES_MAX {
        return Err(NoLog::TooManySamples);
    }
    let elapsed = |cpu| interval.saturating_mul(expiries(cpu));
    let length = interval_length(cpus.iter().map(elapsed));
    let of = |cpu| of_wakeups(cpu, interval, length);
    Ok(cpus.iter().flat_map(of).collect())
}

fn expiries(cpu: &CpuLatency) -> u64 {
    let each = cpu.wakeups.iter().map(|wakeup| wakeup.expiries);
    each.fold(0, u64::saturating_add)
}

/// A sample for each expiry, as in the summary.
fn of_wakeups(cpu: &CpuLatency, interval: Nanos, length: Nanos) -> Vec<LengthInterval> {
    let elapsed = interval.saturating_mul(expiries(cpu));
    let mut intervals = empty_intervals(cpu.cpu, elapsed, length);
    let mut at = Nanos::ZERO;
    for wakeup in &cpu.wakeups {
        for missed in 0..wakeup.expiries {
            let late = wakeup.late_ns.saturating_sub(interval.saturating_mul(missed));
            add(&mut intervals, at, late);
            at = at.saturating_add(interval);
        }
    }
    intervals
}

/// Tests have no times: they are one interval.
pub(crate) fn jitter(cpu: Cpu, series: &JitterSeries) -> LengthInterval {
    let of = |test: &recording::LoopTimes| {
        (Nanos::from_nanos(LengthUnit::Ns.of(test.jitter(), series.clock_hz)), 1)
    };
    let lengths = series.tests.iter().map(of).collect();
    let (start_ns, length_ns) = (Nanos::ZERO, series.elapsed_ns);
    LengthInterval { cpu: Some(cpu), tag: None, start_ns, length_ns, lengths }
}

/// A log has one kind of values: the first.
///
/// # Errors
/// There are no lengths, or some are in no bin.
pub(crate) fn imported(
    spec: &ImportedSpec,
    series: &ImportedSeries,
) -> Result<(LengthKind, Vec<LengthInterval>), NoLog> {
    let kind = series.lengths.first().ok_or(NoLog::OtherKind)?.kind;
    let own = || series.lengths.iter().filter(|one| one.kind == kind);
    if own().any(|one| !is_complete(one)) {
        return Err(NoLog::Incomplete);
    }
    let rounding = Rounding::of(spec);
    Ok((kind, own().flat_map(|one| of_lengths(one, rounding)).collect()))
}

/// Whether all lengths are in bins.
fn is_complete(input: &ImportedLengths) -> bool {
    let of_intervals = input.intervals.iter().flat_map(|one| &one.bins);
    let in_bins = Bin::total(input.bins.iter().chain(of_intervals));
    match input.count {
        Some(count) => count <= in_bins,
        None => !input.bins.is_empty() || !input.intervals.is_empty(),
    }
}

fn of_lengths(input: &ImportedLengths, rounding: Rounding) -> Vec<LengthInterval> {
    let interval = |start_ns, length_ns, bins: &[recording::Bin]| LengthInterval {
        cpu: input.cpu,
        tag: input.tag.clone(),
        start_ns,
        length_ns,
        lengths: bins.iter().map(|bin| (rounding.length(*bin), bin.count)).collect(),
    };
    if input.intervals.is_empty() {
        let elapsed = input.elapsed_ns.unwrap_or(Nanos::ZERO);
        return vec![interval(Nanos::ZERO, elapsed, &input.bins)];
    }
    let of = |one: &recording::BinnedInterval| {
        interval(one.start_ns, one.length_ns, &one.bins)
    };
    input.intervals.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use recording::Recording;

    use super::*;
    use crate::summary::Summary;

    fn read(name: &str) -> Recording {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../recording/tests/golden");
        Recording::load(&Path::new(folder).join(name)).unwrap()
    }

    fn all(log: &LengthLog) -> (u64, Nanos, Nanos) {
        let lengths = || log.intervals.iter().flat_map(|one| &one.lengths);
        let count = lengths().map(|(_, count)| count).sum();
        let sum = lengths().map(|(length, count)| length.saturating_mul(*count)).sum();
        (count, sum, lengths().map(|(length, _)| *length).max().unwrap())
    }

    /// Check that a log has all gaps of the recording, each in its second.
    #[test]
    fn gaps_of_noise() {
        let recording = read("noise-1.json");
        let log = LengthLog::of(&recording).unwrap();
        let Summary::Noise(summary) = Summary::of(&recording) else { panic!() };
        let gaps = summary.cpus.iter().map(|cpu| cpu.gaps).sum::<u64>();
        let noise = summary.cpus.iter().map(|cpu| cpu.noise_ns).sum::<Nanos>();
        let longest = summary.cpus.iter().filter_map(|cpu| cpu.gap_ns.max).max();
        let (count, sum, max) = all(&log);
        assert_eq!((count, sum, Some(max)), (gaps, noise, longest));
        let cpus = summary.cpus.iter().map(|cpu| cpu.cpu);
        assert_eq!(log.only_cpu(), cpus.clone().next().filter(|_| cpus.len() == 1));
        let length: Nanos = log.intervals.iter().map(|one| one.length_ns).sum();
        assert_eq!(length, summary.cpus.iter().map(|cpu| cpu.elapsed_ns).sum());
        assert!(log.intervals.iter().all(|one| one.length_ns <= INTERVAL_MIN));
    }

    /// Check that a log of decades has few intervals, and that its CPUs share them.
    #[test]
    fn intervals_are_few() {
        let week = Nanos::from_secs(7 * 86_400);
        assert_eq!(interval_length([week].into_iter()), INTERVAL_MIN);
        let two = interval_length([week; 2].into_iter());
        assert_eq!(two, Nanos::from_secs(2));
        let longest = interval_length([Nanos::from_nanos(u64::MAX); 3].into_iter());
        let cpu = Cpu::new(0);
        let mut intervals = empty_intervals(cpu, Nanos::from_nanos(u64::MAX), longest);
        assert!((333_000..=333_334).contains(&intervals.len()), "{}", intervals.len());
        let total: Nanos = intervals.iter().map(|one| one.length_ns).sum();
        assert_eq!(total, Nanos::from_nanos(u64::MAX));
        add(&mut intervals, longest, Nanos::from_nanos(5));
        assert_eq!(intervals[1].lengths, [(Nanos::from_nanos(5), 1)]);
        add(&mut intervals, Nanos::from_nanos(u64::MAX), Nanos::from_nanos(6));
        assert_eq!(intervals.last().unwrap().lengths, [(Nanos::from_nanos(6), 1)]);
        add(&mut empty_intervals(cpu, Nanos::ZERO, longest), Nanos::ZERO, Nanos::ZERO);
    }

    /// Check that a wake-up that claims any number of expiries is refused, and that a sum of them does
    /// not overflow.
    #[test]
    fn too_many_samples() {
        let mut recording = read("latency-1.json");
        let recording::Body::Latency { series, .. } = &mut recording.body else {
            panic!()
        };
        for expiries in [SAMPLES_MAX, u64::MAX - 1] {
            series.cpus[0].wakeups[0].expiries = expiries;
            let samples = latency(&series.cpus, Nanos::from_micros(1));
            assert_eq!(samples.unwrap_err(), NoLog::TooManySamples, "{expiries}");
        }
    }

    /// Check that lengths beyond the bins are an error, and that those of other kinds do not matter.
    #[test]
    fn lengths_beyond_bins() {
        let bin = |count| recording::Bin {
            from_ns: Nanos::ZERO,
            until_ns: Nanos::from_nanos(10),
            count,
        };
        let lengths = |kind, count, bins| ImportedLengths {
            count,
            bins,
            ..ImportedLengths::new(kind, None)
        };
        let spec = ImportedSpec {
            measured_by: "cyclictest 2.40".to_owned(),
            cpus: units::CpuSet::default(),
            threshold_ns: None,
            resolution_ns: Some(Nanos::from_nanos(10)),
        };
        let found = |lengths| {
            let series = ImportedSeries { command: None, lengths };
            imported(&spec, &series).map(|(_, intervals)| intervals.len())
        };
        let of = |count, bins| found(vec![lengths(LengthKind::Gap, count, bins)]);
        assert_eq!(of(Some(7), vec![bin(3), bin(4)]), Ok(1));
        assert_eq!(of(Some(8), vec![bin(3), bin(4)]), Err(NoLog::Incomplete));
        assert_eq!(of(None, vec![bin(3)]), Ok(1));
        assert_eq!(of(None, Vec::new()), Err(NoLog::Incomplete));
        assert_eq!(of(Some(0), Vec::new()), Ok(1));
        let other = lengths(LengthKind::Value, Some(9), Vec::new());
        let gaps = lengths(LengthKind::Gap, Some(3), vec![bin(3)]);
        assert_eq!(found(vec![gaps, other]), Ok(1));
        assert_eq!(found(Vec::new()), Err(NoLog::OtherKind));
    }

    /// Check that the log of latencies has the samples of the summary.
    #[test]
    fn samples_of_latency() {
        let recording = read("latency-1.json");
        let log = LengthLog::of(&recording).unwrap();
        let Summary::Latency(summary) = Summary::of(&recording) else { panic!() };
        let samples: u64 = summary.cpus.iter().map(|cpu| cpu.samples).sum();
        let max = summary.cpus.iter().filter_map(|cpu| cpu.late_ns.max).max();
        let (count, _, longest) = all(&log);
        assert_eq!((count, Some(longest)), (samples, max));
    }
}
