//! The threads that could run on a CPU and wait for it.
//!
//! `/proc/PID/task/TID/stat` (`proc_pid_stat(5)`): the name in brackets, the state, and as 39th
//! to 41st field the CPU that the thread was last on, its real-time priority and its policy.
//!
//! Cannot see how long they have waited; where `/proc` is mounted with `hidepid=`, only those of
//! the same user.

use std::fs;

use rustix::thread::gettid;
use units::Cpu;

use crate::numbered::numbered;

/// A thread that waits for a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingThread {
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Its real-time priority, 1 to 99; 0 for an ordinary thread.
    pub rt_priority: u8,
}

/// Those that wait for that CPU, on which the calling thread runs, by their numbers.
pub(crate) fn waiting(cpu: Cpu) -> Vec<WaitingThread> {
    let own = u32::try_from(gettid().as_raw_nonzero().get()).unwrap_or(0);
    let mut found: Vec<WaitingThread> = threads()
        .filter_map(|stat| runnable(&stat, cpu))
        .filter(|thread| thread.tid != own)
        .collect();
    found.sort_by_key(|thread| thread.tid);
    found
}

/// The `stat` of every thread.
fn threads() -> impl Iterator<Item = String> {
    let processes = numbered("/proc").into_iter().map(|pid| format!("/proc/{pid}/task"));
    let tasks = processes.flat_map(|tasks| {
        let stat = |tid| format!("{tasks}/{tid}/stat");
        numbered(&tasks).into_iter().map(stat).collect::<Vec<_>>()
    });
    tasks.filter_map(|stat| fs::read_to_string(stat).ok())
}

/// The thread, if it could run and was last on that CPU.
fn runnable(stat: &str, cpu: Cpu) -> Option<WaitingThread> {
    // A name may hold blanks and brackets.
    let (head, rest) = stat.rsplit_once(") ")?;
    let (tid, name) = head.split_once(" (")?;
    let mut fields = rest.split_ascii_whitespace();
    let is_runnable = fields.next()? == "R";
    let last: u32 = fields.nth(35)?.parse().ok()?;
    let rt_priority = fields.next()?.parse().ok()?;
    let thread =
        WaitingThread { tid: tid.parse().ok()?, name: name.to_owned(), rt_priority };
    (is_runnable && last == cpu.get()).then_some(thread)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that only a thread that could run on that CPU counts, whatever its name is.
    #[test]
    fn runnable_threads() {
        let stat = |state: &str| {
            format!(
                "21 (ktimers/1 (x)) {state} 2 0 0 0 -1 69238848 0 0 0 0 0 0 0 0 -2 0 1 0 8 \
                 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 17 1 1 1 0 0 0"
            )
        };
        let name = "ktimers/1 (x)".to_owned();
        let thread = WaitingThread { tid: 21, name, rt_priority: 1 };
        assert_eq!(runnable(&stat("R"), Cpu::new(1)), Some(thread));
        assert_eq!(runnable(&stat("R"), Cpu::new(0)), None);
        assert_eq!(runnable(&stat("S"), Cpu::new(1)), None);
        assert_eq!(runnable("21 (a) R 1", Cpu::new(1)), None);
    }
}
