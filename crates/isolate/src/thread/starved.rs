//! Pinned threads of this process that are starved by a real-time task: such threads cannot even be
//! stopped.
//!
//! `/proc/self/task/TID/stat` has the state and the CPU of a thread, `schedstat` its run time.
//! While the tick of a `nohz_full` CPU is stopped, the kernel updates the run time of a running
//! thread only once per second: so it must be unchanged for longer.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use units::{Cpu, CpuSet};

use crate::numeric_entries::numeric_entries;
use crate::thread::waiting::{WaitingThread, parse, runnable};
use crate::thread::{affinity_of, restrict_thread};

const TASKS: &str = "/proc/self/task";
/// The time without an increase of the run time after which a thread is starved.
const STARVED_AFTER: Duration = Duration::from_millis(1_500);

/// A thread that was moved to another CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedThread {
    /// The CPU on which it was starved.
    pub cpu: Cpu,
    /// The real-time task on that CPU, if `/proc` shows one.
    pub occupant: Option<WaitingThread>,
}

/// Detects starved threads of this process that are restricted to one CPU.
#[derive(Debug)]
pub struct StarvedThreads {
    /// The CPUs to which threads may be moved.
    cpus: CpuSet,
    /// The run time of each runnable thread, and the time of its first check with that value.
    unchanged: BTreeMap<u32, (String, Instant)>,
}

impl StarvedThreads {
    /// Observes all threads of this process; starved ones are moved to these CPUs.
    pub fn new(cpus: CpuSet) -> Self {
        Self { cpus, unchanged: BTreeMap::new() }
    }

    /// Moves threads that have not run for 1.5 s, as seen in repeated calls, to other CPUs.
    pub fn move_starved(&mut self) -> Vec<MovedThread> {
        let waiting: Vec<_> =
            numeric_entries(TASKS).into_iter().filter_map(waiting).collect();
        self.unchanged.retain(|tid, (earlier, _)| {
            waiting.iter().any(|(one, _, ran)| one == tid && ran == earlier)
        });
        let mut moved = Vec::new();
        for (tid, cpu, ran) in waiting {
            let (_, since) = self.unchanged.entry(tid).or_insert((ran, Instant::now()));
            if since.elapsed() >= STARVED_AFTER && leave(tid, cpu, &self.cpus) {
                self.unchanged.remove(&tid);
                moved.push(MovedThread { cpu, occupant: occupant(cpu) });
            }
        }
        moved
    }
}

/// A runnable thread of this process, its CPU, and its run time.
fn waiting(tid: u32) -> Option<(u32, Cpu, String)> {
    let stat = fs::read_to_string(format!("{TASKS}/{tid}/stat")).ok()?;
    let (cpu, _) = parse(std::process::id(), &stat)?;
    let times = fs::read_to_string(format!("{TASKS}/{tid}/schedstat")).ok()?;
    Some((tid, cpu, times.split_ascii_whitespace().next()?.to_owned()))
}

/// Moves a thread that is restricted to `cpu` to others of `cpus`; returns whether this succeeded.
fn leave(tid: u32, cpu: Cpu, cpus: &CpuSet) -> bool {
    let one: CpuSet = cpu.into();
    let is_pinned = affinity_of(tid).is_ok_and(|its| its == one);
    let others = cpus.without(&one);
    is_pinned && !others.is_empty() && restrict_thread(tid, &others).is_ok()
}

/// The real-time task of another process that runs on the CPU: the one of the highest priority.
fn occupant(cpu: Cpu) -> Option<WaitingThread> {
    let own = std::process::id();
    let there = runnable(|on| on == cpu).map(|(_, thread)| thread);
    there
        .filter(|thread| thread.pid != own && thread.outranks(None))
        .max_by_key(WaitingThread::rank)
}
