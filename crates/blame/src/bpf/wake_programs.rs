//! The BPF programs that count wake-ups, and their counts (`bpf/wakers.bpf.c`; since Linux 5.18,
//! for the arguments of `sched_switch`).
//!
//! The counts are in maps of a fixed size, and read once, at the end. Events that exceed them are
//! counted, too. The programs are removed with the process, however that ends.

use std::collections::BTreeMap;

use libbpf_rs::{Link, MapCore, MapFlags};
use units::CpuSet;

use crate::bpf::CPUS;
use crate::bpf::attached::{Attached, failed, too_many};
use crate::bpf::object::{Loaded, Opened};
use crate::bpf::threads::{ThreadKey, at, decoded, elements, run_on};
use crate::error::Error;

/// The compiled `wakers.bpf.c`.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/wakers.o"));

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

/// As in `wakers.bpf.c`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Thread {
    wakeups: u64,
    run: u64,
    preempted: u64,
    waker: ThreadKey,
    process: u32,
    prio: i32,
    due: u8,
    counts: u8,
    fresh: u8,
    unseen: u8,
    spare: [u8; 4],
    name: [u8; 16],
}

/// `struct pair` of `wakers.bpf.c`.
#[derive(Clone, Copy)]
#[repr(C)]
struct PairKey {
    actor: ThreadKey,
    other: ThreadKey,
}

/// As in `wakers.bpf.c`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Slot {
    r#in: [u8; 4],
    spare: [u8; 4],
    since: u64,
    runs: ThreadKey,
    lost_wakeups: u64,
    lost_wakers: u64,
    lost_victims: u64,
}

/// The attached programs, counting.
pub(crate) struct WakePrograms {
    attached: Attached,
    loaded: Loaded,
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
        let mut opened = Opened::open("wakers", OBJECT)?;
        prepare(&mut opened, filter, capacity)?;
        let loaded = opened.load()?;
        let mut attached = Attached::default();
        attach_places(&loaded, &mut attached)?;
        attach(&loaded, filter, &mut attached.links)?;
        loaded.set("counting", 1_u32)?;
        Ok(Self { attached, loaded, online: online.clone() })
    }

    /// Stops counting, and detaches the programs; returns their counts.
    ///
    /// # Errors
    /// The counts cannot be read.
    pub(crate) fn end(self) -> Result<Counts, Error> {
        self.loaded.set("counting", 0_u32)?;
        run_on(&self.loaded.program("settle")?, &self.online);
        let Attached { links, missing } = self.attached;
        drop(links);
        Ok(Counts { missing, ..read(&self.loaded)? })
    }
}

fn prepare(
    opened: &mut Opened,
    filter: &Filter,
    capacity: Capacity,
) -> Result<(), Error> {
    if let Some(threads) = capacity.threads {
        opened.set_capacity("threads", threads)?;
    }
    if let Some(pairs) = capacity.pairs {
        opened.set_capacity("wakers", pairs)?;
        opened.set_capacity("victims", pairs)?;
    }
    let by_cpu = filter.cpus.is_some();
    opened.choose(|program| program != "woken" || by_cpu);
    opened.set("of_process", &[filter.process.unwrap_or(0)])?;
    opened.set("by_cpu", &[u8::from(by_cpu)])?;
    let mut watched = [0_u8; CPUS];
    for cpu in filter.cpus.iter().flat_map(CpuSet::iter) {
        *watched.get_mut(cpu.index()).ok_or_else(|| too_many(cpu))? = 1;
    }
    opened.set("watched", &watched)
}

/// For architectures on which only tracepoints show that a CPU is in an interrupt (arm64 has a
/// counter); ends come first, so that no interrupt lasts forever.
fn attach_places(loaded: &Loaded, attached: &mut Attached) -> Result<(), Error> {
    if cfg!(target_arch = "aarch64") {
        return Ok(());
    }
    attached.interrupts(loaded)?;
    let timers =
        [("hrtimer_expire_exit", "timer_exit"), ("hrtimer_expire_entry", "timer_entry")];
    for (tracepoint, program) in timers {
        attached.raw(tracepoint, &loaded.program(program)?)?;
    }
    Ok(())
}

/// The last event of a wake-up is attached first, so that each counted wake-up is complete.
fn attach(loaded: &Loaded, filter: &Filter, links: &mut Vec<Link>) -> Result<(), Error> {
    let mut attach = |point, program| -> Result<(), Error> {
        links.push(at(point, &loaded.program(program)?)?);
        Ok(())
    };
    attach("task_rename", "renamed")?;
    attach("sched_switch", "switched")?;
    if filter.cpus.is_some() {
        attach("sched_wakeup", "woken")?;
    }
    attach("sched_waking", "waking")
}

fn read(loaded: &Loaded) -> Result<Counts, Error> {
    let rows = elements(&loaded.map("threads")?)?;
    let rows = rows.into_iter().map(|(thread, row)| (thread, Row::of(&row)));
    let mut lost = Lost::default();
    let slots = loaded.map("slots")?;
    let slots = slots.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY);
    for slot in slots.map_err(failed)?.iter().flatten() {
        let Some(slot) = decoded::<Slot>(slot) else { continue };
        lost.wakeups += slot.lost_wakeups;
        lost.wakers += slot.lost_wakers;
        lost.victims += slot.lost_victims;
    }
    Ok(Counts {
        rows: rows.collect(),
        wakers: pairs(&loaded.map("wakers")?)?,
        victims: pairs(&loaded.map("victims")?)?,
        lost,
        missing: Vec::new(),
    })
}

fn pairs(map: &impl MapCore) -> Result<Vec<Pair>, Error> {
    let pair = |(PairKey { actor, other }, count)| Pair { actor, other, count };
    Ok(elements(map)?.into_iter().map(pair).collect())
}

impl Row {
    fn of(row: &Thread) -> Self {
        Self {
            wakeups: row.wakeups,
            run: (row.unseen == 0).then_some(row.run),
            preempted: row.preempted,
            process: row.process,
            prio: row.prio,
            comm: row.name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::object::layout::check_layout;

    /// Check that the structures are those of the BPF programs.
    #[test]
    fn layouts() {
        check_layout!(OBJECT, "who", ThreadKey { tid, born });
        check_layout!(OBJECT, "pair", PairKey { actor, other });
        check_layout!(
            OBJECT,
            "thread",
            Thread {
                wakeups,
                run,
                preempted,
                waker,
                process,
                prio,
                due,
                counts,
                fresh,
                unseen,
                spare,
                name
            }
        );
        check_layout!(
            OBJECT,
            "slot",
            Slot { r#in, spare, since, runs, lost_wakeups, lost_wakers, lost_victims }
        );
    }
}
