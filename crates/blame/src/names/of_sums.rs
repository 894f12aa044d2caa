//! The names of threads and interrupts of which BPF programs have sums, and no events.

use facts::Root;
use recording::Culprit;
use units::Cpu;

use crate::level::Level;
use crate::names::Names;
use crate::records::{Lane, Mark, Record};

/// `enum level` of `bpf/nesting.h`.
const LEVELS: [Level; 3] = [Level::Softirq, Level::Handler, Level::Vector];

/// The names of threads and interrupts.
pub(crate) struct Named(Names);

impl Named {
    /// The names of these.
    pub(crate) fn read(root: &Root, records: Vec<Record>) -> Self {
        let mut lane = Lane::new(Cpu::new(0));
        lane.records = records;
        Self(Names::read(root, &[lane]))
    }

    /// One of them.
    pub(crate) fn culprit(&self, record: &Record) -> Culprit {
        self.0.culprit(record)
    }

    /// The thread; `None`: the idle task.
    pub(crate) fn thread(&self, record: &Record) -> Option<Culprit> {
        (!record.is_idle()).then(|| self.culprit(record))
    }
}

/// A run of a thread.
pub(crate) fn run_record(tid: u32, process: u32, prio: i32, comm: [u8; 16]) -> Record {
    let prio = u64::from(u32::from_ne_bytes(prio.to_ne_bytes()));
    let is_self = process == std::process::id();
    Record {
        level: Level::Thread,
        start: 0,
        end: 0,
        detail: u64::from(process) << 32 | prio,
        id: tid,
        comm,
        mark: Mark { is_self, ..Mark::default() },
    }
}

/// An interrupt or a softirq; `None` for a level that it does not have.
pub(crate) fn interrupt_record(level: u32, id: u32) -> Option<Record> {
    let level = *LEVELS.get(usize::try_from(level).ok()?)?;
    let (comm, mark) = ([0; 16], Mark::default());
    Some(Record { level, start: 0, end: 0, detail: 0, id, comm, mark })
}
