//! What keeps the tick of a `nohz_full` CPU: the kernel says so each time that it tries to
//! stop it and may not.
//!
//! The tracepoint `timer:tick_stop` (since 4.5) has `success` and the first `dependency` that
//! was found, one of the bits of `enum tick_dep_bits` in `include/linux/tick.h`.
//!
//! Cannot see dependencies behind the first one, nor CPUs that are not `nohz_full`, nor a tick
//! that has no dependency and goes on because the next event is due within a tick
//! (`tick_nohz_next_event`): see `tick_back`.

use std::collections::BTreeMap;
use std::fmt;

use units::Cpu;

use crate::error::Error;
use crate::tick::tracepoint::Tracepoint;

/// Why the kernel keeps a CPU's tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependency {
    /// A POSIX timer of CPU time is armed.
    PosixTimer,
    /// Perf events take turns, or sample by frequency.
    PerfEvents,
    /// The scheduler wants it: more than one task, a deadline task, a bandwidth limit.
    Sched,
    /// The kernel does not trust its clock.
    ClockUnstable,
    /// RCU waits for this CPU.
    Rcu,
    /// RCU waits for this CPU, in a hurry.
    RcuExp,
    /// What no kernel known here says.
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

/// As the kernel's own trace shows it.
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

/// How often the kernel tried to stop the tick and each dependency kept it.
pub type KeptBy = BTreeMap<Dependency, u64>;

/// The attempts to stop one CPU's tick, from now on.
#[derive(Debug)]
pub(crate) struct Attempts(Tracepoint<2>);

impl Attempts {
    /// Begins to watch.
    pub(crate) fn watch(cpu: Cpu) -> Result<Self, Error> {
        Tracepoint::open("timer/tick_stop", ["success", "dependency"], cpu).map(Self)
    }

    /// What kept the tick since the last call.
    pub(crate) fn take(&mut self) -> KeptBy {
        let mut seen = KeptBy::new();
        for kept in self.0.take().into_iter().filter_map(kept) {
            *seen.entry(kept).or_default() += 1;
        }
        seen
    }
}

/// What kept the tick; `None` where nothing did.
fn kept([success, dependency]: [u64; 2]) -> Option<Dependency> {
    (success == 0).then_some(Dependency::of(dependency))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that attempts that failed are named as the kernel does, and others are left out.
    #[test]
    fn attempts_are_named() {
        let name = |success, bits| kept([success, bits]).map(|kept| kept.to_string());
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

    /// Check that this machine's tracepoint can be watched; its CPUs keep no tick that way.
    #[test]
    fn this_machine() {
        match Attempts::watch(Cpu::new(0)) {
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
