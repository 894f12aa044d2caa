//! Turns: QEMU's own threads are kept from racing.
//!
//! In instruction-counted time QEMU runs all CPUs of a guest in one thread; another one
//! lets the clock jump while they are all idle, and is woken at each timer that expires.
//! When the host delays it until the next timer is due, it may be the one to raise the
//! guest's interrupt, which ends the running CPU's turn: then guests of several CPUs go
//! another way (QEMU 10.0, `accel/tcg/tcg-accel-ops-rr.c`, `util/main-loop.c`). On one CPU of
//! the host, and first whenever it is woken, it is never late.
//!
//! A boot is given the CPU on which the fewest run, of all labs of this machine.

use isolate::Berth;
use rustix::thread::{CpuSet as Affinity, sched_getaffinity};
use units::{Cpu, CpuSet};

/// The CPUs on which QEMU takes turns; none where this process may not order threads.
#[derive(Debug)]
pub(crate) struct Turns(CpuSet);

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
        Self(cpus.collect())
    }

    /// Whether threads can be ordered at all.
    pub(crate) fn can_be_taken(&self) -> bool {
        !self.0.is_empty()
    }

    /// A CPU for a boot, until that ends.
    pub(crate) fn take(&self) -> Option<Berth> {
        isolate::berth(&self.0)
    }
}
