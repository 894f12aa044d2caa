//! Turns: QEMU's own threads are kept from racing.
//!
//! In instruction-counted time QEMU runs all CPUs of a guest in one thread; another one
//! lets the clock jump while they are all idle, and is woken at each timer that expires.
//! When the host delays it until the next timer is due, it may be the one to raise the
//! guest's interrupt, which ends the running CPU's turn: then guests of several CPUs go
//! another way (QEMU 10.0, `accel/tcg/tcg-accel-ops-rr.c`, `util/main-loop.c`). On one CPU of
//! the host, and first whenever it is woken, it is never late.
//!
//! A boot is given the CPU on which the fewest of this lab's run.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rustix::thread::{CpuSet as Affinity, sched_getaffinity};
use units::Cpu;

/// The CPUs on which QEMU takes turns, and how many boots run on each; none where this
/// process may not order threads.
#[derive(Debug)]
pub(crate) struct Turns(Mutex<BTreeMap<Cpu, usize>>);

/// A boot's CPU, until it ends.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    pub(crate) cpu: Cpu,
}

impl Turns {
    /// The CPUs that this process may run on, where it may order threads.
    pub(crate) fn find() -> Self {
        let allowed = match isolate::may_take_turns() {
            Ok(()) => sched_getaffinity(None).ok(),
            Err(_) => None,
        };
        let cpus = allowed.iter().flat_map(|allowed| {
            let numbers = (0..Affinity::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
            numbers.filter_map(|cpu| u32::try_from(cpu).ok().map(Cpu::new))
        });
        Self(Mutex::new(cpus.map(|cpu| (cpu, 0)).collect()))
    }

    /// Whether threads can be ordered at all.
    pub(crate) fn can_be_taken(&self) -> bool {
        !self.counts().is_empty()
    }

    /// A CPU for a boot.
    pub(crate) fn take(&self) -> Option<Turn<'_>> {
        let mut counts = self.counts();
        let (cpu, count) = counts.iter_mut().min_by_key(|(_, count)| **count)?;
        *count += 1;
        Some(Turn { turns: self, cpu: *cpu })
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, BTreeMap<Cpu, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(count) = self.turns.counts().get_mut(&self.cpu) {
            *count -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(cpus: u32) -> Turns {
        Turns(Mutex::new((0..cpus).map(|cpu| (Cpu::new(cpu), 0)).collect()))
    }

    /// Check that boots are spread over the CPUs, and that a CPU is free again when its
    /// boot has ended.
    #[test]
    fn the_least_busy_cpu() {
        let turns = turns(2);
        let first = turns.take().unwrap();
        let second = turns.take().unwrap();
        assert_eq!((first.cpu, second.cpu), (Cpu::new(0), Cpu::new(1)));
        drop(second);
        assert_eq!(turns.take().unwrap().cpu, Cpu::new(1));
    }

    /// Check that without CPUs there are no turns.
    #[test]
    fn none() {
        assert!(!turns(0).can_be_taken());
        assert!(turns(0).take().is_none());
    }
}
