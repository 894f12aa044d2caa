//! The machine: its CPUs, its tick, and the time that the kernel's own work takes.

use units::{Cpu, CpuSet, Hz, Nanos};

use crate::scheduler::Steal;
use crate::scheduler::rules::{Rules, Version};
use crate::scheduler::shares::LEAST;
use crate::scheduler::weight::NICE_0;

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The number of CPUs.
    pub cpus: u32,
    /// `CONFIG_HZ`.
    pub hz: Hz,
    /// When the first tick is, after the first task was forked.
    pub tick_phase_ns: Nanos,
    /// A tick's interrupt begins up to that much later than its time, at random.
    pub tick_jitter_ns: Nanos,
    /// Whether the tick stops on an idle CPU.
    pub stops_idle_tick: bool,
    /// The CPUs on which it also stops while a single task runs (`nohz_full=`).
    pub nohz_full: CpuSet,
    /// How much later than requested a sleep may end (`PR_SET_TIMERSLACK`).
    pub timer_slack_ns: Nanos,
    /// The time of one iteration of a spinner's loop.
    pub pass_ns: Nanos,
    /// Time that a hypervisor takes from each CPU.
    pub steal: Option<Steal>,
    /// The weight of each group of tasks, as `cpu.weight` of cgroups has it.
    pub groups: Vec<u32>,
    /// Kernel threads that run at times.
    pub threads: Vec<KernelThread>,
    /// The time of the kernel's own work.
    pub costs: Costs,
}

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
    /// At these ticks after the sampler has begun to read, counted from 1.
    AfterReading(&'static [u64]),
    /// At these ticks after the measurement of a round has begun, if the tasks of another one have ended before.
    AfterExits(&'static [u64]),
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
            Self::AfterReading(_) | Self::AfterExits(_) => None,
        }
    }

    /// The ticks after a reading.
    pub(crate) fn after_reading(self) -> &'static [u64] {
        match self {
            Self::AfterReading(ticks) => ticks,
            Self::Every(_) | Self::Adapting(_) | Self::AfterExits(_) => &[],
        }
    }

    /// The ticks after tasks have ended.
    pub(crate) fn after_exits(self) -> &'static [u64] {
        match self {
            Self::AfterExits(ticks) => ticks,
            Self::Every(_) | Self::Adapting(_) | Self::AfterReading(_) => &[],
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
    fn measured(version: Version) -> Vec<Self> {
        let thread = |name, wakes, work_us| Self {
            name,
            wakes,
            work_ns: Nanos::from_micros(work_us),
        };
        let every = |sleep_ms| Wakes::Every(Nanos::from_millis(sleep_ms));
        let damon = |work_us| thread(Self::DAMON, Wakes::Adapting(&DAMON), work_us);
        let after = Wakes::AfterReading;
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
                thread("rcu_preempt", Wakes::AfterExits(&[1, 2, 3]), 2),
                damon(300),
            ],
            Version::SliceTimer => vec![
                thread("kworker", every(950), 110),
                thread("rcu_preempt", Wakes::AfterExits(&[1, 2]), 2),
                damon(12),
            ],
        });
        threads
    }
}

/// How DAMON's thread adapts its interval, which is longer than its sleep by a tick.
const DAMON: [(Nanos, Nanos); 3] = [
    (Nanos::ZERO, Nanos::from_millis(20)),
    (Nanos::from_millis(1000), Nanos::from_millis(40)),
    (Nanos::from_millis(3300), Nanos::from_millis(80)),
];
/// The time of the kernel's own work, from one point to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Costs {
    /// From a timer interrupt to the first handler.
    pub interrupt_ns: Nanos,
    /// A tick: to its reading of the queue's clock, and from there to its end.
    pub tick_ns: [Nanos; 2],
    /// A wake-up: the same.
    pub wakeup_ns: [Nanos; 2],
    /// The part of a wake-up that checks whether it preempts, which is left out if a reschedule is
    /// requested already.
    pub check_ns: Nanos,
    /// From the last handler to user mode, without a reschedule.
    pub to_user_ns: Nanos,
    /// From the last handler to the reading of the clock in `schedule()`.
    pub to_schedule_ns: Nanos,
    /// From that reading to user mode of the next task, after an interrupt.
    pub switch_ns: Nanos,
    /// The same, if the next task returns from a sleep.
    pub switch_to_woken_ns: Nanos,
    /// The same, if the task before it went to sleep.
    pub switch_from_sleep_ns: Nanos,
    /// The same, if that was a real-time task.
    pub switch_from_realtime_ns: Nanos,
    /// From a system call that sleeps to the start of its timer.
    pub sleep_ns: Nanos,
    /// From that system call to the reading of the clock in `schedule()`.
    pub sleep_to_schedule_ns: Nanos,
    /// The end of a slice by its timer: as a tick.
    pub slice_end_ns: [Nanos; 2],
    /// How long before user mode of the next task the timer of its slice is set.
    pub slice_timer_ns: Nanos,
    /// From user mode until a system call updates the queue, and back.
    pub call_ns: [Nanos; 2],
    /// How long the sampler takes to read the times of tasks: for all, and for each.
    pub reading_ns: [Nanos; 2],
    /// How long after a tick the first task is forked, and how long it takes to fork each.
    pub fork_ns: [Nanos; 2],
    /// How long a new task runs before its work begins.
    pub start_ns: Nanos,
    /// From the end of a tick to a wake-up by a timer of the timer wheel, which runs in a softirq after it.
    pub softirq_ns: Nanos,
}

impl Costs {
    /// None: what the rules alone do.
    pub const NONE: Self = Self::of([0; 21]);

    /// In the order of the fields; the timer of slices is 7.2's.
    const fn of(ns: [u64; 21]) -> Self {
        const fn at(ns: [u64; 21], place: usize) -> Nanos {
            Nanos::from_nanos(ns[place])
        }
        Self {
            interrupt_ns: at(ns, 0),
            tick_ns: [at(ns, 1), at(ns, 2)],
            wakeup_ns: [at(ns, 3), at(ns, 4)],
            check_ns: Nanos::ZERO,
            to_user_ns: at(ns, 5),
            to_schedule_ns: at(ns, 6),
            switch_ns: at(ns, 7),
            switch_to_woken_ns: at(ns, 8),
            switch_from_sleep_ns: at(ns, 9),
            switch_from_realtime_ns: at(ns, 10),
            sleep_ns: at(ns, 11),
            sleep_to_schedule_ns: at(ns, 12),
            slice_end_ns: [at(ns, 13), at(ns, 13)],
            slice_timer_ns: at(ns, 13),
            call_ns: [at(ns, 14), at(ns, 14)],
            softirq_ns: at(ns, 15),
            reading_ns: [at(ns, 16), at(ns, 17)],
            fork_ns: [at(ns, 18), at(ns, 19)],
            start_ns: at(ns, 20),
        }
    }

    /// Those of the kernel that a set of rules is from, in instructions: a nanosecond each in exact
    /// guests. Of kernels that were not measured: those of the next newer one.
    ///
    /// Source: the guest time at which each function of the scheduler begins, in Debian's kernels
    /// 5.10.262 to 7.2.13, medians of some thousand each, written by a QEMU plugin. Those of a wake-up and of a
    /// sleep are such that sleepers, one or two, have the mean period of a guest's beside eight spinners, to
    /// a nanosecond or two: an error of 70 ns, a tenth of a thousandth, is two microseconds after nine ticks,
    /// and changes which ticks end a slice, by which mean slices differed by 2 %.
    pub fn measured(rules: &Rules) -> Self {
        match rules.version() {
            Version::FirstSleepers | Version::GentleSleepers | Version::Cfs => {
                Self::of([
                    387, 918, 1072, 156, 1288, 90, 240, 1919, 2003, 2608, 2608, 540, 767,
                    0, 400, 500, 24_000, 44_300, 100_000, 110_000, 55_500,
                ])
            }
            Version::LastCfs => Self::of([
                378, 983, 1172, 177, 1346, 59, 240, 1996, 2106, 2424, 2424, 561, 870, 0,
                400, 350, 42_000, 45_200, 110_000, 136_000, 64_300,
            ]),
            Version::FirstEevdf | Version::DelayedDequeue => Self::of([
                384, 1062, 913, 191, 1661, 335, 606, 2771, 2171, 2812, 2812, 541, 1002,
                0, 400, 390, 41_000, 49_500, 90_000, 160_000, 64_200,
            ]),
            Version::ProtectedVruntime => Self {
                check_ns: Nanos::from_nanos(1000),
                ..Self::of([
                    411, 1159, 1280, 212, 2022, 173, 302, 2877, 3013, 3109, 3109, 535,
                    920, 0, 400, 490, 45_000, 51_000, 110_000, 172_000, 66_800,
                ])
            },
            Version::SliceTimer => Self {
                check_ns: Nanos::from_nanos(1000),
                slice_end_ns: [Nanos::from_nanos(47), Nanos::from_nanos(773)],
                ..Self::of([
                    433, 1138, 1088, 205, 1970, 256, 352, 3280, 3043, 3273, 3652, 722,
                    949, 1000, 400, 565, 42_000, 48_800, 105_000, 166_000, 64_800,
                ])
            },
        }
    }
}

impl Machine {
    /// One with these CPUs and this tick, whose kernel takes no time.
    pub fn new(cpus: u32, hz: Hz) -> Self {
        Self {
            cpus,
            hz,
            tick_phase_ns: Nanos::ZERO,
            tick_jitter_ns: Nanos::ZERO,
            stops_idle_tick: true,
            nohz_full: CpuSet::default(),
            groups: Vec::new(),
            timer_slack_ns: Nanos::from_micros(50),
            pass_ns: Nanos::from_nanos(3),
            steal: None,
            threads: Vec::new(),
            costs: Costs::NONE,
        }
    }

    /// One whose kernel's own work takes the time, and whose kernel threads run, that were measured in
    /// exact guests with the kernel of these rules.
    pub fn measured(rules: &Rules, cpus: u32, hz: Hz) -> Self {
        let costs = Costs::measured(rules);
        Self {
            tick_phase_ns: hz.period().saturating_sub(costs.fork_ns[0]),
            threads: KernelThread::measured(rules.version()),
            costs,
            ..Self::new(cpus, hz)
        }
    }

    /// The weight of each group on one of its CPUs, where a task of nice 0 has 1024.
    pub(crate) fn group_weights(&self) -> impl Iterator<Item = u64> {
        // `cpu_weight_write_u64`.
        let shares = |weight: u64| (weight * NICE_0 + 50) / 100;
        self.groups.iter().map(move |weight| shares((*weight).into()).max(LEAST))
    }

    /// All of its CPUs.
    pub fn all_cpus(&self) -> CpuSet {
        (0..self.cpus).map(Cpu::new).collect()
    }
}
