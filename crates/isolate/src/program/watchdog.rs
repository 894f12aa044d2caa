//! The watchdog of a program with a real-time policy: it detects tasks that the program's real-time
//! threads starve.
//!
//! A task is starved if it is runnable and last ran on one of the program's CPUs, has not run for
//! [`OWN_LIMIT`] (a thread of the program) or [`OTHER_LIMIT`] (any other task, such as a per-CPU
//! worker), and another real-time thread of the program has been runnable on that CPU during that
//! time. The kernel's own detection is slower: RCU stalls after 21 s, workqueue lockups after 30 s.
//!
//! `/proc/PID/task/TID/stat` (`proc_pid_stat(5)`) has the state and the CPU, `schedstat` the number
//! of time slices and the run time; without that file (`CONFIG_SCHED_INFO`), the times in `stat`
//! are used, in clock ticks. Not detected: a task that is starved between two checks; with
//! `hidepid=`, tasks of other users.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use facts::TaskStat;
use units::{Cpu, CpuSet, Nanos};

use crate::task::Task;
use crate::thread::set_policy;
use crate::thread::waiting::stats;

/// The interval of checks.
pub const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long a thread of the program may be starved.
pub(crate) const OWN_LIMIT: Duration = Duration::from_secs(3);
/// How long any other task may be starved.
pub(crate) const OTHER_LIMIT: Duration = Duration::from_secs(20);
/// The maximum number of passes, each of which finds threads started during the last one.
const PASSES: usize = 50;

/// A task that was runnable but did not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Starved {
    /// The task.
    pub task: Task,
    /// Whether it is a thread of the program.
    pub is_own: bool,
    /// The CPU on which it is runnable.
    pub cpu: Cpu,
    /// The minimum time for which it has not run.
    pub waited: Nanos,
    /// The program's real-time thread that was runnable on that CPU.
    pub holder: Task,
}

impl fmt::Display for Starved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, is_own, cpu, waited, holder } = self;
        let prefix = if *is_own { "the program's own thread " } else { "" };
        let seconds = Duration::from(*waited).as_secs();
        write!(
            f,
            "{prefix}{task} was runnable on CPU {cpu} for {seconds} s and did not run, because \
             the program's real-time thread {holder} held the CPU"
        )
    }
}

/// Detects starved tasks; to be called at every [`CHECK_INTERVAL`].
#[derive(Debug)]
pub struct Watchdog {
    /// The process prefix descendants are the threads of the program.
    root: u32,
    cpus: CpuSet,
    waiting: HashMap<(u32, u64), Waiting>,
}

/// A task that has not run since a check.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    ran: Ran,
}

/// The run time and the number of time slices of a task.
type Ran = (u64, u64);

impl Watchdog {
    pub(crate) fn new(root: u32, cpus: CpuSet) -> Self {
        Self { root, cpus, waiting: HashMap::new() }
    }

    /// The task that has been starved for the longest time beyond its limit, if any.
    pub fn check(&mut self) -> Option<Starved> {
        self.update(Instant::now(), &snapshot())
    }

    fn update(&mut self, now: Instant, threads: &[Thread]) -> Option<Starved> {
        let own = descendants(threads, self.root);
        let runnable =
            |thread: &&Thread| thread.is_runnable && self.cpus.contains(thread.cpu);
        let runnable: Vec<&Thread> = threads.iter().filter(runnable).collect();
        let mut waiting = HashMap::new();
        let mut starved = Vec::new();
        for thread in &runnable {
            let holds = |other: &&&Thread| {
                other.cpu == thread.cpu
                    && other.is_real_time()
                    && own.contains(&other.pid)
                    && other.key() != thread.key()
            };
            let Some(holder) = runnable.iter().find(holds) else { continue };
            let same = self.waiting.remove(&thread.key());
            let same = same.filter(|before| before.ran == thread.ran);
            let since = same.map_or(now, |before| before.since);
            waiting.insert(thread.key(), Waiting { since, ran: thread.ran });
            let is_own = own.contains(&thread.pid);
            let waited = now.saturating_duration_since(since);
            if waited >= if is_own { OWN_LIMIT } else { OTHER_LIMIT } {
                let waited = Nanos::from_nanos(waited.as_nanos().try_into().unwrap_or(0));
                let (task, holder) = (thread.task.clone(), holder.task.clone());
                starved.push(Starved { task, is_own, cpu: thread.cpu, waited, holder });
            }
        }
        self.waiting = waiting;
        starved.into_iter().max_by_key(|starved| starved.waited)
    }
}

/// Sets all real-time threads of a process's descendants to `SCHED_OTHER`; returns their number.
pub(crate) fn make_ordinary(root: u32) -> usize {
    let mut changed = HashSet::new();
    for _ in 0..PASSES {
        let threads = snapshot();
        let own = descendants(&threads, root);
        let real_time = threads
            .iter()
            .filter(|thread| own.contains(&thread.pid) && thread.is_real_time());
        let before = changed.len();
        // Fails for threads that have ended or belong to another user.
        changed.extend(real_time.filter_map(|thread| {
            let done = set_policy(thread.task.tid, libc::SCHED_OTHER, 0);
            done.ok().map(|()| thread.key())
        }));
        if changed.len() == before {
            break;
        }
    }
    changed.len()
}

/// A thread of any process.
#[derive(Debug, Clone)]
struct Thread {
    pid: u32,
    parent: u32,
    task: Task,
    is_runnable: bool,
    cpu: Cpu,
    policy: libc::c_int,
    ran: Ran,
}

impl Thread {
    fn parse(pid: u32, stat: &str) -> Option<Self> {
        let stat = TaskStat::parse(stat)?;
        let (tid, started, name) = (stat.tid, stat.number(22)?, stat.name.to_owned());
        Some(Self {
            pid,
            parent: stat.number(4)?,
            task: Task { tid, started, name },
            is_runnable: stat.is_runnable(),
            cpu: Cpu::new(stat.number(39)?),
            policy: stat.number(41)?,
            ran: (stat.number(14)?, stat.number(15)?),
        })
    }

    fn key(&self) -> (u32, u64) {
        (self.task.tid, self.task.started)
    }

    fn is_real_time(&self) -> bool {
        [libc::SCHED_FIFO, libc::SCHED_RR].contains(&self.policy)
    }
}

/// All threads.
fn snapshot() -> Vec<Thread> {
    let thread = |(pid, stat): (u32, String)| {
        let thread = Thread::parse(pid, &stat)?;
        // Needed for runnable threads only.
        let ran = if thread.is_runnable { ran(pid, thread.task.tid) } else { None };
        Some(Thread { ran: ran.unwrap_or(thread.ran), ..thread })
    };
    stats().filter_map(thread).collect()
}

/// The run time of a thread in nanoseconds, and its number of time slices.
fn ran(pid: u32, tid: u32) -> Option<Ran> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    let run_ns = numbers.next()?.ok()?;
    Some((run_ns, numbers.nth(1)?.ok()?))
}

/// All descendants of a process.
fn descendants(threads: &[Thread], root: u32) -> HashSet<u32> {
    let mut found = HashSet::new();
    let mut last: HashSet<u32> = [root].into();
    while !last.is_empty() {
        let next = threads.iter().filter(|thread| last.contains(&thread.parent));
        let next: HashSet<u32> =
            next.map(|thread| thread.pid).filter(|pid| found.insert(*pid)).collect();
        last = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A runnable thread on CPU 1; the program is process 500, its supervisor 400.
    fn thread(tid: u32, policy: libc::c_int, ran: u64) -> Thread {
        let is_own = (500..600).contains(&tid);
        Thread {
            pid: if is_own { 500 } else { tid },
            parent: if is_own { 400 } else { 2 },
            task: Task { tid, started: 7, name: format!("it-{tid}") },
            is_runnable: true,
            cpu: Cpu::new(1),
            policy,
            ran: (ran, 1),
        }
    }

    /// The first result of the watchdog, called once per second with the threads at that second.
    fn first_result(
        threads: impl Fn(u64) -> Vec<Thread>,
        seconds: u64,
    ) -> Option<(u64, Starved)> {
        let mut watchdog = Watchdog::new(400, Cpu::new(1).into());
        let began = Instant::now();
        (0..seconds).find_map(|second| {
            let now = began + Duration::from_secs(second);
            Some((second, watchdog.update(now, &threads(second))?))
        })
    }

    /// Check that a starved thread of the program is detected after its limit, and any other task
    /// after a longer one.
    #[test]
    fn starved_tasks() {
        let (fifo, other) = (libc::SCHED_FIFO, libc::SCHED_OTHER);
        let own = |second| vec![thread(500, fifo, second), thread(501, fifo, 0)];
        let (after, found) = first_result(own, 60).unwrap();
        assert_eq!((after, found.is_own, found.task.tid), (3, true, 501));
        assert_eq!(
            found.to_string(),
            "the program's own thread it-501 (501) was runnable on CPU 1 for 3 s and did not \
             run, because the program's real-time thread it-500 (500) held the CPU"
        );
        let worker = |second| vec![thread(500, fifo, second), thread(23, other, 0)];
        let (after, found) = first_result(worker, 60).unwrap();
        assert_eq!((after, found.is_own, found.task.tid), (20, false, 23));
    }

    /// Check cases without starvation: a single real-time thread prefix run time does not increase;
    /// a thread that has run in between; an ordinary program; another CPU; another program.
    #[test]
    fn not_starved() {
        let (fifo, other) = (libc::SCHED_FIFO, libc::SCHED_OTHER);
        assert_eq!(first_result(|_| vec![thread(500, fifo, 0)], 60), None);
        let both =
            |second| vec![thread(500, fifo, second), thread(501, fifo, second / 2)];
        assert_eq!(first_result(both, 60), None);
        let ordinary = |_| vec![thread(500, other, 0), thread(501, other, 0)];
        assert_eq!(first_result(ordinary, 60), None);
        let elsewhere = |second| {
            let holder = Thread { cpu: Cpu::new(2), ..thread(500, fifo, second) };
            vec![holder, thread(501, fifo, 0)]
        };
        assert_eq!(first_result(elsewhere, 60), None);
        let foreign = |second| vec![thread(70, fifo, second), thread(23, other, 0)];
        assert_eq!(first_result(foreign, 60), None);
    }

    /// Check that the program consists of all descendants of its supervisor.
    #[test]
    fn the_programs_processes() {
        let child = Thread { pid: 510, parent: 500, ..thread(510, 0, 0) };
        let found = descendants(&[child, thread(500, 0, 0), thread(70, 0, 0)], 400);
        assert_eq!(found, HashSet::from([500, 510]));
    }

    /// Check that the threads of this machine are read, with this one as runnable.
    #[test]
    fn threads_of_this_machine() {
        let own = crate::thread::pinned::own().unwrap();
        let all = snapshot();
        let this = all.iter().find(|thread| thread.task.tid == own.tid).unwrap();
        assert_eq!((this.pid, this.task.started), (std::process::id(), own.started));
        assert!(this.is_runnable);
    }
}
