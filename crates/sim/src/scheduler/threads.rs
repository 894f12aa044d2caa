//! The kernel's own threads, which take time from the tasks.

use units::Nanos;

use crate::scheduler::rules::Version;

/// How DAMON's thread adapts its interval, which is longer than its sleep by a tick.
const DAMON: [(Nanos, Nanos); 3] = [
    (Nanos::ZERO, Nanos::from_millis(20)),
    (Nanos::from_millis(1000), Nanos::from_millis(40)),
    (Nanos::from_millis(3300), Nanos::from_millis(80)),
];

/// A kernel thread that wakes up at ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelThread {
    /// Its name.
    pub name: &'static str,
    /// When it wakes up.
    pub wakes: Wakes,
    /// How long it then works.
    pub work_ns: Nanos,
}

/// When a kernel thread wakes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wakes {
    /// After a sleep of at least that long.
    Every(Nanos),
    /// The same, where the length depends on the time of the measurement: since when, and how long.
    Adapting(&'static [(Nanos, Nanos)]),
    /// At these ticks after that, counted from 1.
    After(Occasion, &'static [u64]),
}

/// What gives kernel threads work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// The sampler has begun to read.
    Reading,
    /// The measurement of a round has begun, and the tasks of another one have ended before.
    Exits,
}

impl Wakes {
    /// The least time that it sleeps at that time of the measurement.
    pub(crate) fn sleep_at(self, at: Nanos) -> Option<Nanos> {
        match self {
            Self::Every(sleep) => Some(sleep),
            Self::Adapting(lengths) => {
                let now = lengths.iter().rev().find(|(since, _)| at >= *since);
                now.map(|(_, sleep)| *sleep)
            }
            Self::After(..) => None,
        }
    }

    /// The ticks after that at which it wakes up.
    pub(crate) fn ticks(self, occasion: Occasion) -> &'static [u64] {
        match self {
            Self::After(own, ticks) if own == occasion => ticks,
            Self::After(..) | Self::Every(_) | Self::Adapting(_) => &[],
        }
    }
}

impl KernelThread {
    /// The name of the thread of DAMON.
    pub const DAMON: &'static str = "kdamond.0";

    /// Those of the kernel that a set of rules is from, in a guest that does nothing else: `kcompactd0`
    /// and a worker of every kernel, DAMON's thread in Debian's 6.18 and later. The files that a reading has
    /// closed are freed after a grace period, for which RCU's thread wakes up; since 6.18 it did so only
    /// after tasks had ended.
    ///
    /// Source: traces of exact guests (`sched_switch`), means.
    pub(crate) fn measured(version: Version) -> Vec<Self> {
        let thread = |name, wakes, work_us| Self {
            name,
            wakes,
            work_ns: Nanos::from_micros(work_us),
        };
        let every = |sleep_ms| Wakes::Every(Nanos::from_millis(sleep_ms));
        let damon = |work_us| thread(Self::DAMON, Wakes::Adapting(&DAMON), work_us);
        let after = |ticks| Wakes::After(Occasion::Reading, ticks);
        let after_exits = |ticks| Wakes::After(Occasion::Exits, ticks);
        let mut threads = vec![thread("kcompactd0", every(508), 2)];
        threads.extend(match version {
            Version::FirstSleepers | Version::GentleSleepers | Version::Cfs => vec![
                thread("kworker", every(320), 2),
                thread("rcu_sched", after(&[1, 2]), 2),
                thread("ksoftirqd/0", after(&[3]), 5),
            ],
            Version::LastCfs => vec![
                thread("kworker", every(320), 2),
                thread("rcu_preempt", after(&[1, 2, 3]), 2),
                thread("ksoftirqd/0", after(&[3]), 5),
            ],
            Version::FirstEevdf | Version::DelayedDequeue => vec![
                thread("kworker", every(320), 2),
                thread("rcu_preempt", after(&[1, 2]), 2),
            ],
            Version::ProtectedVruntime => vec![
                thread("kworker", every(950), 110),
                thread("rcu_preempt", after_exits(&[1, 2, 3]), 2),
                damon(300),
            ],
            Version::SliceTimer => vec![
                thread("kworker", every(950), 110),
                thread("rcu_preempt", after_exits(&[1, 2]), 2),
                damon(12),
            ],
        });
        threads
    }
}
