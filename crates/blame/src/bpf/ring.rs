//! The records of the BPF programs, read through mmap without a system call.
//!
//! Each measured CPU has a lane with a ring of records for each level, and the number of records
//! that were ever written to each. A further ring has the readings of the hypervisor's clock.
//! Records that were overwritten before they were read count as lost: the record that is being
//! written replaces the one a whole ring before it.

use std::mem::offset_of;
use std::sync::atomic::{Ordering, fence};

use libbpf_rs::{MapCore as _, MapFlags};
use recording::StoppedBy;
use units::{Cpu, CpuSet};

use crate::bpf::attached::failed;
use crate::bpf::mapped::Mapped;
use crate::bpf::object::Loaded;
use crate::error::Error;
use crate::level::Level;
use crate::records::{self, Mark, Stolen};
use crate::ring_sizes::{RINGS, RingSizes, STEAL};

/// As in `events.bpf.c`.
const OWN: u64 = 1 << 32;
const RUNNABLE: u64 = 1 << 33;
const KERNEL: u64 = 1 << 34;
const SELF: u64 = 1 << 35;
const STOPPED: u64 = 1 << 36;
const TRACED: u64 = 1 << 37;
const FROZEN: u64 = 1 << 38;
const DEAD: u64 = 1 << 39;

/// The records between two checks whether they have been overwritten.
const CHUNK: u64 = 64;

/// The records of a ring that are read at once if it has few: reading interrupts the CPU of the
/// reader for as long.
const SLICE: u64 = 512;

/// How much of the rings is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    /// Everything.
    All,
    /// A part of each ring that is not fuller than shortly after its alarm.
    Slice,
}

/// As in `events.bpf.c`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Slot {
    start: u64,
    detail: u64,
    head: u64,
    first: u32,
    mask: u32,
}

/// As in `events.bpf.c`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Lane {
    place: u32,
    own: u32,
    looked: u64,
    clock: u64,
    limited: u64,
    slots: [Slot; RINGS],
    spinner: u64,
    queue: u64,
    unused: [u64; 6],
}

/// As in `events.bpf.c`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Record {
    start: u64,
    end: u64,
    detail: u64,
    id: u64,
}

impl Record {
    /// What it records, with a thread's name; `None` if it was being written.
    pub(crate) fn event(self, level: Level, comm: [u8; 16]) -> Option<records::Record> {
        let Self { start, end, detail, id } = self;
        let has = |mark: u64| id & mark != 0;
        let stops = [
            (STOPPED, StoppedBy::Signal),
            (TRACED, StoppedBy::Debugger),
            (FROZEN, StoppedBy::Freezer),
        ];
        let mark = Mark {
            is_own: has(OWN),
            is_runnable: has(RUNNABLE),
            is_kernel: has(KERNEL),
            is_self: has(SELF),
            is_dead: has(DEAD),
            stopped_by: stops.iter().find(|(mark, _)| has(*mark)).map(|(_, by)| *by),
        };
        let id = u32::try_from(id & u64::from(u32::MAX)).ok()?;
        Some(records::Record { level, start, end, detail, id, comm, mark })
    }
}

/// As in `events.bpf.c`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Comm {
    name: [u8; 16],
}

/// Gives each measured CPU its rings, before its programs are attached. Threads of the process `own`, a
/// number of the kernel, are distinguished from others.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn begin_lanes(
    loaded: &Loaded,
    cpus: &CpuSet,
    sizes: RingSizes,
    own: u32,
) -> Result<(), Error> {
    let lanes = loaded.map("lanes")?;
    let of_lane = u32::try_from(sizes.of_lane()).unwrap_or(u32::MAX);
    for (place, cpu) in (1_u32..).zip(cpus.iter()) {
        let number = u32::try_from(cpu.index()).unwrap_or(u32::MAX);
        let mut lane = [0; size_of::<Lane>()];
        let mut set = |offset: usize, value: u32| {
            lane[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
        };
        set(offset_of!(Lane, place), place);
        set(offset_of!(Lane, own), own);
        let first = (place - 1).saturating_mul(of_lane);
        for (ring, (offset, depth)) in
            sizes.offsets().into_iter().zip(sizes.depths()).enumerate()
        {
            let slot = offset_of!(Lane, slots) + ring * size_of::<Slot>();
            set(slot + offset_of!(Slot, first), first.saturating_add(offset));
            set(slot + offset_of!(Slot, mask), depth - 1);
        }
        lanes.update(&number.to_ne_bytes(), &lane, MapFlags::ANY).map_err(failed)?;
    }
    Ok(())
}

/// The rings of all lanes, and the read position of each.
pub(crate) struct Rings {
    /// By CPU.
    lanes: Mapped<Lane>,
    /// The indices of the measured ones.
    cpus: Vec<usize>,
    records: Mapped<Record>,
    comms: Mapped<Comm>,
    sizes: RingSizes,
    read: Vec<[u64; RINGS]>,
    amount: Amount,
    /// Whether a ring was left with unread records.
    has_rest: bool,
}

impl Rings {
    /// The rings of these CPUs, of that size.
    pub(crate) fn new(
        loaded: &Loaded,
        cpus: &CpuSet,
        sizes: RingSizes,
    ) -> Result<Self, Error> {
        let cpus: Vec<usize> = cpus.iter().map(Cpu::index).collect();
        let count = cpus.len();
        let lanes = cpus.last().map_or(0, |last| last + 1);
        let lanes = Mapped::new(&loaded.map("lanes")?, lanes)?;
        let records = Mapped::new(&loaded.map("rings")?, count * sizes.of_lane())?;
        let names = count * sizes.depth(Level::Thread as usize);
        let comms = Mapped::new(&loaded.map("comms")?, names)?;
        let read = vec![[0; RINGS]; count];
        let (amount, has_rest) = (Amount::All, false);
        Ok(Self { lanes, cpus, records, comms, sizes, read, amount, has_rest })
    }

    /// Sets how much the following calls read.
    pub(crate) fn begin(&mut self, amount: Amount) {
        (self.amount, self.has_rest) = (amount, false);
    }

    /// Whether records were left unread since then.
    pub(crate) fn has_rest(&self) -> bool {
        self.has_rest
    }

    /// Passes on the new records of one level of a lane, one by one; `None` for one that was
    /// overwritten before it was read.
    pub(crate) fn drain(
        &mut self,
        lane: usize,
        level: Level,
        take: impl FnMut(Option<records::Record>),
    ) {
        let read = |rings: &Self, number| rings.event(lane, level, number);
        self.drain_ring(lane, level as usize, read, take);
    }

    /// The same for stolen time.
    pub(crate) fn drain_steal(&mut self, lane: usize, take: impl FnMut(Option<Stolen>)) {
        let read = |rings: &Self, number| {
            let Record { start: from, end: until, detail: ns, .. } =
                rings.record(lane, STEAL, number)?;
            Some(Stolen { from, until, ns })
        };
        self.drain_ring(lane, STEAL, read, take);
    }

    /// Whether the hypervisor's clock has ever counted on that CPU: if not, it may not exist.
    pub(crate) fn has_steal_clock(&self, lane: usize) -> bool {
        self.lane(lane).is_some_and(|lane| lane.slots[STEAL].detail > 0)
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
        let depth = u64::try_from(self.sizes.depth(ring)).unwrap_or(u64::MAX);
        let mut records = Vec::new();
        let mut next = self.read[lane][ring];
        let unread = head.saturating_sub(next);
        let is_slice = self.amount == Amount::Slice && unread <= depth / 4 + depth / 16;
        let whole = head;
        let head = if is_slice { head.min(next + SLICE) } else { head };
        self.has_rest |= head < whole;
        while next < head {
            let chunk = next..head.min(next + CHUNK);
            next = chunk.end;
            records.extend(chunk.clone().map(|number| read(self, number)));
            fence(Ordering::Acquire);
            let now = self.head(lane, ring);
            for (number, record) in chunk.zip(records.drain(..)) {
                let is_there = |now: u64| now < number.saturating_add(depth);
                take(record.filter(|_| now.is_some_and(is_there)));
            }
        }
        self.read[lane][ring] = head;
    }

    fn head(&self, lane: usize, ring: usize) -> Option<u64> {
        self.lane(lane).map(|lane| lane.slots[ring].head)
    }

    fn lane(&self, lane: usize) -> Option<Lane> {
        self.lanes.read(*self.cpus.get(lane)?)
    }

    fn record(&self, lane: usize, ring: usize, number: u64) -> Option<Record> {
        self.records.read(lane * self.sizes.of_lane() + self.sizes.place(ring, number))
    }

    fn event(&self, lane: usize, level: Level, number: u64) -> Option<records::Record> {
        let ring = level as usize;
        let record = self.record(lane, ring, number)?;
        let comm = match level {
            Level::Thread => {
                let place = self.sizes.within(ring, number);
                self.comms.read(lane * self.sizes.depth(ring) + place)?.name
            }
            Level::Softirq
            | Level::Handler
            | Level::Vector
            | Level::Nmi
            | Level::Quota => [0; 16],
        };
        record.event(level, comm)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;
    use std::time::{Duration, Instant};

    use facts::{Facts, Root};
    use units::{Cpu, CpuSet};

    use super::{Comm, Record, Slot};
    use crate::bpf::object::layout::check_layout;
    use crate::bpf::{OBJECT, Points, Programs};
    use crate::level::Level;
    use crate::reader::{End, Reader};
    use crate::records::Lane;
    use crate::ring_sizes::{RingSizes, SWITCHES_PER_SECOND, UNREAD};
    use crate::source::{EventSource, Threads};

    /// Check that the structures are those of the BPF programs.
    #[test]
    fn layouts() {
        check_layout!(OBJECT, "slot", Slot { start, detail, head, first, mask });
        check_layout!(
            OBJECT,
            "lane",
            super::Lane {
                place,
                own,
                looked,
                clock,
                limited,
                slots,
                spinner,
                queue,
                unused
            }
        );
        check_layout!(OBJECT, "record", Record { start, end, detail, id });
        check_layout!(OBJECT, "comm", Comm { name });
        // The CPUs write to cache lines of their own.
        assert_eq!(size_of::<super::Lane>(), 5 * 64);
    }

    /// Two threads yield that CPU to each other as fast as they can. They are real-time threads: on
    /// a busy CPU ordinary ones would yield it to other tasks.
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

    /// The programs, on the last CPU; `None` if this test cannot run.
    fn loaded(test: &str) -> Option<(Cpu, Programs)> {
        let facts = Facts::read(&Root::live());
        let cpu = facts.cpus.allowed.get().unwrap().iter().last().unwrap();
        if let Err(why) = isolate::may_outrank(isolate::highest_priority()) {
            println!("skipped: {test}: {why}");
            return None;
        }
        let cpus = CpuSet::from_iter([cpu]);
        match Programs::load(&cpus, Points::Raw, Threads::All, &facts) {
            Ok(programs) => Some((cpu, programs)),
            Err(why) => {
                println!("skipped: {test}: {why}");
                None
            }
        }
    }

    /// Check that the reader is woken long before the end of its period: it reads more records than
    /// a ring holds.
    #[test]
    fn alarm_wakes_the_reader() {
        let Some((cpu, programs)) = loaded("alarm_wakes_the_reader") else { return };
        assert!(programs.period() > Duration::from_secs(30), "there is no alarm");
        let cpus = CpuSet::from_iter([cpu]);
        let reader = Reader::begin(
            Box::new(programs),
            vec![Lane::new(cpu)],
            cpus,
            End::new().unwrap(),
            None,
        );
        let depth = RingSizes::for_cpus(1, 32, 16).depth(Level::Thread as usize);
        switch(cpu, Duration::from_secs(1));
        let (mut events, mut lanes) = reader.end();
        events.stop();
        events.read(&mut lanes);
        let lost: u64 = lanes[0].losses.iter().map(|loss| loss.events).sum();
        let read = lanes[0].records.len();
        println!("{read} events were read, {lost} were lost");
        if read + usize::try_from(lost).unwrap() < 2 * depth {
            return println!(
                "skipped: alarm_wakes_the_reader: this CPU switches too slowly"
            );
        }
        assert!(read > depth + depth / 4, "{read}");
    }

    /// Check that rings hold all records of two threads that only switch, for the longest time that
    /// they may remain unread, and that all of them are read.
    #[test]
    fn hold_the_highest_rate() {
        let Some((cpu, mut programs)) = loaded("hold_the_highest_rate") else { return };
        switch(cpu, UNREAD);
        programs.stop();
        let mut lanes = [Lane::new(cpu)];
        programs.read(&mut lanes);
        let [lane] = lanes;
        let lost: u64 = lane.losses.iter().map(|loss| loss.events).sum();
        let all = lane.records.len() as u64 + lost;
        println!("{all} events in {UNREAD:?}");
        if all as f64 > f64::from(SWITCHES_PER_SECOND) * UNREAD.as_secs_f64() {
            return println!(
                "skipped: hold_the_highest_rate: this CPU switches more often than \
                 {SWITCHES_PER_SECOND} times per second"
            );
        }
        assert_eq!(lane.losses, []);
        assert!(all > 1_000, "{all}");
    }
}
