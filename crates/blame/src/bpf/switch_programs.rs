//! The BPF programs that keep every switch between tasks, and what they kept
//! (`bpf/slices.bpf.c`; since Linux 5.18, for what `sched_switch` tells).
//!
//! They write to lists of a fixed size, which are read once, at the end. What there was no room
//! for is counted. The programs go with the process, however that ends.

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
use crate::bpf::wake_programs::{Who, at, elements};
use crate::error::{Error, Kind};

/// As in `slices.bpf.c`.
const ENDS: [End; 5] = [End::Tick, End::Wakeup, End::Yield, End::Sleep, End::Other];
const TID: u32 = (1 << 24) - 1;
const WHY_SHIFT: u32 = 24;
const WHY: u32 = 0x7f;
const UNTOLD: u32 = 1 << 31;
/// The interrupt that a tick comes in, begin and end (x86).
const VECTOR: [&str; 2] = ["local_timer_entry", "local_timer_exit"];
/// Since Linux 6.17.
const ASKED: &str = "sched_set_need_resched_tp";

/// What is to be kept, and how.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) cpus: CpuSet,
    /// Records of each CPU.
    pub(crate) room: u32,
    /// What the timers call that are ticks; `None`: not known.
    pub(crate) ticks: Option<[u64; 2]>,
}

/// A task that left its CPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Left {
    pub(crate) at: Nanos,
    pub(crate) who: Who,
    pub(crate) end: End,
    /// Since the one before left; otherwise since it is not known when.
    pub(crate) is_whole: bool,
}

/// What was kept of a CPU.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) cpu: Cpu,
    pub(crate) left: Vec<Left>,
    pub(crate) lost: u64,
}

/// What was kept, CPU by CPU, and the names of all who were switched to.
#[derive(Debug)]
pub(crate) struct AllKept {
    pub(crate) cpus: Vec<Kept>,
    pub(crate) names: BTreeMap<Who, [u8; 16]>,
}

/// The programs at their tracepoints, and what they write.
pub(crate) struct SwitchPrograms {
    attached: Attached,
    slots: Mapped<types::slot>,
    records: Mapped<types::record>,
    tasks: MapHandle,
    cpus: CpuSet,
    room: u32,
}

impl SwitchPrograms {
    /// Loads and attaches them.
    ///
    /// # Errors
    /// There cannot be so much room, or they cannot be loaded; nothing is watched.
    pub(crate) fn load(wanted: &Wanted) -> Result<Self, Error> {
        let mut object = MaybeUninit::uninit();
        let mut open = SlicesSkelBuilder::default().open(&mut object).map_err(failed)?;
        let (cpus, room) = (wanted.cpus.clone(), wanted.room);
        let records = make_room(&mut open, wanted)?;
        let loaded = open.load().map_err(failed)?;
        let maps = &loaded.maps;
        let slots = Mapped::new(&maps.slots, cpus.len())?;
        let records = Mapped::new(&maps.records, records)?;
        let tasks = MapHandle::try_from(&maps.tasks).map_err(failed)?;
        let attached = attached(&loaded.progs, wanted.ticks.is_some())?;
        Ok(Self { attached, slots, records, tasks, cpus, room })
    }

    /// Whether ticks cannot be told from other interrupts at all.
    pub(crate) fn is_without_ticks(&self) -> bool {
        self.attached.missing.contains(&VECTOR[0])
    }

    /// Detaches them; what they kept.
    ///
    /// # Errors
    /// The names cannot be read.
    pub(crate) fn end(mut self) -> Result<AllKept, Error> {
        // No switch is kept any more once it is not seen what it is decided by.
        while self.attached.links.pop().is_some() {}
        let cpus = self.cpus.iter().enumerate();
        let cpus = cpus.map(|(place, cpu)| self.kept(place, cpu)).collect();
        let names = elements::<types::who, types::task>(&self.tasks)?;
        let name = |(types::who { tid, born }, task): (types::who, types::task)| {
            (Who { tid, born }, task.name.map(|letter| letter.to_ne_bytes()[0]))
        };
        Ok(AllKept { cpus, names: names.into_iter().map(name).collect() })
    }

    fn kept(&self, place: usize, cpu: Cpu) -> Kept {
        let seen = self.slots.read(place).map_or(0, |slot| slot.seen);
        fence(Ordering::Acquire);
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        let count = usize::try_from(seen).unwrap_or(room).min(room);
        let first = place * room;
        let records = (first..first + count).filter_map(|at| self.records.read(at));
        let lost = seen.saturating_sub(u64::from(self.room));
        Kept { cpu, left: records.map(left).collect(), lost }
    }
}

fn left(record: types::record) -> Left {
    let types::record { end, task, born } = record;
    let why = usize::try_from(task >> WHY_SHIFT & WHY).ok();
    Left {
        at: Nanos::from_nanos(end),
        who: Who { tid: task & TID, born },
        end: why.and_then(|why| ENDS.get(why)).copied().unwrap_or(End::Other),
        is_whole: task & UNTOLD == 0,
    }
}

/// Gives each CPU its slot and its list; how many records there are.
fn make_room(open: &mut OpenSlicesSkel<'_>, wanted: &Wanted) -> Result<usize, Error> {
    let cpus = u32::try_from(wanted.cpus.len()).unwrap_or(u32::MAX);
    let (room, records) = (wanted.room, cpus.checked_mul(wanted.room));
    let Some(records) = records.filter(|records| *records > 0) else {
        let text = format!("there cannot be room for {room} switches on {cpus} CPUs");
        return Err(Error::new(Kind::Spec, text));
    };
    open.maps.slots.set_max_entries(cpus).map_err(failed)?;
    open.maps.records.set_max_entries(records).map_err(failed)?;
    if let Some(data) = &mut open.maps.rodata_data {
        data.room = room;
        data.ticks = wanted.ticks.unwrap_or_default();
        for (place, cpu) in (1..).zip(wanted.cpus.iter()) {
            let slot = data.places.get_mut(cpu.index());
            *slot.ok_or_else(|| too_many(cpu))? = place;
        }
    }
    Ok(usize::try_from(records).unwrap_or(usize::MAX))
}

/// What a switch is decided by comes before the switches, and ends before beginnings, so that
/// no tick lasts for ever.
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
