//! Runs of a program's threads on CPUs that are not measured.
//!
//! They are few: a program is restricted to its CPUs, and runs elsewhere only if it changes that itself.
//! So one queue for all CPUs suffices, from which each run is read with a system call.

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use units::Cpu;

use crate::bpf::attached::failed;
use crate::bpf::object::{Loaded, Opened};
use crate::bpf::ring::Record;
use crate::bpf::threads::decoded;
use crate::error::Error;
use crate::level::Level;
use crate::records::{self, Outside};

/// The runs that are unread at most: those of a thread that wakes up 1000 times per second in the
/// minute between two readings.
const RUNS: u32 = 1 << 16;

/// As `outside` in `events.bpf.c`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Run {
    run: Record,
    cpu: u64,
}

/// The queue, and each CPU's number of runs for which it had no room.
pub(crate) struct OutsideQueue {
    runs: MapHandle,
    cpus: MapHandle,
}

impl OutsideQueue {
    /// Sets the size of the queue before it is made.
    ///
    /// # Errors
    /// The object has none.
    pub(crate) fn size(opened: &mut Opened) -> Result<(), Error> {
        opened.set_capacity("outside_runs", RUNS)
    }

    /// # Errors
    /// Too many files are open.
    pub(crate) fn new(loaded: &Loaded) -> Result<Self, Error> {
        let map = |name| MapHandle::try_from(&loaded.map(name)?).map_err(failed);
        Ok(Self { runs: map("outside_runs")?, cpus: map("outside_cpus")? })
    }

    /// Moves the runs that have ended to `outside`.
    pub(crate) fn drain(&self, outside: &mut Outside) {
        while let Ok(Some(bytes)) = self.runs.lookup_and_delete(&[]) {
            let Some(run) = run_of(&bytes) else { return };
            outside.push(run);
        }
        let each = self.cpus.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let lost = |cpu: Vec<u8>| number(cpu.get(8..16)?);
        let each = each.ok().flatten().into_iter().flatten();
        outside.set_lost(each.filter_map(lost).sum());
    }
}

fn number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

fn run_of(bytes: &[u8]) -> Option<(Cpu, records::Record)> {
    let Run { run, cpu } = decoded(bytes)?;
    let cpu = Cpu::new(u32::try_from(cpu).ok()?);
    Some((cpu, run.event(Level::Thread, [0; 16])?))
}

#[cfg(test)]
mod tests {
    use super::Run;
    use crate::bpf::OBJECT;
    use crate::bpf::object::layout::check_layout;

    /// Check that the structure is that of the BPF programs, and that the count is where it is read.
    #[test]
    fn layouts() {
        struct Of {
            since: u64,
            lost: u64,
        }
        check_layout!(OBJECT, "outside", Run { run, cpu });
        check_layout!(OBJECT, "outside_cpu", Of { since, lost });
        assert_eq!(std::mem::offset_of!(Of, lost), 8);
    }
}
