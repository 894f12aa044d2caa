//! What the BPF programs wrote, read through mmap without a system call.
//!
//! Each measured CPU has a lane with a ring of records for each level, and says how many it has
//! ever written to each. What was overwritten before it was read is counted as lost: the record
//! that is being written takes the place of the one a whole ring before it.

use std::os::fd::AsFd;
use std::sync::atomic::{Ordering, fence};

use crate::error::Error;
use crate::level::Level;
use crate::mapped::Mapped;
use crate::seen::{Mark, Record};
use crate::skeleton::events::types::{comm, lane, record};

/// As in `events.bpf.c`.
const OWN: u64 = 1 << 32;
const RUNNABLE: u64 = 1 << 33;

/// The rings of all lanes, and how far each was read.
pub(crate) struct Rings {
    lanes: Mapped<lane>,
    records: Mapped<record>,
    comms: Mapped<comm>,
    depth: usize,
    read: Vec<[u64; Level::ALL.len()]>,
}

impl Rings {
    /// The rings of `cpus` lanes, each of `depth` records.
    pub(crate) fn new(
        lanes: &impl AsFd,
        records: &impl AsFd,
        comms: &impl AsFd,
        cpus: usize,
        depth: usize,
    ) -> Result<Self, Error> {
        let records = Mapped::new(records, cpus * Level::ALL.len() * depth)?;
        let (lanes, comms) =
            (Mapped::new(lanes, cpus)?, Mapped::new(comms, cpus * depth)?);
        let read = vec![[0; Level::ALL.len()]; cpus];
        Ok(Self { lanes, records, comms, depth, read })
    }

    /// Hands on what was written to one ring of a lane since the last time, record by record;
    /// `None` for one that was overwritten before it was read.
    pub(crate) fn drain(
        &mut self,
        lane: usize,
        level: Level,
        mut take: impl FnMut(Option<Record>),
    ) {
        let Some(head) = self.head(lane, level) else { return };
        fence(Ordering::Acquire);
        for number in self.read[lane][level as usize]..head {
            let record = self.record(lane, level, number);
            fence(Ordering::Acquire);
            let depth = u64::try_from(self.depth).unwrap_or(u64::MAX);
            let is_there = |head: u64| head < number.saturating_add(depth);
            take(record.filter(|_| self.head(lane, level).is_some_and(is_there)));
        }
        self.read[lane][level as usize] = head;
    }

    fn head(&self, lane: usize, level: Level) -> Option<u64> {
        self.lanes.read(lane).map(|lane| lane.slots[level as usize].head)
    }

    fn record(&self, lane: usize, level: Level, number: u64) -> Option<Record> {
        let depth = u64::try_from(self.depth).ok()?;
        let within = usize::try_from(number % depth).ok()?;
        let ring = lane * Level::ALL.len() + level as usize;
        let record { start, end, detail, id } =
            self.records.read(ring * self.depth + within)?;
        let comm = match level {
            Level::Thread => self.comms.read(lane * self.depth + within)?.name,
            _ => [0; 16],
        };
        let comm = comm.map(|letter| letter.to_ne_bytes()[0]);
        let mark = Mark { is_own: id & OWN != 0, is_runnable: id & RUNNABLE != 0 };
        let id = u32::try_from(id & u64::from(u32::MAX)).ok()?;
        Some(Record { level, start, end, detail, id, comm, mark })
    }
}
