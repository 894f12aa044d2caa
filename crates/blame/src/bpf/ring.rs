//! What the BPF programs wrote, read through mmap without a system call.
//!
//! Each measured CPU has a lane with a ring of records for each level, and says how many it has
//! ever written to each. A further ring has what the hypervisor's clock counted. What was
//! overwritten before it was read is counted as lost: the record that is being written takes the
//! place of the one a whole ring before it.

use std::os::fd::AsFd;
use std::sync::atomic::{Ordering, fence};

use crate::bpf::mapped::Mapped;
use crate::bpf::skeleton::events::types::{comm, lane, record};
use crate::error::Error;
use crate::level::Level;
use crate::room::{RINGS, Room, STEAL};
use crate::seen::{Mark, Record, Stolen};

/// As in `events.bpf.c`.
const OWN: u64 = 1 << 32;
const RUNNABLE: u64 = 1 << 33;
const KERNEL: u64 = 1 << 34;

/// The rings of all lanes, and how far each was read.
pub(crate) struct Rings {
    lanes: Mapped<lane>,
    records: Mapped<record>,
    comms: Mapped<comm>,
    room: Room,
    read: Vec<[u64; RINGS]>,
}

impl Rings {
    /// The rings of `cpus` lanes, each with that room.
    pub(crate) fn new(
        lanes: &impl AsFd,
        records: &impl AsFd,
        comms: &impl AsFd,
        cpus: usize,
        room: Room,
    ) -> Result<Self, Error> {
        let (lanes, records) =
            (Mapped::new(lanes, cpus)?, Mapped::new(records, cpus * room.of_lane())?);
        let comms = Mapped::new(comms, cpus * room.depth(Level::Thread as usize))?;
        Ok(Self { lanes, records, comms, room, read: vec![[0; RINGS]; cpus] })
    }

    /// Hands on what was written at one level of a lane since the last time, record by record;
    /// `None` for one that was overwritten before it was read.
    pub(crate) fn drain(
        &mut self,
        lane: usize,
        level: Level,
        take: impl FnMut(Option<Record>),
    ) {
        let read = |rings: &Self, number| rings.event(lane, level, number);
        self.drain_ring(lane, level as usize, read, take);
    }

    /// The same for what the hypervisor took.
    pub(crate) fn drain_steal(&mut self, lane: usize, take: impl FnMut(Option<Stolen>)) {
        let read = |rings: &Self, number| {
            let record { start: from, end: until, detail: ns, .. } =
                rings.record(lane, STEAL, number)?;
            Some(Stolen { from, until, ns })
        };
        self.drain_ring(lane, STEAL, read, take);
    }

    /// Whether the hypervisor's clock has ever counted anything on that CPU: where it has not,
    /// there may be none.
    pub(crate) fn has_steal_clock(&self, lane: usize) -> bool {
        self.lanes.read(lane).is_some_and(|lane| lane.slots[STEAL].detail > 0)
    }

    fn drain_ring<T>(
        &mut self,
        lane: usize,
        ring: usize,
        read: impl Fn(&Self, u64) -> Option<T>,
        mut take: impl FnMut(Option<T>),
    ) {
        let Some(head) = self.head(lane, ring) else { return };
        fence(Ordering::Acquire);
        let depth = u64::try_from(self.room.depth(ring)).unwrap_or(u64::MAX);
        for number in self.read[lane][ring]..head {
            let record = read(self, number);
            fence(Ordering::Acquire);
            let is_there = |head: u64| head < number.saturating_add(depth);
            take(record.filter(|_| self.head(lane, ring).is_some_and(is_there)));
        }
        self.read[lane][ring] = head;
    }

    fn head(&self, lane: usize, ring: usize) -> Option<u64> {
        self.lanes.read(lane).map(|lane| lane.slots[ring].head)
    }

    fn record(&self, lane: usize, ring: usize, number: u64) -> Option<record> {
        self.records.read(lane * self.room.of_lane() + self.room.place(ring, number))
    }

    fn event(&self, lane: usize, level: Level, number: u64) -> Option<Record> {
        let ring = level as usize;
        let record { start, end, detail, id } = self.record(lane, ring, number)?;
        let comm = match level {
            Level::Thread => {
                let place = self.room.within(ring, number);
                self.comms.read(lane * self.room.depth(ring) + place)?.name
            }
            _ => [0; 16],
        };
        let comm = comm.map(|letter| letter.to_ne_bytes()[0]);
        let mark = Mark {
            is_own: id & OWN != 0,
            is_runnable: id & RUNNABLE != 0,
            is_kernels: id & KERNEL != 0,
        };
        let id = u32::try_from(id & u64::from(u32::MAX)).ok()?;
        Some(Record { level, start, end, detail, id, comm, mark })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;
    use std::time::{Duration, Instant};

    use facts::{Facts, Root};
    use units::{Cpu, CpuSet};

    use crate::bpf::{Points, Programs};
    use crate::seen::Lane;
    use crate::source::{EventSource, Threads};

    /// The longest that rings go unread.
    const UNREAD: Duration = Duration::from_millis(131);

    /// Two threads hand that CPU to each other, as fast as they can. They are real-time threads:
    /// on a busy CPU ordinary ones would hand it to others, who keep it.
    fn switch(cpu: Cpu, length: Duration) {
        let both = Barrier::new(2);
        let yields = || {
            isolate::outrank(isolate::highest_priority()).unwrap();
            isolate::pin(cpu).unwrap();
            both.wait();
            let begin = Instant::now();
            while begin.elapsed() < length {
                (0..64).for_each(|_| thread::yield_now());
            }
        };
        thread::scope(|scope| [(); 2].map(|()| scope.spawn(yields)).map(drop));
    }

    /// Check that rings hold all that comes from threads that only switch, for as long as they may
    /// go unread, and that all of it is read.
    #[test]
    fn hold_the_highest_rate() {
        let facts = Facts::read(&Root::live());
        let cpu = facts.cpus.allowed.get().unwrap().iter().last().unwrap();
        if let Err(why) = isolate::may_outrank(isolate::highest_priority()) {
            return println!("skipped: hold_the_highest_rate: {why}");
        }
        let cpus = CpuSet::from_iter([cpu]);
        let mut programs = match Programs::load(&cpus, Points::Raw, Threads::All, &facts)
        {
            Ok(programs) => programs,
            Err(why) => return println!("skipped: hold_the_highest_rate: {why}"),
        };
        switch(cpu, UNREAD);
        programs.stop();
        let mut lanes = [Lane::new(cpu)];
        programs.read(&mut lanes);
        let [lane] = lanes;
        println!("{} events in {UNREAD:?}", lane.records.len());
        assert_eq!(lane.losses, []);
        assert!(lane.records.len() > 1_000, "{}", lane.records.len());
    }
}
