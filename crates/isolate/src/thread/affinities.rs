//! The affinities of this process's threads, restored after a change that resets all of them.
//!
//! A thread that enters or leaves a cgroup may run on all of the cgroup's CPUs: its previous
//! restriction (`taskset`, `isolcpus=`) is lost. `/proc/self/task` lists a process's threads;
//! threads that are started later are not included.

use units::CpuSet;

use crate::numeric_entries::numeric_entries;
use crate::task::{Stat, Task};
use crate::thread::{affinity_of, mask_of, set_affinity_of};

/// Affinities of threads, which are restored when this is dropped.
#[derive(Debug)]
pub(crate) struct Affinities {
    process: u32,
    threads: Vec<(Task, CpuSet)>,
}

impl Affinities {
    /// Reads those of this process's threads.
    pub(crate) fn now() -> Self {
        let numbers = numeric_entries("/proc/self/task").into_iter();
        let of = |tid: u32| Some((Stat::of(tid)?.task, affinity_of(tid).ok()?));
        Self { process: std::process::id(), threads: numbers.filter_map(of).collect() }
    }
}

impl Drop for Affinities {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        for (thread, cpus) in &self.threads {
            let moved = affinity_of(thread.tid).is_ok_and(|now| now != *cpus);
            if moved && thread.check().is_ok() {
                // Fails if the CPUs are offline by now; the kernel then has chosen others.
                let _ = set_affinity_of(thread.tid, &mask_of(cpus));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::pin;

    /// Check that the affinity of a thread is restored.
    #[test]
    fn affinities_are_restored() {
        let moved = std::thread::spawn(|| {
            let before = affinity_of(0).unwrap();
            let own = crate::thread::pinned::own().unwrap();
            let mut affinities = Affinities::now();
            // Other tests' threads must not be changed.
            affinities.threads.retain(|(thread, _)| *thread == own);
            pin(before.first().unwrap()).unwrap();
            drop(affinities);
            (before, affinity_of(0).unwrap())
        });
        let (before, after) = moved.join().unwrap();
        assert_eq!(before, after);
    }
}
