//! The file `schedstat` of a process or thread: `/proc/PID/task/TID/schedstat`
//! (Documentation/scheduler/sched-stats.rst). Only with `CONFIG_SCHED_INFO`.
//!
//! The kernel updates the numbers at context switches and at the tick: those of a running thread
//! may be up to a tick old.

use units::Nanos;

/// The scheduler's times of a thread since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedStat {
    /// CPU time.
    pub ran: Nanos,
    /// Time ready to run, but not running.
    pub waited: Nanos,
    /// The number of its runs.
    pub runs: u64,
}

impl SchedStat {
    /// Parses the text: CPU time, wait time (both in nanoseconds), number of runs. `None` for
    /// anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_ascii_whitespace().map(str::parse);
        let mut next = || numbers.next()?.ok();
        let (ran, waited, runs) = (next()?, next()?, next()?);
        let (ran, waited) = (Nanos::from_nanos(ran), Nanos::from_nanos(waited));
        Some(Self { ran, waited, runs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the order of the numbers, and that truncated or other text is not parsed.
    #[test]
    fn times() {
        let found = SchedStat::parse("91528141 178074245 3223\n").unwrap();
        assert_eq!(found.ran, Nanos::from_nanos(91_528_141));
        assert_eq!(found.waited, Nanos::from_nanos(178_074_245));
        for bad in ["", "1 2", "1 x 3", "-1 2 3"] {
            assert_eq!(SchedStat::parse(bad), None, "{bad}");
        }
    }
}
