//! The kernel's timer functions: what they are for, and how to avoid them.

use recording::{ExpiredTimer, TimerKind, TimerReason};

use crate::measurements::nohz::dependency::cause;

const TICK: &str = "the scheduler's tick; also the timer that the kernel programs for a timer of the \
                    timer wheel while the tick is stopped";
const CPU_BANDWIDTH: &str = "the CPU bandwidth limit of a control group (cpu.max) that has threads on \
                             this CPU: lift the limit, or move the threads";
const NETWORK: &str = "a timer of the network: keep the interrupts of network devices, and the \
                       programs that use them, off this CPU";

/// The functions of timers and of works, by the kernel's names.
const FUNCTIONS: [(&str, &str); 32] = [
    ("tick_nohz_handler", TICK),
    ("tick_nohz_highres_handler", TICK),
    ("tick_sched_timer", TICK),
    (
        "dl_task_timer",
        "the runtime of a deadline task is replenished: let it run on other CPUs",
    ),
    (
        "inactive_task_timer",
        "a deadline task, or the fair server (since 6.12), has blocked",
    ),
    (
        "hrtimer_wakeup",
        "wakes a thread that sleeps: nanosleep(2), or a timeout of futex(2), poll(2), epoll_wait(2) \
         or select(2); let the thread run on another CPU",
    ),
    ("posix_timer_fn", "a timer of timer_create(2): arm it on another CPU"),
    (
        "it_real_fn",
        "a timer of setitimer(2) with ITIMER_REAL, or of alarm(2): arm it on another CPU",
    ),
    ("timerfd_tmrproc", "a timer of timerfd_create(2): arm it on another CPU"),
    (
        "alarmtimer_fired",
        "a timer that wakes the machine from suspend (CLOCK_BOOTTIME_ALARM)",
    ),
    (
        "watchdog_timer_fn",
        "the watchdog for soft lockups: remove the CPU from /proc/sys/kernel/watchdog_cpumask, or \
         boot with nowatchdog",
    ),
    (
        "sched_rt_period_timer",
        "RT throttling: /proc/sys/kernel/sched_rt_runtime_us = -1 disables it",
    ),
    ("sched_cfs_period_timer", CPU_BANDWIDTH),
    ("sched_cfs_slack_timer", CPU_BANDWIDTH),
    (
        "hrtick",
        "the scheduler's feature HRTICK ends a time slice; NO_HRTICK in \
         /sys/kernel/debug/sched/features disables it",
    ),
    ("perf_swevent_hrtimer", "samples of a perf event (cpu-clock, task-clock): end perf"),
    (
        "perf_mux_hrtimer_handler",
        "perf events are multiplexed: end perf, or count fewer events",
    ),
    (
        "apic_timer_fn",
        "the timer of a KVM guest whose vCPU ran on this CPU: pin vCPUs elsewhere",
    ),
    (
        "clocksource_watchdog",
        "compares the clock source with another one, on each CPU in turn: tsc=nowatchdog or \
         tsc=reliable, if the hardware is",
    ),
    (
        "mce_timer_fn",
        "polls for corrected machine checks: \
         /sys/devices/system/machinecheck/machinecheckN/check_interval = 0, or mce=ignore_ce",
    ),
    (
        "process_timeout",
        "ends the wait of a thread, with schedule_timeout in the kernel or with a system call: let \
         the thread run on another CPU",
    ),
    ("delayed_work_timer_fn", "queues a delayed work for a worker thread of this CPU"),
    ("idle_worker_timeout", "ends idle worker threads: keep works off this CPU"),
    (
        "do_nocb_deferred_wakeup_timer",
        "wakes the thread that runs RCU callbacks of this CPU",
    ),
    ("neigh_timer_handler", NETWORK),
    ("tcp_write_timer", NETWORK),
    ("tcp_delack_timer", NETWORK),
    ("tcp_keepalive_timer", NETWORK),
    (
        "vmstat_update",
        "folds the memory statistics of this CPU, because they changed: vm.stat_interval is the \
         interval in seconds",
    ),
    (
        "sched_tick_remote",
        "the tick of another nohz_full CPU, once a second: a housekeeping CPU runs it",
    ),
    (
        "wb_workfn",
        "writes dirty pages back: /sys/devices/virtual/workqueue/cpumask without this CPU",
    ),
    ("cache_reap", "returns the free memory of this CPU's slab caches"),
];

const FAIR_SERVER: &str = "the deadline server that reserves a part of this CPU for fair tasks (since \
                           6.12) is replenished, which restarts a stopped tick; runtime 0 in \
                           /sys/kernel/debug/sched/fair_server/cpuN/ disables it";

/// What the timers, or works, with a function are for, and how to avoid them; `None` if it is not known
/// here.
pub(crate) fn about(function: &str) -> Option<&'static str> {
    FUNCTIONS.iter().find(|(known, _)| *known == function).map(|(_, text)| *text)
}

/// What a timer is for, and how to avoid it.
pub(super) fn description(timer: &ExpiredTimer) -> String {
    let function =
        about(&timer.function).unwrap_or_else(|| unknown(timer.kind)).to_owned();
    match &timer.reason {
        Some(TimerReason::FairServer) => FAIR_SERVER.to_owned(),
        Some(TimerReason::Dependency(dependency)) => {
            format!("the tick restarted: {}", cause(dependency))
        }
        Some(TimerReason::Work(work)) => match about(work) {
            Some(text) => format!("{function}: {text}"),
            None => function,
        },
        Some(TimerReason::Thread { .. }) | None => function,
    }
}

fn unknown(kind: TimerKind) -> &'static str {
    match kind {
        TimerKind::Hrtimer => "a high-resolution timer that was armed on this CPU",
        TimerKind::Timer => "a timer of the timer wheel that was armed on this CPU",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that each function is listed once.
    #[test]
    fn unique() {
        let mut names = FUNCTIONS.map(|(name, _)| name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FUNCTIONS.len());
    }
}
