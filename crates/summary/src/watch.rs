//! The summary of `watch`: what the threads of a program did and waited for, and their longest delays.

use std::cmp::Reverse;

use recording::{
    Culprit, DelayKind, DelayRun, WaitParts, WaitTaker, WatchSeries, WatchedDelay,
    WatchedInterruption, WatchedThread,
};
use serde::Serialize;
use units::{Cpu, Nanos, Ppm};

/// The lengths of all waits for a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WaitLengths {
    /// The median, at most 1/32 too long; null without a wait, as the others.
    pub p50: Option<Nanos>,
    /// The 99th percentile, as exact.
    pub p99: Option<Nanos>,
    /// The 99.9th percentile, as exact.
    pub p99_9: Option<Nanos>,
    /// The longest wait.
    pub max: Option<Nanos>,
}

/// A thread, or all threads of one name that have ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WatchedThreadSummary {
    /// Its sums.
    #[serde(flatten)]
    pub sums: WatchedThread,
    /// `run_ns` as a share of one CPU's time; null if no time passed, as the other shares.
    pub run_ppm: Option<Ppm>,
    /// `wait_ns` as a share of the duration.
    pub wait_ppm: Option<Ppm>,
}

/// A thread that had a CPU while others waited for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TakerSummary {
    /// The thread; null for the idle task.
    pub thread: Option<Culprit>,
    /// Whether it is of the program itself.
    pub same_program: bool,
    /// How long watched threads waited meanwhile, summed over them.
    pub ns: Nanos,
    /// That as a share of all waiting time; null without any.
    pub wait_ppm: Option<Ppm>,
    /// Its number of runs.
    pub runs: u64,
}

/// A delay of a thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WatchedDelaySummary {
    /// Its beginning, since the start of the measurement.
    pub at_ns: Nanos,
    /// Its length.
    pub ns: Nanos,
    /// Why the thread did not continue.
    pub kind: DelayKind,
    /// The thread.
    pub thread: Culprit,
    /// The CPU on which it continued.
    pub cpu: Cpu,
    /// How long it had waited on other CPUs before.
    pub elsewhere_ns: Nanos,
    /// What had the CPU meanwhile.
    pub parts: WaitParts,
    /// The interrupt, if it was interrupted.
    pub interruption: Option<Culprit>,
    /// The threads that had the CPU meanwhile, in order.
    pub runs: Vec<DelayRun>,
    /// How many runs before these are not listed.
    pub runs_before: u64,
}

/// What takes time from a program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WatchSummary {
    /// The source: `bpf`, or `proc` with counters only.
    pub source: String,
    /// The duration of the measurement.
    pub elapsed_ns: Nanos,
    /// The number of threads that ran or waited.
    pub seen: u64,
    /// Their time on CPUs, interrupts included.
    pub run_ns: Nanos,
    /// That as a share of one CPU's time; null if no time passed.
    pub run_ppm: Option<Ppm>,
    /// The time that they waited for a CPU, summed over them.
    pub wait_ns: Nanos,
    /// That as a share of the time in which they ran or waited; null without any.
    pub wait_ppm: Option<Ppm>,
    /// The number of waits.
    pub waits: u64,
    /// Their lengths.
    pub wait_lengths_ns: WaitLengths,
    /// What had the CPU meanwhile; null if only counters were read.
    pub parts: Option<WaitParts>,
    /// The rest of `wait_ns`, which is not known.
    pub unknown_ns: Nanos,
    /// The part of `run_ns` in interrupts and softirqs; null if only counters were read.
    pub interrupted_ns: Option<Nanos>,
    /// That as a share of `run_ns`; null without any.
    pub interrupted_ppm: Option<Ppm>,
    /// The number of interruptions.
    pub interruptions: Option<u64>,
    /// How often threads left a CPU although they could have continued.
    pub preempted: u64,
    /// How often they were moved to another CPU.
    pub migrations: Option<u64>,
    /// Time in user mode, as the kernel accounts it.
    pub user_ns: Nanos,
    /// Time in the kernel, likewise: system calls and page faults.
    pub system_ns: Nanos,
    /// Page faults without a read from a disk.
    pub minor_faults: u64,
    /// Page faults with one.
    pub major_faults: u64,
    /// The threads, those that waited longest first.
    pub threads: Vec<WatchedThreadSummary>,
    /// The threads that had a CPU meanwhile, by time.
    pub takers: Vec<TakerSummary>,
    /// What interrupted the threads, by time.
    pub interrupts: Vec<WatchedInterruption>,
    /// The longest delays, the longest first.
    pub longest: Vec<WatchedDelaySummary>,
}

impl WatchSummary {
    /// Summarizes a series.
    pub fn of(series: &WatchSeries) -> Self {
        let all = &series.threads;
        let sum = |of: fn(&WatchedThread) -> Nanos| {
            all.iter().map(of).fold(Nanos::ZERO, Nanos::saturating_add)
        };
        let count = |of: fn(&WatchedThread) -> u64| {
            all.iter().map(of).fold(0, u64::saturating_add)
        };
        let known = |of: fn(&WatchedThread) -> Option<u64>| {
            all.iter().map(of).try_fold(0_u64, |sum, one| Some(sum.saturating_add(one?)))
        };
        let (run_ns, wait_ns) = (sum(|one| one.run_ns), sum(|one| one.wait_ns));
        let interrupted = known(|one| one.interrupted_ns.map(Nanos::get));
        let interrupted_ns = interrupted.map(Nanos::from_nanos);
        let parts = parts(all);
        let known_ns = parts.map_or(Nanos::ZERO, |parts| parts.sum());
        Self {
            source: series.source.name().to_owned(),
            elapsed_ns: series.elapsed_ns,
            seen: count(|one| one.count),
            run_ns,
            run_ppm: Ppm::of(run_ns, series.elapsed_ns),
            wait_ns,
            wait_ppm: Ppm::of(wait_ns, run_ns.saturating_add(wait_ns)),
            waits: count(|one| one.waits),
            wait_lengths_ns: WaitLengths::of(series),
            parts,
            unknown_ns: wait_ns.saturating_sub(known_ns),
            interrupted_ns,
            interrupted_ppm: interrupted_ns.and_then(|ns| Ppm::of(ns, run_ns)),
            interruptions: known(|one| one.interruptions),
            preempted: count(|one| one.preempted),
            migrations: known(|one| one.migrations),
            user_ns: sum(|one| one.user_ns),
            system_ns: sum(|one| one.system_ns),
            minor_faults: count(|one| one.minor_faults),
            major_faults: count(|one| one.major_faults),
            threads: threads(series),
            takers: series.takers.iter().map(|one| taker(one, wait_ns)).collect(),
            interrupts: series.interruptions.clone(),
            longest: series
                .longest
                .iter()
                .map(|one| delay(one, series.began_ns))
                .collect(),
        }
    }
}

impl WaitLengths {
    fn of(series: &WatchSeries) -> Self {
        let waits = series.lengths.iter().map(|(_, count)| count);
        let waits = waits.fold(0_u64, |sum, count| sum.saturating_add(*count));
        let max = series.threads.iter().filter_map(|one| one.wait_ns_max).max();
        let max = max.filter(|_| waits > 0);
        let quantile = |above: u64| {
            // The rank of the first length that at most 1 of `above` exceed.
            let rank = waits - waits / above;
            let mut seen = 0_u64;
            let found = series.lengths.iter().find(|(_, count)| {
                seen = seen.saturating_add(*count);
                seen >= rank
            });
            found.map(|(length, _)| max.map_or(*length, |max| max.min(*length)))
        };
        Self { p50: quantile(2), p99: quantile(100), p99_9: quantile(1000), max }
    }
}

/// The parts of all waits; `None` if those of a thread are not known.
fn parts(threads: &[WatchedThread]) -> Option<WaitParts> {
    let mut sum = WaitParts::default().all();
    for thread in threads {
        for (to, part) in sum.iter_mut().zip(thread.parts?.all()) {
            *to = to.saturating_add(part);
        }
    }
    Some(sum.into())
}

fn threads(series: &WatchSeries) -> Vec<WatchedThreadSummary> {
    let mut threads: Vec<&WatchedThread> = series.threads.iter().collect();
    threads.sort_by_key(|one| (Reverse(one.wait_ns), Reverse(one.run_ns), one.tid));
    let thread = |one: &WatchedThread| WatchedThreadSummary {
        run_ppm: Ppm::of(one.run_ns, series.elapsed_ns),
        wait_ppm: Ppm::of(one.wait_ns, series.elapsed_ns),
        sums: one.clone(),
    };
    threads.into_iter().map(thread).collect()
}

fn taker(taker: &WaitTaker, waited: Nanos) -> TakerSummary {
    TakerSummary {
        thread: taker.thread.clone(),
        same_program: taker.is_same,
        ns: taker.ns,
        wait_ppm: Ppm::of(taker.ns, waited),
        runs: taker.runs,
    }
}

fn delay(delay: &WatchedDelay, began_ns: Nanos) -> WatchedDelaySummary {
    WatchedDelaySummary {
        at_ns: delay.begin_ns.saturating_sub(began_ns),
        ns: delay.ns,
        kind: delay.kind,
        thread: delay.thread.clone(),
        cpu: delay.cpu,
        elsewhere_ns: delay.elsewhere_ns,
        parts: delay.parts,
        interruption: delay.interruption.clone(),
        runs: delay.runs.clone(),
        runs_before: delay.runs_before,
    }
}
