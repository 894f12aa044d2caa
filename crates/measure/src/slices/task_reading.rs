//! The usage and context switches of another process until now.
//!
//! Its CPU time is its CPU clock (`clock_getcpuclockid(3)`), which the kernel updates when it is
//! read, to the nanosecond; the numbers in `/proc/PID` may be a tick old. Its context switches,
//! voluntary and involuntary, are in `/proc/PID/status` (`proc_pid_status(5)`, since 2.6.23).
//!
//! The two are read one after the other: a process on another CPU continues in between.

use std::fs::File;
use std::io::{self, Read};

use facts::ContextSwitches;
use recording::TaskTime;
use units::Nanos;

use crate::time::counter;

/// `CPUCLOCK_SCHED` in `include/linux/posix-timers.h`: the scheduler's count.
const SCHEDULED: libc::clockid_t = 2;
/// The maximum length of a status.
const STATUS_MAX: usize = 1 << 14;

/// The totals of a process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TaskReading {
    pub(crate) cpu: Nanos,
    pub(crate) involuntary: u64,
    pub(crate) voluntary: u64,
    pub(crate) passes: u64,
}

impl TaskReading {
    /// Reads it; `passes` is what the process itself reports.
    ///
    /// # Errors
    /// If the process or its status does not exist.
    pub(crate) fn of(
        pid: libc::pid_t,
        passes: u64,
        buffer: &mut StatusBuffer,
    ) -> io::Result<Self> {
        let ContextSwitches { voluntary, involuntary } = buffer.switches(pid)?;
        let cpu = counter::kernel((!pid << 3) | SCHEDULED);
        Ok(Self { cpu, involuntary, voluntary, passes })
    }

    /// The difference to an earlier reading.
    pub(crate) fn since(&self, earlier: &Self) -> TaskTime {
        TaskTime {
            cpu_ns: self.cpu.saturating_sub(earlier.cpu),
            involuntary: self.involuntary.saturating_sub(earlier.involuntary),
            voluntary: self.voluntary.saturating_sub(earlier.voluntary),
            passes: self.passes.wrapping_sub(earlier.passes),
        }
    }
}

/// A reused buffer for a process's status.
#[derive(Debug)]
pub(crate) struct StatusBuffer {
    text: Vec<u8>,
    path: String,
}

impl StatusBuffer {
    pub(crate) fn new() -> Self {
        Self { text: vec![0; STATUS_MAX], path: String::new() }
    }

    /// The voluntary and the involuntary switches of a process.
    fn switches(&mut self, pid: libc::pid_t) -> io::Result<ContextSwitches> {
        use std::fmt::Write;
        self.path.clear();
        // Writing to a string does not fail.
        let _ = write!(self.path, "/proc/{pid}/status");
        let length = File::open(&self.path)?.read(&mut self.text)?;
        let text = self.text.get(..length).unwrap_or_default();
        let found = std::str::from_utf8(text).ok().and_then(ContextSwitches::parse);
        found.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check on this process that its CPU clock advances, and that a PID that does not exist is an
    /// error.
    #[test]
    fn this_process() {
        let pid = libc::pid_t::try_from(std::process::id()).unwrap();
        let mut buffer = StatusBuffer::new();
        let before = TaskReading::of(pid, 3, &mut buffer).unwrap();
        let begin = counter::kernel(libc::CLOCK_PROCESS_CPUTIME_ID);
        while counter::kernel(libc::CLOCK_PROCESS_CPUTIME_ID)
            < begin + Nanos::from_millis(5)
        {}
        let used = TaskReading::of(pid, 8, &mut buffer).unwrap().since(&before);
        assert!(used.cpu_ns >= Nanos::from_millis(5), "{used:?}");
        assert_eq!(used.passes, 5);
        assert!(TaskReading::of(libc::pid_t::MAX, 0, &mut buffer).is_err());
    }
}
