//! Threads and processes, identified by PID and start time, since PIDs are reused.
//!
//! From `/proc/PID/stat` (`proc_pid_stat(5)`): field 9 are flags (`PF_*` in
//! `include/linux/sched.h`; those used here are unchanged since 3.16), field 22 is the start time
//! in clock ticks since boot.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};

use facts::TaskStat;
use serde::{Deserialize, Serialize};

const PF_KTHREAD: u64 = 0x0020_0000;
const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

/// A thread or process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The thread ID.
    pub tid: u32,
    /// The start time in clock ticks since boot.
    pub started: u64,
    /// The name.
    pub name: String,
}

/// The required fields of `stat`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) task: Task,
    flags: u64,
}

impl Stat {
    /// Reads the file; `None` if the task does not exist.
    pub(crate) fn of(tid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{tid}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let stat = TaskStat::parse(text)?;
        let (tid, started, name) = (stat.tid, stat.number(22)?, stat.name.to_owned());
        Some(Self { task: Task { tid, started, name }, flags: stat.number(9)? })
    }

    /// Whether the affinity can be changed from user space.
    pub(crate) fn is_movable(&self) -> bool {
        self.flags & PF_NO_SETAFFINITY == 0
    }

    /// Whether this is a worker of an unbound workqueue, whose affinity user space cannot set.
    pub(crate) fn is_unbound_worker(&self) -> bool {
        let is_fixed = self.flags & PF_KTHREAD != 0 && !self.is_movable();
        is_fixed && self.task.name.starts_with("kworker/u")
    }

    /// Whether this is a kernel thread whose affinity can be changed.
    pub(crate) fn is_movable_kthread(&self) -> bool {
        self.flags & PF_KTHREAD != 0 && self.is_movable()
    }
}

impl Task {
    /// This process.
    pub(crate) fn own() -> Option<Self> {
        Stat::of(std::process::id()).map(|stat| stat.task)
    }

    /// Checks that the task still exists, and its ID has not been reused.
    ///
    /// # Errors
    /// `NotFound` if the task has ended.
    pub(crate) fn check(&self) -> io::Result<()> {
        let same = Stat::of(self.tid).is_some_and(|now| now.task.started == self.started);
        if same {
            Ok(())
        } else {
            Err(io::Error::new(ErrorKind::NotFound, "the task has ended"))
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.tid)
    }
}

/// A process by PID and name, for messages: `process 708 (noisefloor)`.
pub fn describe_process(process: u32) -> String {
    match fs::read_to_string(format!("/proc/{process}/comm")) {
        Ok(name) => format!("process {process} ({})", name.trim_end()),
        Err(_) => format!("process {process}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that fields are found after names with spaces and parentheses.
    #[test]
    fn fields_behind_names() {
        let text = "12 (a) b (c)) S 2 0 0 0 -1 2129984 0 0 0 0 0 5 0 0 20 0 1 0 77 0 0 18446744073709551615";
        let stat = Stat::parse(text).unwrap();
        let task = Task { tid: 12, started: 77, name: "a) b (c)".to_owned() };
        assert_eq!(stat, Stat { task, flags: 2_129_984 });
        assert!(stat.is_movable_kthread());
        assert!(
            !Stat { flags: PF_KTHREAD | PF_NO_SETAFFINITY, ..stat }.is_movable_kthread()
        );
        assert_eq!(Stat::parse("12 (a"), None);
    }

    /// Check that this process exists, and that another start time is another process.
    #[test]
    fn numbers_are_used_again() {
        let own = Task::own().unwrap();
        own.check().unwrap();
        let earlier = Task { started: own.started + 1, ..own };
        assert_eq!(earlier.check().unwrap_err().kind(), ErrorKind::NotFound);
    }
}
