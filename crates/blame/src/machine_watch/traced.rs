//! Intervals from the sums of the BPF programs: differences of two readings, with names.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use facts::{CpuTimes, Root};
use recording::{
    Culprit, CulpritKind, LengthCounts, Thread, ThreadOwner, TopCounts, TopCpu, TopUse,
};
use units::{Cpu, CpuSet, Nanos};

use crate::bpf::top_programs::{BOUNDS, CpuSums, Key, Reading, TopPrograms, UseSums};
use crate::error::{Error, Kind};
use crate::names::of_sums::{Named, interrupt_record, run_record};
use crate::records::{Record, text_of};

/// The CPUs that can run threads now (`sysfs-devices-system-cpu`).
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// The threads of an interval that are listed alone.
const ALONE: usize = 64;
/// The threads of which the program and the unit are read in an interval: each takes some microseconds.
const LEARNT: usize = 256;

/// The programs, and what was read last.
pub(crate) struct Traced {
    programs: TopPrograms,
    /// The hypervisor's clock, if there is one.
    times: Option<CpuTimes>,
    cpus: HashMap<u32, CpuSums>,
    uses: HashMap<Key, UseSums>,
    names: HashMap<Key, (UseSums, Culprit)>,
}

impl Traced {
    /// Begins the first interval.
    pub(crate) fn new(
        mut programs: TopPrograms,
        root: &Root,
        has_steal: bool,
    ) -> Result<Self, Error> {
        let first = programs.read()?;
        Ok(Self {
            programs,
            times: has_steal.then(|| times(root)).flatten(),
            cpus: first.cpus.into_iter().map(|one| (one.cpu, one)).collect(),
            uses: first.uses.into_iter().map(|one| (one.key, one)).collect(),
            names: HashMap::new(),
        })
    }

    /// Ends an interval: what the CPUs did, and what used them.
    pub(crate) fn interval(
        &mut self,
        root: &Root,
    ) -> Result<(Vec<TopCpu>, Vec<TopUse>), Error> {
        let online = online(root)?;
        let Reading { cpus, uses } = self.programs.read()?;
        let grown = self.grown(uses);
        self.learn_names(root, &grown);
        let ticks = self.ticks(&grown);
        let mut all: Vec<TopCpu> = Vec::new();
        for sums in cpus.iter().filter(|sums| online.contains(Cpu::new(sums.cpu))) {
            let before = self.cpus.get(&sums.cpu).copied().unwrap_or_default();
            let mut cpu = difference(sums, &before);
            cpu.ticks = Some(ticks.get(&sums.cpu).copied().unwrap_or(0));
            all.push(cpu);
        }
        self.cpus = cpus.into_iter().map(|one| (one.cpu, one)).collect();
        if let Some(before) = self.times.take() {
            self.times = times(root);
            for cpu in &mut all {
                let after = self.times.as_ref();
                let time = after.and_then(|after| after.since(&before, cpu.cpu));
                cpu.steal_ns = time.map(|time| time.steal);
            }
        }
        let named = self.named(&grown);
        // As many names as the table has rows, however long this goes on.
        self.names.retain(|key, _| self.uses.contains_key(key));
        Ok((all, named))
    }

    /// What each CPU counted since the beginning.
    pub(crate) fn counts(&self) -> Vec<TopCounts> {
        let mut cpus: Vec<&CpuSums> = self.cpus.values().collect();
        cpus.sort_by_key(|sums| sums.cpu);
        cpus.into_iter().map(counts).collect()
    }

    /// The time without a name, as there was no room, and the time that is in no sum, as a switch was not
    /// traced.
    pub(crate) fn lost(&self) -> (Nanos, Nanos) {
        let sum = |of: fn(&CpuSums) -> u64| {
            Nanos::from_nanos(self.cpus.values().map(of).sum::<u64>())
        };
        (sum(|one| one.lost), sum(|one| one.unseen))
    }

    /// What has grown since the last reading, the most time first. A sum that has shrunk, as a thread was
    /// switched while it was read, grows again from its largest value on.
    fn grown(&mut self, uses: Vec<UseSums>) -> Vec<UseSums> {
        let mut before = std::mem::take(&mut self.uses);
        let mut grown = Vec::new();
        for mut sums in uses {
            let (ns, count) =
                before.remove(&sums.key).map_or((0, 0), |one| (one.ns, one.count));
            sums.ns = sums.ns.max(ns);
            let since = UseSums {
                ns: sums.ns - ns,
                count: sums.count.saturating_sub(count),
                ..sums
            };
            if !sums.is_removed {
                self.uses.insert(sums.key, sums);
            }
            if since.ns > 0 || since.count > 0 {
                grown.push(since);
            }
        }
        grown.sort_by_key(|one| Reverse(one.ns));
        grown
    }

    /// The number of timer interrupts of each CPU that had one.
    fn ticks(&self, grown: &[UseSums]) -> HashMap<u32, u64> {
        let is_timer = |one: &&UseSums| {
            let known = self.names.get(&one.key).filter(|_| !one.key.is_thread());
            known.is_some_and(|(_, culprit)| culprit.kind == CulpritKind::Timer)
        };
        let mut ticks = HashMap::new();
        for one in grown.iter().filter(is_timer) {
            *ticks.entry(one.key.cpu).or_insert(0) += one.count;
        }
        ticks
    }

    /// Reads the names of interrupts and threads, those with the most time first. Known ones are not read
    /// again, unless they have another name now.
    fn learn_names(&mut self, root: &Root, grown: &[UseSums]) {
        let is_new = |one: &&UseSums| match self.names.get(&one.key) {
            Some((known, _)) => known.name != one.name || known.process != one.process,
            None => true,
        };
        let (threads, interrupts): (Vec<&UseSums>, Vec<&UseSums>) =
            grown.iter().filter(is_new).partition(|one| one.key.is_thread());
        let new = threads.into_iter().take(LEARNT).chain(interrupts);
        let new: Vec<(UseSums, Record)> =
            new.filter_map(|one| Some((*one, record(one)?))).collect();
        if new.is_empty() {
            return;
        }
        let names = Named::read(root, new.iter().map(|(_, record)| *record).collect());
        for (one, record) in new {
            self.names.insert(one.key, (one, names.culprit(&record)));
        }
    }

    /// The uses with names: those with the most time alone, other threads added up by program.
    fn named(&self, grown: &[UseSums]) -> Vec<TopUse> {
        let mut alone: Vec<TopUse> = Vec::new();
        let mut others: BTreeMap<(u32, Culprit), TopUse> = BTreeMap::new();
        for (place, sums) in grown.iter().enumerate() {
            let known = self.names.get(&sums.key).map(|(_, culprit)| culprit.clone());
            let is_alone = place < ALONE || !sums.key.is_thread();
            if let Some(culprit) = known.clone().filter(|_| is_alone) {
                alone.push(used(sums, culprit));
                continue;
            }
            let program = program(sums, known);
            let one = used(sums, program.clone());
            match others.entry((sums.key.cpu, program)) {
                Entry::Occupied(mut sum) => sum.get_mut().add(&one),
                Entry::Vacant(new) => drop(new.insert(one)),
            }
        }
        alone.extend(others.into_values());
        alone.sort_by_key(|one| Reverse(one.ns));
        alone
    }
}

fn used(sums: &UseSums, culprit: Culprit) -> TopUse {
    TopUse {
        cpu: Some(Cpu::new(sums.key.cpu)),
        culprit,
        ns: Nanos::from_nanos(sums.ns),
        count: Some(sums.count),
        ns_max: Some(Nanos::from_nanos(sums.longest)),
    }
}

/// The program of a thread, as the name of several threads; its own name, if that is not known.
fn program(sums: &UseSums, known: Option<Culprit>) -> Culprit {
    let own = text_of(sums.name);
    let thread = known.and_then(|culprit| culprit.thread);
    let owner = match sums.is_kernel {
        true => ThreadOwner::Kernel,
        false => {
            let owner = thread.as_ref().and_then(|thread| thread.owner.clone());
            owner.unwrap_or_else(|| ThreadOwner::Program(own.clone()))
        }
    };
    let name = match &owner {
        ThreadOwner::Program(program) => program.clone(),
        ThreadOwner::Kernel => own,
    };
    let thread = Thread {
        tid: 0,
        pid: 0,
        prio: 0,
        owner: Some(owner),
        unit: thread.as_ref().and_then(|thread| thread.unit.clone()),
        own: thread.is_some_and(|thread| thread.own),
    };
    Culprit { kind: CulpritKind::Thread, name, thread: Some(thread) }
}

fn record(sums: &UseSums) -> Option<Record> {
    let UseSums { key, process, prio, is_kernel, name, .. } = *sums;
    if !key.is_thread() {
        return interrupt_record(key.level, key.id);
    }
    let mut record = run_record(key.id, process, prio, name);
    record.mark.is_kernel = is_kernel;
    Some(record)
}

/// What a CPU did since an earlier reading.
fn difference(now: &CpuSums, before: &CpuSums) -> TopCpu {
    let grown =
        |of: fn(&CpuSums) -> u64| Nanos::from_nanos(of(now).saturating_sub(of(before)));
    let wait = |of: fn((u64, u64, u64)) -> u64| {
        let (now, before) = (of(now.wait?), before.wait.map_or(0, of));
        Some(now.saturating_sub(before))
    };
    let quota = now.quota.map(|now| now.saturating_sub(before.quota.unwrap_or(0)));
    TopCpu {
        cpu: Cpu::new(now.cpu),
        ticks: None,
        programs_ns: grown(|one| one.programs),
        kernel_ns: Some(grown(|one| one.kernel)),
        interrupts_ns: grown(|one| one.interrupts),
        interruption_ns_max: Some(Nanos::from_nanos(now.interruption_max)),
        steal_ns: None,
        quota_ns: quota.map(Nanos::from_nanos),
        wait_ns: wait(|(waited, ..)| waited).map(Nanos::from_nanos),
        waits: wait(|(_, waits, _)| waits),
        wait_ns_max: now.wait.map(|(.., longest)| Nanos::from_nanos(longest)),
    }
}

fn counts(sums: &CpuSums) -> TopCounts {
    let [slept, preempted, idle] = sums.switches;
    let (waited, ..) = sums.wait.unwrap_or_default();
    let lengths = |lengths: &[u64], ns| LengthCounts {
        up_to: BOUNDS
            .map(Nanos::from_nanos)
            .into_iter()
            .zip(lengths.iter().copied())
            .collect(),
        above: lengths.last().copied().unwrap_or(0),
        ns: Nanos::from_nanos(ns),
    };
    TopCounts {
        cpu: Cpu::new(sums.cpu),
        slept,
        preempted,
        idle,
        interruptions: lengths(&sums.interruption_lengths, sums.interrupts),
        waits: sums.wait.is_some().then(|| lengths(&sums.wait_lengths, waited)),
    }
}

/// The CPUs that can run threads now.
pub(crate) fn online(root: &Root) -> Result<CpuSet, Error> {
    let failed = |why: String| Error::new(Kind::System, format!("{ONLINE}: {why}"));
    let text = root.text(ONLINE).map_err(|why| failed(why.to_string()))?;
    text.trim().parse().map_err(|why: units::CpuListError| failed(why.to_string()))
}

fn times(root: &Root) -> Option<CpuTimes> {
    CpuTimes::parse(&root.text(CpuTimes::FILE).ok()?, CpuTimes::FILE).ok()
}
