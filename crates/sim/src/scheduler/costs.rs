//! The time of the kernel's own work.

use units::Nanos;

use crate::scheduler::rules::{Rules, Version};

/// The time of the kernel's own work, from one point to the next. By default it takes none: what the rules alone do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Costs {
    /// From a timer interrupt to the first handler.
    pub interrupt_ns: Nanos,
    /// A tick: to its reading of the queue's clock, and from there to its end.
    pub tick_ns: [Nanos; 2],
    /// A wake-up: the same.
    pub wakeup_ns: [Nanos; 2],
    /// From the end of a tick to such a wake-up, if the timer is one of the timer wheel (a softirq).
    pub softirq_ns: Nanos,
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
}

impl Costs {
    /// Those of the kernel that a set of rules is from, in instructions: a nanosecond each in exact
    /// guests. Of kernels that were not measured: those of the next newer one.
    ///
    /// Source: the guest time at which each function of the scheduler begins, in Debian's kernels
    /// 5.10.262 to 7.2.13, medians of some thousand each, written by a QEMU plugin. Those of a wake-up and of a
    /// sleep are such that sleepers, one or two, have the mean period of a guest's beside eight spinners, to
    /// a nanosecond or two: an error of 70 ns, a tenth of a thousandth, is two microseconds after nine ticks,
    /// and changes which ticks end a slice, by which mean slices differed by 2 %.
    pub fn measured(rules: &Rules) -> Self {
        let kernel = match rules.version() {
            Version::FirstSleepers | Version::GentleSleepers | Version::Cfs => 0,
            Version::LastCfs => 1,
            Version::FirstEevdf | Version::DelayedDequeue => 2,
            Version::ProtectedVruntime => 3,
            Version::SliceTimer => 4,
        };
        let of = |kernels: [u64; 5]| Nanos::from_nanos(kernels[kernel]);
        // 5.10, 6.1, 6.12, 6.18, 7.2.
        Self {
            interrupt_ns: of([387, 378, 384, 411, 433]),
            tick_ns: [
                of([918, 983, 1062, 1159, 1138]),
                of([1072, 1172, 913, 1280, 1088]),
            ],
            wakeup_ns: [
                of([156, 177, 191, 212, 205]),
                of([1288, 1346, 1661, 2022, 1970]),
            ],
            softirq_ns: of([500, 350, 390, 490, 565]),
            check_ns: of([0, 0, 0, 1000, 1000]),
            slice_end_ns: [of([0, 0, 0, 0, 47]), of([0, 0, 0, 0, 773])],
            to_user_ns: of([90, 59, 335, 173, 256]),
            to_schedule_ns: of([240, 240, 606, 302, 352]),
            switch_ns: of([1919, 1996, 2771, 2877, 3280]),
            switch_to_woken_ns: of([2003, 2106, 2171, 3013, 3043]),
            switch_from_sleep_ns: of([2608, 2424, 2812, 3109, 3273]),
            switch_from_realtime_ns: of([2608, 2424, 2812, 3109, 3652]),
            slice_timer_ns: of([0, 0, 0, 0, 1000]),
            sleep_ns: of([540, 561, 541, 535, 722]),
            sleep_to_schedule_ns: of([767, 870, 1002, 920, 949]),
            call_ns: [of([494, 570, 620, 635, 650]); 2],
            reading_ns: [
                of([24_000, 42_000, 41_000, 45_000, 42_000]),
                of([44_300, 45_200, 49_500, 51_000, 48_800]),
            ],
            fork_ns: [
                of([100_000, 110_000, 90_000, 110_000, 105_000]),
                of([110_000, 136_000, 160_000, 172_000, 166_000]),
            ],
            start_ns: of([55_500, 64_300, 64_200, 66_800, 64_800]),
        }
    }
}
