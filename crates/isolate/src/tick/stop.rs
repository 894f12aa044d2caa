//! Tracing what keeps the tick of a `nohz_full` CPU, which the kernel checks whenever it tries to
//! stop the tick.
//!
//! The tracepoint `timer:tick_stop` (since 4.5) has `success` and the first `dependency` that was
//! found, one of the bits of `enum tick_dep_bits` in `include/linux/tick.h`.
//!
//! Not traced: dependencies after the first one; CPUs that are not `nohz_full`; a tick without
//! dependencies that continues because the next event is due within a tick
//! (`tick_nohz_next_event`), for which see `tick::trace`.

use std::collections::BTreeMap;
use std::fmt;

use units::Cpu;

use crate::error::Error;
use crate::tick::tracepoint::{Point, Record, Tracepoints};

/// A dependency that keeps a CPU's tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependency {
    /// A POSIX CPU timer is armed.
    PosixTimer,
    /// Perf events are multiplexed, or sample by frequency.
    PerfEvents,
    /// The scheduler: more than one task, a deadline task, a bandwidth limit.
    Sched,
    /// The kernel's clock is unstable.
    ClockUnstable,
    /// RCU waits for this CPU.
    Rcu,
    /// An expedited RCU grace period waits for this CPU.
    RcuExp,
    /// A bit that is not known here.
    Other(u64),
}

impl Dependency {
    fn of(bits: u64) -> Self {
        match bits {
            0x01 => Self::PosixTimer,
            0x02 => Self::PerfEvents,
            0x04 => Self::Sched,
            0x08 => Self::ClockUnstable,
            0x10 => Self::Rcu,
            0x20 => Self::RcuExp,
            other => Self::Other(other),
        }
    }
}

/// The names of the kernel's own trace output.
impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PosixTimer => "POSIX_TIMER",
            Self::PerfEvents => "PERF_EVENTS",
            Self::Sched => "SCHED",
            Self::ClockUnstable => "CLOCK_UNSTABLE",
            Self::Rcu => "RCU",
            Self::RcuExp => "RCU_EXP",
            Self::Other(bits) => return write!(f, "0x{bits:x}"),
        })
    }
}

/// How often each dependency prevented the tick from stopping.
pub type KeptBy = BTreeMap<Dependency, u64>;

/// The kernel's attempt to stop a CPU's tick.
pub(crate) const ATTEMPT: Point<()> =
    Point { kind: (), name: "timer/tick_stop", fields: &["success", "dependency"] };

/// The kernel's attempts to stop a CPU's tick since the start of the trace.
#[derive(Debug)]
pub(crate) struct Attempts(Tracepoints<()>);

impl Attempts {
    /// Starts the trace.
    pub(crate) fn trace(cpu: Cpu) -> Result<Self, Error> {
        Tracepoints::open(&[ATTEMPT], cpu).map(Self)
    }

    /// The dependencies that prevented the tick from stopping since the last call.
    pub(crate) fn take(&mut self) -> KeptBy {
        let mut counts = KeptBy::new();
        for dependency in self.0.take().iter().filter_map(failed_attempt) {
            *counts.entry(dependency).or_default() += 1;
        }
        counts
    }
}

/// The dependency of a failed attempt; `None` if the attempt succeeded.
pub(crate) fn failed_attempt<K>(attempt: &Record<K>) -> Option<Dependency> {
    (attempt.number(0) == 0).then(|| Dependency::of(attempt.number(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that failed attempts are named as by the kernel, and successful ones are skipped.
    #[test]
    fn attempts_are_named() {
        let name = |success: u64, bits: u64| {
            let fields = [success, bits].map(u64::to_ne_bytes);
            let attempt = Record::of((), &[&fields[0], &fields[1]]);
            failed_attempt(&attempt).map(|found| found.to_string())
        };
        assert_eq!(name(1, 0), None);
        let names = [1, 2, 4, 8, 0x10, 0x20, 0x40].map(|bits| name(0, bits).unwrap());
        let expected = [
            "POSIX_TIMER",
            "PERF_EVENTS",
            "SCHED",
            "CLOCK_UNSTABLE",
            "RCU",
            "RCU_EXP",
            "0x40",
        ];
        assert_eq!(names, expected);
    }

    /// Check that the tracepoint can be opened on this machine; without nohz_full, it has no
    /// records.
    #[test]
    fn this_machine() {
        match Attempts::trace(Cpu::new(0)) {
            Err(why) => println!("skipped: this_machine: {why}"),
            Ok(mut attempts) => {
                std::thread::sleep(std::time::Duration::from_millis(50));
                let nohz_full = facts::Facts::read(&facts::Root::live()).tick.nohz_full;
                if nohz_full.get().is_none_or(units::CpuSet::is_empty) {
                    assert_eq!(attempts.take(), KeptBy::new());
                }
            }
        }
    }
}
