//! A thread or process that can be told from a later one of the same number.
//!
//! `/proc/PID/stat` (`proc_pid_stat(5)`): the name in brackets, then the 3rd field on; the
//! 9th are flags (`PF_*` in `include/linux/sched.h`, unchanged since 3.16 for those used
//! here), the 22nd is when it started, in clock ticks since boot.

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
    /// Its number.
    pub tid: u32,
    /// When it started, in clock ticks since boot.
    pub started: u64,
    /// Its name.
    pub name: String,
}

/// What `stat` says of a task.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) task: Task,
    flags: u64,
}

impl Stat {
    /// Reads it; `None` where there is no such task any more.
    pub(crate) fn of(tid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{tid}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let stat = TaskStat::parse(text)?;
        let (tid, started, name) = (stat.tid, stat.number(22)?, stat.name.to_owned());
        Some(Self { task: Task { tid, started, name }, flags: stat.number(9)? })
    }

    /// Whether anybody may say where it runs.
    pub(crate) fn is_movable(&self) -> bool {
        self.flags & PF_NO_SETAFFINITY == 0
    }

    /// Whether it is a worker of an unbound workqueue: a program may not say where it runs.
    pub(crate) fn is_unbound_worker(&self) -> bool {
        let is_fixed = self.flags & PF_KTHREAD != 0 && !self.is_movable();
        is_fixed && self.task.name.starts_with("kworker/u")
    }

    /// Whether it is a thread of the kernel that may be moved.
    pub(crate) fn is_movable_kthread(&self) -> bool {
        self.flags & PF_KTHREAD != 0 && self.is_movable()
    }
}

impl Task {
    /// This process.
    pub(crate) fn own() -> Option<Self> {
        Stat::of(std::process::id()).map(|stat| stat.task)
    }

    /// Makes sure that this task is still the one of that number.
    ///
    /// # Errors
    /// `NotFound` where it is not.
    pub(crate) fn check(&self) -> io::Result<()> {
        let same = Stat::of(self.tid).is_some_and(|now| now.task.started == self.started);
        if same {
            Ok(())
        } else {
            Err(io::Error::new(ErrorKind::NotFound, "it has ended"))
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.tid)
    }
}

/// A process by its number and name, for messages: `process 708 (noisefloor)`.
pub fn described(process: u32) -> String {
    match fs::read_to_string(format!("/proc/{process}/comm")) {
        Ok(name) => format!("process {process} ({})", name.trim_end()),
        Err(_) => format!("process {process}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the fields are found behind any name.
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

    /// Check that this process is itself, and one that started at another time is not.
    #[test]
    fn numbers_are_used_again() {
        let own = Task::own().unwrap();
        own.check().unwrap();
        let earlier = Task { started: own.started + 1, ..own };
        assert_eq!(earlier.check().unwrap_err().kind(), ErrorKind::NotFound);
    }
}
