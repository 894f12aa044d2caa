//! Threads of this process that are runnable and do not get to run, because a real-time task has
//! their CPU: they cannot even end by themselves.
//!
//! `/proc/self/task/TID/stat` says that a thread is runnable and where, `schedstat` for how long
//! it has run. While the tick of a `nohz_full` CPU is stopped, the kernel counts that of a
//! running thread once a second only: so a thread must have stood still for longer.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use units::{Cpu, CpuSet};

use crate::numbered::numbered;
use crate::thread::waiting::{WaitingThread, parse, runnable};
use crate::thread::{affinity_of, keep_on};

const TASKS: &str = "/proc/self/task";
/// For how long a thread must not have run.
const STILL: Duration = Duration::from_millis(1_500);

/// A thread that was moved to another CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The CPU on which it did not get to run.
    pub cpu: Cpu,
    /// The real-time task that had that CPU, where `/proc` shows one.
    pub occupant: Option<WaitingThread>,
}

/// The threads of this process that may run on one CPU only.
#[derive(Debug)]
pub struct PinnedThreads {
    /// Where they may be moved.
    cpus: CpuSet,
    /// How much each runnable one had run, and when that was first seen.
    still: BTreeMap<u32, (String, Instant)>,
}

impl PinnedThreads {
    /// All of them, which may be moved to any of these CPUs.
    pub fn new(cpus: CpuSet) -> Self {
        Self { cpus, still: BTreeMap::new() }
    }

    /// Moves those to other CPUs that have not run since earlier calls, over 1.5 s.
    pub fn move_starved(&mut self) -> Vec<Moved> {
        let waiting: Vec<_> = numbered(TASKS).into_iter().filter_map(waiting).collect();
        self.still.retain(|tid, (had, _)| {
            waiting.iter().any(|(one, _, ran)| one == tid && ran == had)
        });
        let mut moved = Vec::new();
        for (tid, cpu, ran) in waiting {
            let (_, since) = self.still.entry(tid).or_insert((ran, Instant::now()));
            if since.elapsed() >= STILL && leave(tid, cpu, &self.cpus) {
                self.still.remove(&tid);
                moved.push(Moved { cpu, occupant: occupant(cpu) });
            }
        }
        moved
    }
}

/// A runnable thread of this process, its CPU, and how much it has run.
fn waiting(tid: u32) -> Option<(u32, Cpu, String)> {
    let stat = fs::read_to_string(format!("{TASKS}/{tid}/stat")).ok()?;
    let (cpu, _) = parse(std::process::id(), &stat)?;
    let times = fs::read_to_string(format!("{TASKS}/{tid}/schedstat")).ok()?;
    Some((tid, cpu, times.split_ascii_whitespace().next()?.to_owned()))
}

/// Moves a thread that may run on that CPU only to any other of those; whether it could be.
fn leave(tid: u32, cpu: Cpu, cpus: &CpuSet) -> bool {
    let one: CpuSet = [cpu].into_iter().collect();
    let is_pinned = affinity_of(tid).is_ok_and(|its| its == one);
    let others = cpus.without(&one);
    is_pinned && !others.is_empty() && keep_on(tid, &others).is_ok()
}

/// The real-time task of another process that runs there; those of a lower priority wait, too.
fn occupant(cpu: Cpu) -> Option<WaitingThread> {
    let own = std::process::id();
    let there = runnable(|on| on == cpu).map(|(_, thread)| thread);
    there
        .filter(|thread| thread.pid != own && thread.outranks(None))
        .max_by_key(WaitingThread::rank)
}
