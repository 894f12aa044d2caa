//! Why a tick does not stop: the kernel's names of the reasons, in words.

use crate::document::text::{Text, text};
use crate::number;

/// The kernel's tick dependencies (`include/linux/tick.h`): their causes, and remedies.
const DEPENDENCIES: [(&str, &str); 6] = [
    (
        "POSIX_TIMER",
        "a timer on CPU time is armed for a thread on this CPU or for its process: \
         timer_create(2) or timer_settime(2) on a CPU clock, setitimer(2) with ITIMER_PROF or \
         ITIMER_VIRTUAL, or a limit on CPU time (ulimit -t)",
    ),
    (
        "PERF_EVENTS",
        "perf events are multiplexed, or sample by frequency (perf record -F, perf top): end \
         them, or sample by a fixed period (perf record -c)",
    ),
    (
        "SCHED",
        "another task is runnable on this CPU, a deadline task is present (since 6.12 the fair \
         server is one), or a control group limits CPU time; isolcpus= and CPU affinity keep \
         other tasks away",
    ),
    (
        "CLOCK_UNSTABLE",
        "the kernel regards its clock as unstable, and stops no CPU's tick: tsc=reliable, if \
         the hardware is",
    ),
    ("RCU", "RCU waits for this CPU, or its callbacks run on it: rcu_nocbs= moves them"),
    (
        "RCU_EXP",
        "an expedited RCU grace period waits for this CPU: rcupdate.rcu_normal=1 disables them",
    ),
];

/// The cause of a tick dependency, and the remedy.
pub(super) fn cause(name: &str) -> &'static str {
    let known = DEPENDENCIES.iter().find(|(known, _)| *known == name);
    known.map_or("an unknown dependency", |(_, cause)| cause)
}

/// A tick dependency, how often it was traced, its cause and the remedy.
pub(crate) fn dependency(name: &str, count: u64) -> Text {
    text!("{}, {}: {}", Text::name(name), times(count), cause(name))
}

/// A number of times, in words.
pub(crate) fn times(count: u64) -> Text {
    if count == 1 { "once".into() } else { number::counted(count, "time") }
}
