//! The BPF programs that count wake-ups, and their counts (`bpf/wakers.bpf.c`; since Linux 5.18,
//! for the arguments of `sched_switch`).
//!
//! The counts are in maps of a fixed size, and read once, at the end. Events that exceed them are
//! counted, too. The programs are removed with the process, however that ends.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, ProgramInput, ProgramMut};
use units::CpuSet;

use crate::bpf::VECTORS;
use crate::bpf::attached::{Attached, failed, too_many};
use crate::bpf::skeleton::wakers::{
    OpenWakersSkel, WakersMaps, WakersProgs, WakersSkel, WakersSkelBuilder, types,
};
use crate::error::{Error, Kind};

/// The number of elements per read.
const BATCH: u32 = 4096;
/// `BPF_F_TEST_RUN_ON_CPU` in `include/uapi/linux/bpf.h`.
const ON_CPU: u32 = 1;

/// The wake-ups to count; `None`: all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    /// Those on these CPUs.
    pub(crate) cpus: Option<CpuSet>,
    /// Those of this process's threads, or by them.
    pub(crate) process: Option<u32>,
}

/// The capacities; `None`: the programs' defaults.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Capacity {
    pub(crate) threads: Option<u32>,
    /// Pairs of waker and woken, and as many of preempting and preempted.
    pub(crate) pairs: Option<u32>,
}

/// A thread, or (with number 0) a waker that is not a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadKey {
    pub(crate) tid: u32,
    /// Part of its start time; with TID 0, `enum no_thread`.
    pub(crate) born: u32,
}

/// The counts of a thread.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) wakeups: u64,
    /// In nanoseconds; `None` if the end of some run was missed.
    pub(crate) run: Option<u64>,
    pub(crate) preempted: u64,
    pub(crate) process: u32,
    pub(crate) prio: i32,
    pub(crate) comm: [u8; 16],
}

/// The number of times that one thread woke or preempted another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) actor: ThreadKey,
    pub(crate) other: ThreadKey,
    pub(crate) count: u64,
}

/// The counts that exceeded the capacity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) wakeups: u64,
    pub(crate) wakers: u64,
    pub(crate) victims: u64,
}

/// All counts.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) rows: BTreeMap<ThreadKey, Row>,
    pub(crate) wakers: Vec<Pair>,
    pub(crate) victims: Vec<Pair>,
    pub(crate) lost: Lost,
    /// The tracepoints of interrupts that this kernel lacks.
    pub(crate) missing: Vec<&'static str>,
}

/// The attached programs, counting.
pub(crate) struct WakePrograms {
    attached: Attached,
    loaded: WakersSkel<'static>,
    online: CpuSet,
}

impl WakePrograms {
    /// Loads and attaches them, and starts to count.
    ///
    /// # Errors
    /// The programs cannot be loaded or attached.
    pub(crate) fn begin(
        filter: &Filter,
        capacity: Capacity,
        online: &CpuSet,
    ) -> Result<Self, Error> {
        // Leaked: the loaded skeleton refers to it, and could not be moved together with it.
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = WakersSkelBuilder::default().open(object).map_err(failed)?;
        prepare(&mut open, filter, capacity)?;
        let loaded = open.load().map_err(failed)?;
        let mut attached = Attached::default();
        attach_places(&loaded.progs, &mut attached)?;
        attach(&loaded.progs, filter, &mut attached.links)?;
        let mut own = Self { attached, loaded, online: online.clone() };
        own.count(true)?;
        Ok(own)
    }

    /// Starts or stops counting.
    fn count(&mut self, is_on: bool) -> Result<(), Error> {
        let Some(data) = &mut self.loaded.maps.bss_data else {
            return Err(Error::new(
                Kind::System,
                "failed to map the eBPF programs' data",
            ));
        };
        // SAFETY: it is aligned, and lives as long as the maps. Nothing else here uses it; the
        // programs read it as a whole.
        let counting = unsafe { AtomicU32::from_ptr(&raw mut data.counting) };
        counting.store(u32::from(is_on), Ordering::SeqCst);
        Ok(())
    }

    /// Stops counting, and detaches the programs; returns their counts.
    ///
    /// # Errors
    /// The counts cannot be read.
    pub(crate) fn end(mut self) -> Result<Counts, Error> {
        self.count(false)?;
        settle(&self.loaded.progs, &self.online);
        let Attached { links, missing } = self.attached;
        drop(links);
        Ok(Counts { missing, ..read(&self.loaded.maps)? })
    }
}

fn prepare(
    open: &mut OpenWakersSkel<'_>,
    filter: &Filter,
    capacity: Capacity,
) -> Result<(), Error> {
    if let Some(threads) = capacity.threads {
        open.maps.threads.set_max_entries(threads).map_err(failed)?;
    }
    if let Some(pairs) = capacity.pairs {
        open.maps.wakers.set_max_entries(pairs).map_err(failed)?;
        open.maps.victims.set_max_entries(pairs).map_err(failed)?;
    }
    open.progs.woken.set_autoload(filter.cpus.is_some());
    let Some(data) = &mut open.maps.rodata_data else { return Ok(()) };
    data.of_process = filter.process.unwrap_or(0);
    data.by_cpu = u8::from(filter.cpus.is_some());
    for cpu in filter.cpus.iter().flat_map(CpuSet::iter) {
        let watched = data.watched.get_mut(cpu.index());
        *watched.ok_or_else(|| too_many(cpu))? = 1;
    }
    Ok(())
}

/// For architectures on which only tracepoints show that a CPU is in an interrupt (arm64 has a
/// counter); ends come first, so that no interrupt lasts forever.
fn attach_places(
    programs: &WakersProgs<'_>,
    attached: &mut Attached,
) -> Result<(), Error> {
    if cfg!(target_arch = "aarch64") {
        return Ok(());
    }
    let vectors = VECTORS.iter().flat_map(|&(entry, exit)| {
        [(exit, &programs.vector_exit), (entry, &programs.vector_entry)]
    });
    let others = [
        ("irq_handler_exit", &programs.handler_exit),
        ("irq_handler_entry", &programs.handler_entry),
        ("hrtimer_expire_exit", &programs.timer_exit),
        ("hrtimer_expire_entry", &programs.timer_entry),
        ("softirq_exit", &programs.softirq_exit),
        ("softirq_entry", &programs.softirq_entry),
    ];
    for (tracepoint, program) in vectors.chain(others) {
        attached.raw(tracepoint, program)?;
    }
    Ok(())
}

/// The last event of a wake-up is attached first, so that each counted wake-up is complete.
fn attach(
    programs: &WakersProgs<'_>,
    filter: &Filter,
    links: &mut Vec<Link>,
) -> Result<(), Error> {
    links.push(at("task_rename", &programs.renamed)?);
    links.push(at("sched_switch", &programs.switched)?);
    if filter.cpus.is_some() {
        links.push(at("sched_wakeup", &programs.woken)?);
    }
    links.push(at("sched_waking", &programs.waking)?);
    Ok(())
}

pub(crate) fn at(tracepoint: &str, program: &ProgramMut<'_>) -> Result<Link, Error> {
    program.attach_raw_tracepoint(tracepoint).map_err(|error| {
        let text = format!("failed to attach to the tracepoint {tracepoint}");
        Error::new(Kind::Missing, text).caused_by(error)
    })
}

/// Adds the time of threads that still run, CPU by CPU; an offline one runs none.
fn settle(programs: &WakersProgs<'_>, online: &CpuSet) {
    for cpu in online.iter() {
        let (cpu, flags) = (cpu.get(), ON_CPU);
        let input = ProgramInput { cpu, flags, ..ProgramInput::default() };
        let _ = programs.settle.test_run(input);
    }
}

fn read(maps: &WakersMaps<'_>) -> Result<Counts, Error> {
    let rows = elements(&maps.threads)?;
    let rows = rows.into_iter().map(|(who, row)| (ThreadKey::of(who), Row::of(&row)));
    let mut lost = Lost::default();
    let slots = maps.slots.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY);
    for slot in slots.map_err(failed)?.iter().flatten() {
        let Some(slot) = decoded::<types::slot>(slot) else { continue };
        lost.wakeups += slot.lost_wakeups;
        lost.wakers += slot.lost_wakers;
        lost.victims += slot.lost_victims;
    }
    Ok(Counts {
        rows: rows.collect(),
        wakers: pairs(&maps.wakers)?,
        victims: pairs(&maps.victims)?,
        lost,
        missing: Vec::new(),
    })
}

fn pairs(map: &impl MapCore) -> Result<Vec<Pair>, Error> {
    let pair = |(types::pair { actor, other }, count): (types::pair, u64)| Pair {
        actor: ThreadKey::of(actor),
        other: ThreadKey::of(other),
        count,
    };
    Ok(elements(map)?.into_iter().map(pair).collect())
}

/// All elements of a hash map that is no longer written to.
pub(crate) fn elements<K: Copy, V: Copy>(
    map: &impl MapCore,
) -> Result<Vec<(K, V)>, Error> {
    let read = map.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY).map_err(failed)?;
    let whole = read.filter_map(|(key, value)| Some((decoded(&key)?, decoded(&value)?)));
    Ok(whole.collect())
}

/// One of the programs' structures, which contain only numbers.
fn decoded<T: Copy>(bytes: &[u8]) -> Option<T> {
    // SAFETY: the size is right, and any bytes make a `T`.
    (bytes.len() == size_of::<T>())
        .then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

impl ThreadKey {
    fn of(who: types::who) -> Self {
        Self { tid: who.tid, born: who.born }
    }
}

impl Row {
    fn of(row: &types::thread) -> Self {
        Self {
            wakeups: row.wakeups,
            run: (row.unseen == 0).then_some(row.run),
            preempted: row.preempted,
            process: row.process,
            prio: row.prio,
            comm: row.name.map(|letter| letter.to_ne_bytes()[0]),
        }
    }
}
