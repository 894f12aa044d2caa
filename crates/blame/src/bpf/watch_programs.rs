//! The BPF programs that watch a program's threads, and their sums (`bpf/watch.bpf.c`; since Linux
//! 5.18, for the arguments of `sched_switch`).
//!
//! All maps have a fixed size. Threads that have ended, and those that had the CPU instead of watched
//! ones, can be taken from the maps meanwhile. The programs are removed with the process, however
//! that ends.

use std::cell::RefCell;
use std::rc::Rc;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Enum, EnumMember};
use libbpf_rs::{
    MapCore, MapFlags, MapHandle, ProgramInput, RingBuffer, RingBufferBuilder,
};
use units::CpuSet;

use crate::bpf::attached::{Attached, failed};
use crate::bpf::object::{Loaded, Opened};
use crate::bpf::threads::{ThreadKey, decoded, each_element, elements, run_on};
use crate::bpf::watch_tables::{
    Delay, Interruption, NUMBERS, Slot, Source, Taker, Thread, longest_of_bin,
};
use crate::error::{Error, Kind};

/// The kernel's list of controllers (`include/linux/cgroup-defs.h`).
const CONTROLLERS: &str = "cgroup_subsys_id";
/// The compiled `watch.bpf.c`.
pub(crate) const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/watch.o"));
/// `PROCESSES` and `KEEP_MAX` there.
pub(crate) const PROCESSES: usize = 8;
const KEEP_MAX: u32 = 64;

/// The threads to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Those of these processes.
    Processes(Vec<u32>),
    /// Those in these cgroups, and in new ones below them.
    Cgroups(Cgroups),
}

/// Cgroups of one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cgroups {
    /// The inodes of their directories.
    pub(crate) ids: Vec<u64>,
    /// The number of the hierarchy in `/proc/cgroups`; 0: that of v2.
    pub(crate) hierarchy: u32,
    /// For v1, a controller.
    pub(crate) controller: Option<String>,
}

/// What is asked of the programs.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) target: Target,
    /// The number of the longest delays.
    pub(crate) keep: u32,
    /// Those that are longer are written when they happen, too.
    pub(crate) log_above: Option<u64>,
    /// The capacity for threads; `None`: the default.
    pub(crate) threads: Option<u32>,
}

/// What the tables had no room for, and waits whose parts are not certain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) threads: u64,
    pub(crate) takers: u64,
    pub(crate) delays: u64,
    pub(crate) unsure: u64,
    /// The time of these waits, in nanoseconds.
    pub(crate) unknown: u64,
    /// Nanoseconds in which a thread may have run other than the known one.
    pub(crate) unseen: u64,
}

/// All sums.
pub(crate) struct Sums {
    pub(crate) threads: Vec<Thread>,
    pub(crate) takers: Vec<(ThreadKey, Taker)>,
    pub(crate) interruptions: Vec<(Source, Interruption)>,
    /// The longest length of each bin that has waits, in nanoseconds, and their number.
    pub(crate) lengths: Vec<(u64, u64)>,
    /// Of all CPUs, the longest first.
    pub(crate) longest: Vec<Delay>,
    pub(crate) lost: Lost,
    /// The tracepoints of interrupts that this kernel lacks.
    pub(crate) missing: Vec<&'static str>,
}

/// The attached programs.
pub(crate) struct WatchPrograms {
    loaded: Loaded,
    attached: Attached,
    online: CpuSet,
    slots: u32,
    keep: u32,
    written: Rc<RefCell<Vec<Delay>>>,
    // Detached from its map before the object is removed: fields are dropped in order.
    reader: Option<RingBuffer<'static>>,
}

impl WatchPrograms {
    /// Loads and attaches the programs, and counts from now on.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub(crate) fn begin(request: &Request, online: &CpuSet) -> Result<Self, Error> {
        // CPUs may be switched on meanwhile.
        let possible = libbpf_rs::num_possible_cpus().map_err(failed)?;
        let slots = u32::try_from(possible).unwrap_or(u32::MAX);
        let keep = request.keep.clamp(1, KEEP_MAX);
        let mut opened = Opened::open("noisefloor", OBJECT)?;
        prepare(&mut opened, request, slots, keep)?;
        let loaded = opened.load()?;
        if let Target::Cgroups(cgroups) = &request.target {
            add_cgroups(&loaded, &cgroups.ids)?;
        }
        let mut attached = Attached::default();
        attach(&loaded, &request.target, &mut attached)?;
        run_on(&loaded.program("begin_here")?, online);
        let written = Rc::default();
        let reader = match request.log_above {
            Some(_) => Some(reader(&loaded, &written)?),
            None => None,
        };
        let online = online.clone();
        Ok(Self { loaded, attached, online, slots, keep, written, reader })
    }

    /// The delays that were written since the last call.
    pub(crate) fn written(&self) -> Vec<Delay> {
        if let Some(reader) = &self.reader {
            // What is not read now is read by the next call.
            let _ = reader.consume();
        }
        self.written.take()
    }

    /// Removes threads that have ended, and all takers, from the tables.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn take_ended(&self) -> Result<Ended, Error> {
        let ended = self.ended()?;
        let takers = self.loaded.map("takers")?;
        let keys = takers.keys().collect::<Vec<_>>();
        let taken = keys.iter().filter_map(|key| {
            let value = takers.lookup_and_delete(key).ok()??;
            Some((decoded(key)?, decoded(&value)?))
        });
        let mut taken: Vec<(ThreadKey, Taker)> = taken.collect();
        taken.extend(takers_among(&ended));
        Ok(Ended { threads: ended, takers: taken })
    }

    fn ended(&self) -> Result<Vec<Thread>, Error> {
        let (threads, places) = (self.loaded.map("threads")?, self.loaded.map("ended")?);
        let release = self.loaded.program("release")?;
        let mut ended = Vec::new();
        while let Some(place) = places.lookup_and_delete(&[]).map_err(failed)? {
            let row = threads.lookup(&place, MapFlags::ANY).map_err(failed)?;
            ended.extend(row.and_then(|row| decoded::<Thread>(&row)));
            let place = decoded::<u32>(&place).map_or(u64::MAX, u64::from);
            let mut arguments = place.to_ne_bytes();
            let context_in = Some(&mut arguments[..]);
            let input = ProgramInput { context_in, ..ProgramInput::default() };
            release.test_run(input).map_err(failed)?;
        }
        Ok(ended)
    }

    /// Ends counting, and returns the sums.
    ///
    /// # Errors
    /// They cannot be read.
    pub(crate) fn end(self) -> Result<Sums, Error> {
        let Self { loaded, attached, online, slots, keep, .. } = self;
        let Attached { links, missing } = attached;
        run_on(&loaded.program("end_here")?, &online);
        drop(links);
        let slots = (0..slots).map(|cpu| slot(&loaded, cpu));
        let slots = slots.collect::<Result<Vec<_>, _>>()?;
        let mut threads = threads(&loaded)?;
        threads.iter_mut().for_each(|row| row.end_wait(&slots));
        let sum = |of: fn(&Slot) -> u64| slots.iter().map(of).sum();
        let lost = Lost {
            threads: sum(|slot| slot.lost_threads),
            takers: sum(|slot| slot.lost_takers),
            delays: sum(|slot| slot.lost_delays),
            unsure: sum(|slot| slot.unsure),
            unknown: sum(|slot| slot.unknown),
            unseen: sum(|slot| slot.unseen),
        };
        let mut takers: Vec<_> = elements(&loaded.map("takers")?)?;
        takers.extend(takers_among(&threads));
        Ok(Sums {
            threads,
            takers,
            interruptions: interruptions(&loaded)?,
            lengths: lengths(&loaded)?,
            longest: longest(&loaded, &slots, keep)?,
            lost,
            missing,
        })
    }
}

/// What was removed from the tables.
pub(crate) struct Ended {
    pub(crate) threads: Vec<Thread>,
    pub(crate) takers: Vec<(ThreadKey, Taker)>,
}

/// The watched threads that had a CPU for which others of them waited.
fn takers_among(threads: &[Thread]) -> impl Iterator<Item = (ThreadKey, Taker)> {
    threads.iter().filter_map(|row| Some((row.who, row.as_taker()?)))
}

/// The rows of all threads.
fn threads(loaded: &Loaded) -> Result<Vec<Thread>, Error> {
    let map = loaded.map("threads")?;
    let rows = each_element::<u32, Thread>(&map)?.map(|(_, row)| row);
    Ok(rows.filter(Thread::is_used).collect())
}

fn prepare(
    opened: &mut Opened,
    request: &Request,
    slots: u32,
    keep: u32,
) -> Result<(), Error> {
    opened.set_capacity("slots", slots)?;
    opened.set_capacity("longest", slots * keep)?;
    if let Some(threads) = request.threads {
        // A place is found by the lowest bits of a TID.
        let threads = threads.clamp(1, 1 << 20).next_power_of_two();
        opened.set_capacity("threads", threads)?;
        opened.set_capacity("ended", threads)?;
        opened.set("last_thread", &[threads - 1])?;
    }
    opened.set("keep", &[keep])?;
    opened.set("logs", &[u8::from(request.log_above.is_some())])?;
    opened.set("above", &[request.log_above.unwrap_or(0)])?;
    match &request.target {
        Target::Processes(processes) => {
            let mut known = [0_u32; PROCESSES];
            for (to, from) in known.iter_mut().zip(processes) {
                *to = *from;
            }
            opened.choose(|program| !of_cgroups(program));
            let count = u32::try_from(processes.len()).unwrap_or(u32::MAX);
            opened.set("process_count", &[count])?;
            opened.set("processes", &known)
        }
        Target::Cgroups(cgroups) => {
            let by = if cgroups.hierarchy == 0 { 1_u32 } else { 2 };
            opened.set("by_cgroup", &[by])?;
            let controller = cgroups.controller.as_deref().map_or(Ok(0), index_of);
            opened.set("controller", &[controller?])?;
            opened.set("hierarchy", &[cgroups.hierarchy])
        }
    }
}

/// The place of a controller in the kernel's list.
fn index_of(controller: &str) -> Result<u32, Error> {
    let missing = || {
        let text =
            format!("the kernel's types do not describe the controller {controller}");
        Error::new(Kind::Missing, text)
    };
    let types = Btf::from_vmlinux().map_err(|error| missing().caused_by(error))?;
    let list = types.type_by_name::<Enum<'_>>(CONTROLLERS).ok_or_else(missing)?;
    let name = format!("{controller}_cgrp_id");
    let is_it = |member: &EnumMember<'_>| {
        member.name.is_some_and(|other| other.to_string_lossy() == name)
    };
    let member = list.iter().find(is_it).ok_or_else(missing)?;
    u32::try_from(member.value).map_err(|_| missing())
}

/// The programs that follow new cgroups.
fn of_cgroups(program: &str) -> bool {
    ["made", "removed"].contains(&program)
}

fn add_cgroups(loaded: &Loaded, ids: &[u64]) -> Result<(), Error> {
    let map = loaded.map("cgroups")?;
    for id in ids {
        map.update(&id.to_ne_bytes(), &[1], MapFlags::ANY).map_err(|error| {
            let text = "failed to watch all cgroups: there are more than 8192";
            Error::new(Kind::System, text).caused_by(error)
        })?;
    }
    Ok(())
}

/// Moves and switches come before wake-ups, so that each wait that begins is seen until its end.
fn attach(
    loaded: &Loaded,
    target: &Target,
    attached: &mut Attached,
) -> Result<(), Error> {
    attached.interrupts(loaded)?;
    let scheduler = ["renamed", "moved", "switched", "woken_new", "woken"];
    let cgroups = ["made", "removed"];
    let by_cgroup = matches!(target, Target::Cgroups(_));
    let cgroups = cgroups.iter().filter(|_| by_cgroup);
    for program in cgroups.chain(&scheduler) {
        let program = loaded.program(program)?;
        attached.links.push(program.attach_trace().map_err(failed)?);
    }
    Ok(())
}

fn reader(
    loaded: &Loaded,
    written: &Rc<RefCell<Vec<Delay>>>,
) -> Result<RingBuffer<'static>, Error> {
    let map = MapHandle::try_from(&loaded.map("written")?).map_err(failed)?;
    let mut builder = RingBufferBuilder::new();
    let written = Rc::clone(written);
    let store = move |bytes: &[u8]| {
        written.borrow_mut().extend(decoded::<Delay>(bytes));
        0
    };
    builder.add(&map, store).map_err(failed)?;
    builder.build().map_err(failed)
}

fn slot(loaded: &Loaded, cpu: u32) -> Result<Slot, Error> {
    let slot = loaded.map("slots")?.lookup(&cpu.to_ne_bytes(), MapFlags::ANY);
    let slot = slot.map_err(failed)?.and_then(|bytes| decoded(&bytes));
    slot.ok_or_else(|| Error::new(Kind::System, "failed to read the sums of a CPU"))
}

fn interruptions(loaded: &Loaded) -> Result<Vec<(Source, Interruption)>, Error> {
    let map = loaded.map("interruptions")?;
    let mut sums = Vec::new();
    for place in 0..map.max_entries() {
        let source = Source { level: place / NUMBERS, id: place % NUMBERS };
        let sum = sum_of(&map, &place.to_ne_bytes())?;
        sums.extend((sum.count > 0).then_some((source, sum)));
    }
    let map = loaded.map("others")?;
    for key in map.keys() {
        let Some(source) = decoded::<Source>(&key) else { continue };
        sums.push((source, sum_of(&map, &key)?));
    }
    Ok(sums)
}

/// The interruptions of all CPUs.
fn sum_of(map: &impl MapCore, key: &[u8]) -> Result<Interruption, Error> {
    let cpus = map.lookup_percpu(key, MapFlags::ANY).map_err(failed)?;
    let mut sum = Interruption::default();
    for one in cpus.iter().flatten().filter_map(|cpu| decoded::<Interruption>(cpu)) {
        sum.ns += one.ns;
        sum.count += one.count;
        sum.longest = sum.longest.max(one.longest);
    }
    Ok(sum)
}

fn lengths(loaded: &Loaded) -> Result<Vec<(u64, u64)>, Error> {
    let map = loaded.map("lengths")?;
    let mut lengths = Vec::new();
    for bin in 0..map.max_entries() {
        let cpus = map.lookup_percpu(&bin.to_ne_bytes(), MapFlags::ANY);
        let cpus = cpus.map_err(failed)?.into_iter().flatten();
        let count: u64 = cpus.filter_map(|cpu| decoded::<u64>(&cpu)).sum();
        if count > 0 {
            lengths.push((longest_of_bin(bin), count));
        }
    }
    Ok(lengths)
}

fn longest(loaded: &Loaded, slots: &[Slot], keep: u32) -> Result<Vec<Delay>, Error> {
    let map = loaded.map("longest")?;
    let mut longest: Vec<Delay> = Vec::new();
    for (cpu, slot) in (0_u32..).zip(slots) {
        for at in 0..slot.stored {
            let key = (cpu * keep + at).to_ne_bytes();
            let delay = map.lookup(&key, MapFlags::ANY).map_err(failed)?;
            longest.extend(delay.and_then(|bytes| decoded::<Delay>(&bytes)));
        }
    }
    longest.sort_by_key(|delay| std::cmp::Reverse(delay.end.saturating_sub(delay.begin)));
    longest.truncate(usize::try_from(keep).unwrap_or(usize::MAX));
    Ok(longest)
}
