//! What another process has used and done until now, read from outside.
//!
//! Its CPU time is its own CPU clock (`clock_getcpuclockid(3)`), which the kernel brings up to
//! date when it is asked, to the nanosecond; the numbers in `/proc/PID` may be a tick old. How
//! often it left its CPU, and whether it had to, stands in `/proc/PID/status`
//! (`proc_pid_status(5)`, since 2.6.23).
//!
//! The two are read one after the other: a process that runs on another CPU goes on meanwhile.

use std::fs::File;
use std::io::{self, Read};

use recording::TaskTime;
use units::Nanos;

use crate::counter;

/// `CPUCLOCK_SCHED` in `include/linux/posix-timers.h`: what the scheduler counts.
const SCHEDULED: libc::clockid_t = 2;
/// A status is shorter.
const STATUS_MAX: usize = 1 << 14;

/// What a process has done until now.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TaskReading {
    pub(crate) cpu: Nanos,
    pub(crate) involuntary: u64,
    pub(crate) voluntary: u64,
    pub(crate) passes: u64,
}

impl TaskReading {
    /// Reads it; `passes` is what the process tells of itself.
    ///
    /// # Errors
    /// The kernel does not say.
    pub(crate) fn of(
        pid: libc::pid_t,
        passes: u64,
        room: &mut StatusRoom,
    ) -> io::Result<Self> {
        let (voluntary, involuntary) = room.switches(pid)?;
        let cpu = counter::kernel((!pid << 3) | SCHEDULED);
        Ok(Self { cpu, involuntary, voluntary, passes })
    }

    /// What it did since an earlier reading.
    pub(crate) fn since(&self, earlier: &Self) -> TaskTime {
        TaskTime {
            cpu_ns: self.cpu.saturating_sub(earlier.cpu),
            involuntary: self.involuntary.saturating_sub(earlier.involuntary),
            voluntary: self.voluntary.saturating_sub(earlier.voluntary),
            passes: self.passes.wrapping_sub(earlier.passes),
        }
    }
}

/// Room for a process's status, used again and again.
#[derive(Debug)]
pub(crate) struct StatusRoom {
    text: Vec<u8>,
    path: String,
}

impl StatusRoom {
    pub(crate) fn new() -> Self {
        Self { text: vec![0; STATUS_MAX], path: String::new() }
    }

    /// How often a process left its CPU by itself, and how often it had to.
    fn switches(&mut self, pid: libc::pid_t) -> io::Result<(u64, u64)> {
        use std::fmt::Write;
        self.path.clear();
        // Writing to a string does not fail.
        let _ = write!(self.path, "/proc/{pid}/status");
        let length = File::open(&self.path)?.read(&mut self.text)?;
        let text = self.text.get(..length).unwrap_or_default();
        parsed(text).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }
}

/// The two last lines: `voluntary_ctxt_switches:\t12`, `nonvoluntary_ctxt_switches:\t34`.
fn parsed(status: &[u8]) -> Option<(u64, u64)> {
    let status = std::str::from_utf8(status).ok()?;
    let number = |name: &str| {
        let mut lines = status.lines().rev();
        lines.find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
    };
    Some((number("voluntary_ctxt_switches:")?, number("nonvoluntary_ctxt_switches:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the two counts are told apart, and that what is cut off is no zero.
    #[test]
    fn statuses() {
        let text =
            b"Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t34\n";
        assert_eq!(parsed(text), Some((12, 34)));
        assert_eq!(parsed(&text[..40]), None);
    }

    /// Check on this process that its CPU clock runs, and that its switches are what the
    /// kernel counts for `getrusage(2)`, of its only busy thread at least.
    #[test]
    fn this_process() {
        let pid = libc::pid_t::try_from(std::process::id()).unwrap();
        let mut room = StatusRoom::new();
        let before = TaskReading::of(pid, 3, &mut room).unwrap();
        let begin = counter::kernel(libc::CLOCK_PROCESS_CPUTIME_ID);
        while counter::kernel(libc::CLOCK_PROCESS_CPUTIME_ID)
            < begin + Nanos::from_millis(5)
        {}
        let used = TaskReading::of(pid, 8, &mut room).unwrap().since(&before);
        assert!(used.cpu_ns >= Nanos::from_millis(5), "{used:?}");
        assert_eq!(used.passes, 5);
        assert!(TaskReading::of(libc::pid_t::MAX, 0, &mut room).is_err());
    }
}
