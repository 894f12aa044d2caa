//! The BPF programs that record every context switch, and their records (`bpf/slices.bpf.c`; since
//! Linux 5.18, for the arguments of `sched_switch`).
//!
//! They write to lists of a fixed size, which are read once, at the end. Switches beyond that are
//! counted. The programs are removed with the process, however that ends.

use std::collections::BTreeMap;
use std::sync::atomic::{Ordering, fence};

use libbpf_rs::MapHandle;
use recording::End;
use units::{Cpu, CpuSet, Nanos};

use crate::bpf::attached::{Attached, failed};
use crate::bpf::mapped::Mapped;
use crate::bpf::object::{Loaded, Opened};
use crate::bpf::places;
use crate::bpf::threads::{ThreadKey, at, elements};
use crate::error::{Error, Kind};

/// The compiled `slices.bpf.c`.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/slices.o"));
/// As in `slices.bpf.c`.
const ENDS: [End; 5] = [End::Tick, End::Wakeup, End::Yield, End::Sleep, End::Other];
const WOKEN: usize = 16;
const TID: u32 = (1 << 24) - 1;
const WHY_SHIFT: u32 = 24;
const WHY: u32 = 0x7f;
const MISSED: u32 = 1 << 31;
/// The interrupt that contains the tick, begin and end (x86).
const VECTOR: [&str; 2] = ["local_timer_entry", "local_timer_exit"];
/// Since Linux 6.17.
const ASKED: &str = "sched_set_need_resched_tp";

/// The configuration of the programs.
#[derive(Debug, Clone)]
pub(crate) struct SwitchConfig {
    pub(crate) cpus: CpuSet,
    /// The capacity in records of each CPU.
    pub(crate) capacity: u32,
    /// The functions of timers that are ticks; `None`: unknown.
    pub(crate) ticks: Option<[u64; 2]>,
}

/// A task that left its CPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Departure {
    pub(crate) at: Nanos,
    pub(crate) who: ThreadKey,
    pub(crate) end: End,
    /// Since the previous record; else since an unknown time.
    pub(crate) is_whole: bool,
}

/// The records of a CPU.
#[derive(Debug)]
pub(crate) struct CpuRecords {
    pub(crate) cpu: Cpu,
    pub(crate) departures: Vec<Departure>,
    pub(crate) lost: u64,
}

/// The records of all CPUs, and the names of all tasks that were switched to.
#[derive(Debug)]
pub(crate) struct AllRecords {
    pub(crate) cpus: Vec<CpuRecords>,
    pub(crate) names: BTreeMap<ThreadKey, [u8; 16]>,
}

/// As in `slices.bpf.c`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Slot {
    seen: u64,
    runs: u32,
    woken: u32,
    tick: u8,
    asked: u8,
    flag: u8,
    spare: [u8; 45],
    last: [u32; WOKEN],
}

/// As in `slices.bpf.c`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Record {
    end: u64,
    task: u32,
    born: u32,
}

/// As in `slices.bpf.c`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Task {
    name: [u8; 16],
    is_stopper: u8,
    spare: [u8; 7],
}

/// The attached programs, and their data.
pub(crate) struct SwitchPrograms {
    attached: Attached,
    slots: Mapped<Slot>,
    records: Mapped<Record>,
    tasks: MapHandle,
    cpus: CpuSet,
    capacity: u32,
}

impl SwitchPrograms {
    /// Loads and attaches them.
    ///
    /// # Errors
    /// The capacity is too large, or they cannot be loaded; nothing is attached.
    pub(crate) fn load(config: &SwitchConfig) -> Result<Self, Error> {
        let mut opened = Opened::open("slices", OBJECT)?;
        let (cpus, capacity) = (config.cpus.clone(), config.capacity);
        let records = assign_slots(&mut opened, config)?;
        let loaded = opened.load()?;
        let slots = Mapped::new(&loaded.map("slots")?, cpus.len())?;
        let records = Mapped::new(&loaded.map("records")?, records)?;
        let tasks = MapHandle::try_from(&loaded.map("tasks")?).map_err(failed)?;
        let attached = attached(&loaded, config.ticks.is_some())?;
        Ok(Self { attached, slots, records, tasks, cpus, capacity })
    }

    /// Whether ticks cannot be distinguished from other interrupts at all.
    pub(crate) fn is_without_ticks(&self) -> bool {
        self.attached.missing.contains(&VECTOR[0])
    }

    /// Detaches them; returns their records.
    ///
    /// # Errors
    /// The names cannot be read.
    pub(crate) fn end(mut self) -> Result<AllRecords, Error> {
        // In reverse order: no switch is recorded once the events that its reason is derived from
        // are no longer traced.
        while self.attached.links.pop().is_some() {}
        let cpus = self.cpus.iter().enumerate();
        let cpus = cpus.map(|(place, cpu)| self.cpu_records(place, cpu)).collect();
        let names = elements::<ThreadKey, Task>(&self.tasks)?;
        let names = names.into_iter().map(|(thread, task)| (thread, task.name));
        Ok(AllRecords { cpus, names: names.collect() })
    }

    fn cpu_records(&self, place: usize, cpu: Cpu) -> CpuRecords {
        let switches = self.slots.read(place).map_or(0, |slot| slot.seen);
        fence(Ordering::Acquire);
        let capacity = usize::try_from(self.capacity).unwrap_or(usize::MAX);
        let count = usize::try_from(switches).unwrap_or(capacity).min(capacity);
        let first = place * capacity;
        let records = (first..first + count).filter_map(|at| self.records.read(at));
        let departures: Vec<Departure> = records.map(departure).collect();
        let lost = switches.saturating_sub(departures.len().try_into().unwrap_or(0));
        CpuRecords { cpu, departures, lost }
    }
}

fn departure(record: Record) -> Departure {
    let Record { end, task, born } = record;
    let why = usize::try_from(task >> WHY_SHIFT & WHY).ok();
    Departure {
        at: Nanos::from_nanos(end),
        who: ThreadKey { tid: task & TID, born },
        end: why.and_then(|why| ENDS.get(why)).copied().unwrap_or(End::Other),
        is_whole: task & MISSED == 0,
    }
}

/// Assigns each CPU its slot and its list; returns the total number of records.
fn assign_slots(opened: &mut Opened, config: &SwitchConfig) -> Result<usize, Error> {
    let cpus = u32::try_from(config.cpus.len()).unwrap_or(u32::MAX);
    let (capacity, records) = (config.capacity, cpus.checked_mul(config.capacity));
    let Some(records) = records.filter(|records| *records > 0) else {
        let text =
            format!("a buffer for {capacity} switches on {cpus} CPUs is too large");
        return Err(Error::new(Kind::Spec, text));
    };
    opened.set_capacity("slots", cpus)?;
    opened.set_capacity("records", records)?;
    opened.set("room", &[capacity])?;
    opened.set("ticks", &config.ticks.unwrap_or_default())?;
    opened.set("places", &places(&config.cpus)?)?;
    Ok(usize::try_from(records).unwrap_or(usize::MAX))
}

/// The events that a switch's reason is derived from are attached before the switches, and ends
/// before beginnings, so that no tick lasts forever.
fn attached(loaded: &Loaded, has_timers: bool) -> Result<Attached, Error> {
    let mut attached = Attached::default();
    let [ends, begins] = match has_timers {
        true => [
            ("hrtimer_expire_exit", "timer_ends"),
            ("hrtimer_expire_entry", "timer_begins"),
        ],
        false => [(VECTOR[1], "vector_ends"), (VECTOR[0], "vector_begins")],
    };
    for (point, program) in [ends, begins, (ASKED, "asked_for")] {
        attached.raw(point, &loaded.program(program)?)?;
    }
    for (point, program) in [
        ("sched_wakeup_new", "woken"),
        ("sched_wakeup", "woken"),
        ("task_rename", "renamed"),
        ("sched_switch", "switched"),
    ] {
        attached.links.push(at(point, &loaded.program(program)?)?);
    }
    Ok(attached)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::object::layout::check_layout;

    /// Check that the structures are those of the BPF programs.
    #[test]
    fn layouts() {
        check_layout!(
            OBJECT,
            "slot",
            Slot { seen, runs, woken, tick, asked, flag, spare, last }
        );
        check_layout!(OBJECT, "record", Record { end, task, born });
        check_layout!(OBJECT, "who", ThreadKey { tid, born });
        check_layout!(OBJECT, "task", Task { name, is_stopper, spare });
    }
}
