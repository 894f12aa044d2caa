//! The BPF programs that record every context switch, and their records (`bpf/slices.bpf.c`; since
//! Linux 5.18, for the arguments of `sched_switch`).
//!
//! They write to lists of a fixed size, which are read once, at the end. Switches beyond that are
//! counted. The programs are removed with the process, however that ends.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::sync::atomic::{Ordering, fence};

use libbpf_rs::MapHandle;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use recording::End;
use units::{Cpu, CpuSet, Nanos};

use crate::bpf::attached::{Attached, failed, too_many};
use crate::bpf::mapped::Mapped;
use crate::bpf::skeleton::slices::{
    OpenSlicesSkel, SlicesProgs, SlicesSkelBuilder, types,
};
use crate::bpf::wake_programs::{ThreadKey, at, elements};
use crate::error::{Error, Kind};

/// As in `slices.bpf.c`.
const ENDS: [End; 5] = [End::Tick, End::Wakeup, End::Yield, End::Sleep, End::Other];
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

/// The attached programs, and their data.
pub(crate) struct SwitchPrograms {
    attached: Attached,
    slots: Mapped<types::slot>,
    records: Mapped<types::record>,
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
        let mut object = MaybeUninit::uninit();
        let mut open = SlicesSkelBuilder::default().open(&mut object).map_err(failed)?;
        let (cpus, capacity) = (config.cpus.clone(), config.capacity);
        let records = assign_slots(&mut open, config)?;
        let loaded = open.load().map_err(failed)?;
        let maps = &loaded.maps;
        let slots = Mapped::new(&maps.slots, cpus.len())?;
        let records = Mapped::new(&maps.records, records)?;
        let tasks = MapHandle::try_from(&maps.tasks).map_err(failed)?;
        let attached = attached(&loaded.progs, config.ticks.is_some())?;
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
        let names = elements::<types::who, types::task>(&self.tasks)?;
        let name = |(types::who { tid, born }, task): (types::who, types::task)| {
            (ThreadKey { tid, born }, task.name.map(|letter| letter.to_ne_bytes()[0]))
        };
        Ok(AllRecords { cpus, names: names.into_iter().map(name).collect() })
    }

    fn cpu_records(&self, place: usize, cpu: Cpu) -> CpuRecords {
        let switches = self.slots.read(place).map_or(0, |slot| slot.seen);
        fence(Ordering::Acquire);
        let capacity = usize::try_from(self.capacity).unwrap_or(usize::MAX);
        let count = usize::try_from(switches).unwrap_or(capacity).min(capacity);
        let first = place * capacity;
        let records = (first..first + count).filter_map(|at| self.records.read(at));
        let lost = switches.saturating_sub(u64::from(self.capacity));
        let departures = records.map(departure).collect();
        CpuRecords { cpu, departures, lost }
    }
}

fn departure(record: types::record) -> Departure {
    let types::record { end, task, born } = record;
    let why = usize::try_from(task >> WHY_SHIFT & WHY).ok();
    Departure {
        at: Nanos::from_nanos(end),
        who: ThreadKey { tid: task & TID, born },
        end: why.and_then(|why| ENDS.get(why)).copied().unwrap_or(End::Other),
        is_whole: task & MISSED == 0,
    }
}

/// Assigns each CPU its slot and its list; returns the total number of records.
fn assign_slots(
    open: &mut OpenSlicesSkel<'_>,
    config: &SwitchConfig,
) -> Result<usize, Error> {
    let cpus = u32::try_from(config.cpus.len()).unwrap_or(u32::MAX);
    let (capacity, records) = (config.capacity, cpus.checked_mul(config.capacity));
    let Some(records) = records.filter(|records| *records > 0) else {
        let text =
            format!("a buffer for {capacity} switches on {cpus} CPUs is too large");
        return Err(Error::new(Kind::Spec, text));
    };
    open.maps.slots.set_max_entries(cpus).map_err(failed)?;
    open.maps.records.set_max_entries(records).map_err(failed)?;
    if let Some(data) = &mut open.maps.rodata_data {
        data.room = capacity;
        data.ticks = config.ticks.unwrap_or_default();
        for (place, cpu) in (1..).zip(config.cpus.iter()) {
            let slot = data.places.get_mut(cpu.index());
            *slot.ok_or_else(|| too_many(cpu))? = place;
        }
    }
    Ok(usize::try_from(records).unwrap_or(usize::MAX))
}

/// The events that a switch's reason is derived from are attached before the switches, and ends
/// before beginnings, so that no tick lasts forever.
fn attached(programs: &SlicesProgs<'_>, has_timers: bool) -> Result<Attached, Error> {
    let mut attached = Attached::default();
    if has_timers {
        attached.raw("hrtimer_expire_exit", &programs.timer_ends)?;
        attached.raw("hrtimer_expire_entry", &programs.timer_begins)?;
    } else {
        attached.raw(VECTOR[1], &programs.vector_ends)?;
        attached.raw(VECTOR[0], &programs.vector_begins)?;
    }
    attached.raw(ASKED, &programs.asked_for)?;
    attached.links.push(at("sched_wakeup_new", &programs.woken)?);
    attached.links.push(at("sched_wakeup", &programs.woken)?);
    attached.links.push(at("task_rename", &programs.renamed)?);
    attached.links.push(at("sched_switch", &programs.switched)?);
    Ok(attached)
}
