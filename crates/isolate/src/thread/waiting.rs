//! Runnable threads of a CPU: one of them runs, the others wait for it.
//!
//! `/proc/PID/task/TID/stat` (`proc_pid_stat(5)`): the name in parentheses, the state, and as
//! fields 39 to 41 the CPU on which the thread last ran, its real-time priority and its policy.
//!
//! How long they have waited is unknown; if `/proc` is mounted with `hidepid=`, only threads of the
//! same user are listed.

use std::fmt;
use std::fs;

use facts::TaskStat;
use rustix::thread::gettid;
use units::Cpu;

use crate::numeric_entries::numeric_entries;

/// A runnable thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingThread {
    /// The process ID.
    pub pid: u32,
    /// The thread ID.
    pub tid: u32,
    /// The name.
    pub name: String,
    /// The real-time priority, 1 to 99; 0 for an ordinary thread.
    pub rt_priority: u8,
    /// The scheduling policy.
    pub policy: ThreadPolicy,
}

/// The scheduling policy of a thread (`sched(7)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadPolicy {
    /// `SCHED_OTHER`, `SCHED_BATCH`, `SCHED_IDLE` or `SCHED_EXT`.
    Ordinary,
    /// `SCHED_FIFO`.
    Fifo,
    /// `SCHED_RR`.
    RoundRobin,
    /// `SCHED_DEADLINE`.
    Deadline,
}

impl ThreadPolicy {
    pub(crate) fn of(number: u32) -> Self {
        match number {
            1 => Self::Fifo,
            2 => Self::RoundRobin,
            6 => Self::Deadline,
            _ => Self::Ordinary,
        }
    }
}

impl WaitingThread {
    /// Whether a thread of this `SCHED_FIFO` priority, or an ordinary one, does not preempt it.
    pub(crate) fn outranks(&self, fifo: Option<u8>) -> bool {
        self.rank() >= fifo.unwrap_or(1)
    }

    /// The thread of the highest rank of a CPU runs: 0 for ordinary threads, the priority of
    /// real-time ones, and 100 for `SCHED_DEADLINE`.
    pub(crate) fn rank(&self) -> u8 {
        match self.policy {
            ThreadPolicy::Ordinary => 0,
            ThreadPolicy::Fifo | ThreadPolicy::RoundRobin => self.rt_priority,
            ThreadPolicy::Deadline => 100,
        }
    }
}

/// `stress (pid 12, SCHED_FIFO, priority 80)`; the thread ID is included if it is not that of the
/// process's first thread.
impl fmt::Display for WaitingThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, tid, name, rt_priority, policy } = self;
        write!(f, "{name} (pid {pid}")?;
        if tid != pid {
            write!(f, ", thread {tid}")?;
        }
        match policy {
            ThreadPolicy::Ordinary => f.write_str(")"),
            ThreadPolicy::Fifo => write!(f, ", SCHED_FIFO, priority {rt_priority})"),
            ThreadPolicy::RoundRobin => write!(f, ", SCHED_RR, priority {rt_priority})"),
            ThreadPolicy::Deadline => f.write_str(", SCHED_DEADLINE)"),
        }
    }
}

/// The threads that wait for the CPU on which the calling thread runs, by thread ID.
pub(crate) fn waiting(cpu: Cpu) -> Vec<WaitingThread> {
    let own = u32::try_from(gettid().as_raw_nonzero().get()).unwrap_or(0);
    let mut found: Vec<WaitingThread> = runnable(|on| on == cpu)
        .map(|(_, one)| one)
        .filter(|one| one.tid != own)
        .collect();
    found.sort_by_key(|thread| thread.tid);
    found
}

/// The runnable threads of the CPUs that `is_wanted` selects, each with its CPU.
pub(crate) fn runnable(
    is_wanted: impl Fn(Cpu) -> bool,
) -> impl Iterator<Item = (Cpu, WaitingThread)> {
    let threads = stats().filter_map(|(pid, stat)| parse(pid, &stat));
    threads.filter(move |(cpu, _)| is_wanted(*cpu))
}

/// The process ID and `stat` of every thread.
pub(crate) fn stats() -> impl Iterator<Item = (u32, String)> {
    numeric_entries("/proc").into_iter().flat_map(|pid| {
        let tasks = format!("/proc/{pid}/task");
        let stat = move |tid| {
            let text = fs::read_to_string(format!("{tasks}/{tid}/stat")).ok()?;
            Some((pid, text))
        };
        numeric_entries(&format!("/proc/{pid}/task")).into_iter().filter_map(stat)
    })
}

/// The thread and the CPU on which it last ran, if it is runnable.
pub(crate) fn parse(pid: u32, stat: &str) -> Option<(Cpu, WaitingThread)> {
    let stat = TaskStat::parse(stat).filter(TaskStat::is_runnable)?;
    let last = Cpu::new(stat.number(39)?);
    let (rt_priority, policy) = (stat.number(40)?, ThreadPolicy::of(stat.number(41)?));
    let (tid, name) = (stat.tid, stat.name.to_owned());
    Some((last, WaitingThread { pid, tid, name, rt_priority, policy }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(policy: ThreadPolicy, rt_priority: u8) -> WaitingThread {
        let name = "ktimers/1 (x)".to_owned();
        WaitingThread { pid: 20, tid: 21, name, rt_priority, policy }
    }

    /// Check that only runnable threads are returned, with their CPU, for any name.
    #[test]
    fn runnable_threads() {
        let stat = |state: &str| {
            format!(
                "21 (ktimers/1 (x)) {state} 2 0 0 0 -1 69238848 0 0 0 0 0 0 0 0 -2 0 1 0 8 \
                 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 17 1 1 1 0 0 0"
            )
        };
        let found = thread(ThreadPolicy::Fifo, 1);
        assert_eq!(parse(20, &stat("R")), Some((Cpu::new(1), found)));
        assert_eq!(parse(20, &stat("S")), None);
        assert_eq!(parse(20, "21 (a) R 1"), None);
    }

    /// Check which threads are not preempted by another one, and the format.
    #[test]
    fn ranks() {
        let fifo = thread(ThreadPolicy::Fifo, 50);
        let ranks = [None, Some(49), Some(50), Some(51)];
        assert_eq!(ranks.map(|own| fifo.outranks(own)), [true, true, true, false]);
        assert!(!thread(ThreadPolicy::Ordinary, 0).outranks(None));
        assert!(thread(ThreadPolicy::Deadline, 0).outranks(Some(99)));
        assert!(thread(ThreadPolicy::RoundRobin, 51).rank() > fifo.rank());
        assert_eq!(
            fifo.to_string(),
            "ktimers/1 (x) (pid 20, thread 21, SCHED_FIFO, priority 50)"
        );
        let other = WaitingThread { tid: 20, ..thread(ThreadPolicy::Ordinary, 0) };
        assert_eq!(other.to_string(), "ktimers/1 (x) (pid 20)");
    }
}
