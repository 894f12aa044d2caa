//! A fixed order of QEMU's threads, so that they do not race.
//!
//! In instruction-counted time QEMU runs all CPUs of a guest in one thread; another one lets the
//! clock jump while they are all idle, and is woken at each timer that expires. When the host
//! delays it until the next timer is due, it may be the one to raise the guest's interrupt, which
//! ends the running CPU's turn: then guests of several CPUs take another path (QEMU 10.0,
//! `accel/tcg/tcg-accel-ops-rr.c`, `util/main-loop.c`). On one CPU of the host, and first whenever
//! it is woken, it is never late.
//!
//! A guest of one CPU has no turns to end: the host may schedule QEMU's threads freely. A boot with
//! several gets the CPU with the fewest boots of all labs of this machine.

use isolate::GuestCpu;
use units::{CpuSet, chain};

/// The CPUs on which QEMU's threads can be ordered, or why they cannot.
#[derive(Debug)]
pub(crate) struct ThreadOrdering(Result<CpuSet, isolate::Error>);

impl ThreadOrdering {
    /// The CPUs that this process may run on, if it may order threads.
    pub(crate) fn find() -> Self {
        let allowed = isolate::may_order_threads().and_then(|()| isolate::allowed());
        Self(allowed)
    }

    /// Why threads cannot be ordered, if they cannot.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.0.as_ref().err().map(|error| chain(error))
    }

    /// A CPU for a boot, until the value is dropped.
    pub(crate) fn take(&self) -> Option<GuestCpu> {
        isolate::claim_guest_cpu(self.0.as_ref().ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a boot gets one of the CPUs of this process, on any machine, or that the reason
    /// why not is the kernel's own.
    #[test]
    fn cpus_or_a_reason() {
        let ordering = ThreadOrdering::find();
        match isolate::may_order_threads() {
            Ok(()) => {
                let slot = ordering.take().unwrap();
                assert!(isolate::allowed().unwrap().contains(slot.cpu));
                assert_eq!(ordering.refusal(), None);
            }
            Err(why) => {
                assert_eq!(ordering.refusal(), Some(chain(&why)));
                assert!(ordering.take().is_none());
            }
        }
    }
}
