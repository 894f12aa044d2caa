//! Where this process's threads might run before something moved all of them.
//!
//! A thread that comes into a control group, or leaves one, may run on all of the group's CPUs:
//! what it was restricted to (`taskset`, `isolcpus=`) is forgotten. `/proc/self/task` lists a
//! process's threads. Threads that are started later are not in it.

use units::CpuSet;

use crate::numbered::numbered;
use crate::task::{Stat, Task};
use crate::thread::{affinity_of, mask_of, set_affinity_of};

/// Where threads might run; so they may again when this is dropped.
#[derive(Debug)]
pub(crate) struct Affinities {
    process: u32,
    threads: Vec<(Task, CpuSet)>,
}

impl Affinities {
    /// Those of this process's threads.
    pub(crate) fn now() -> Self {
        let numbers = numbered("/proc/self/task").into_iter();
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
                // CPUs that are gone by now make it fail; the thread is where it can be.
                let _ = set_affinity_of(thread.tid, &mask_of(cpus));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::pin;

    /// Check that a thread that was moved may run where it might before.
    #[test]
    fn where_they_were() {
        let moved = std::thread::spawn(|| {
            let before = affinity_of(0).unwrap();
            let own = crate::thread::seat::own().unwrap();
            let mut affinities = Affinities::now();
            // Other tests' threads have their own affairs.
            affinities.threads.retain(|(thread, _)| *thread == own);
            pin(before.first().unwrap()).unwrap();
            drop(affinities);
            (before, affinity_of(0).unwrap())
        });
        let (before, after) = moved.join().unwrap();
        assert_eq!(before, after);
    }
}
