//! The summary of `top`: what uses each CPU, of one interval or of all.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use facts::Unit;
use recording::{
    Culprit, CulpritKind, ThreadOwner, TopCpu, TopSample, TopSeries, TopUse,
};
use serde::Serialize;
use units::{Cpu, Nanos, PerSecond, Ppm};

/// What counts as one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopGrouping {
    /// The threads of a unit or a container; of a program that is in none; a kernel thread.
    Units,
    /// Each thread.
    Threads,
}

/// A CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TopCpuSummary {
    /// The CPU.
    pub cpu: Cpu,
    /// Timer interrupts per second; null if they are not known, as the other numbers.
    pub ticks_hz: Option<PerSecond>,
    /// The share of the time in which programs ran.
    pub programs_ppm: Option<Ppm>,
    /// The same of kernel threads; null if they count as programs.
    pub kernel_ppm: Option<Ppm>,
    /// The same of interrupts and softirqs.
    pub interrupts_ppm: Option<Ppm>,
    /// The share that the hypervisor took, which the others include.
    pub steal_ppm: Option<Ppm>,
    /// The share in which a cgroup's CPU quota was used up here.
    pub quota_ppm: Option<Ppm>,
    /// The longest time of interrupts and softirqs without a thread in between.
    pub interruption_ns_max: Option<Nanos>,
    /// The time that threads waited for this CPU, as a share of the time: the number that waited on
    /// average, times a million.
    pub wait_ppm: Option<Ppm>,
    /// The number of threads that got the CPU, per second.
    pub waits_hz: Option<PerSecond>,
    /// The longest of their waits.
    pub wait_ns_max: Option<Nanos>,
    /// The name of what used it most, by unit; null if nothing did, or if that is not known by CPU.
    pub most: Option<String>,
}

/// What used CPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TopSource {
    /// Its CPU; null: several, or not known.
    pub cpu: Option<Cpu>,
    /// What it is.
    pub kind: CulpritKind,
    /// Its name: of the unit or container, of the program, the thread or the interrupt.
    pub name: String,
    /// The unit or container.
    pub unit: Option<Unit>,
    /// The names of its threads, those with the most time first; empty if they are its name.
    pub threads: Vec<String>,
    /// Its thread ID, if it is one thread; 0: several threads of a program.
    pub tid: Option<u32>,
    /// Its time.
    pub ns: Nanos,
    /// That as a share of one CPU's time; null if no time passed, as the rate.
    pub ppm: Option<Ppm>,
    /// Its runs per second; null if they are not known, as the longest.
    pub runs_hz: Option<PerSecond>,
    /// The longest run.
    pub ns_max: Option<Nanos>,
    /// Whether it is a kernel thread.
    pub kernel: bool,
    /// Whether it is this program itself.
    pub own: bool,
}

/// What uses the CPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TopSummary {
    /// The source: `bpf`, or `proc` with counters only.
    pub source: String,
    /// The duration.
    pub elapsed_ns: Nanos,
    /// The number of intervals.
    pub intervals: usize,
    /// The CPU time of this program as a share of one CPU's time; null if no time passed.
    pub own_ppm: Option<Ppm>,
    /// The CPUs.
    pub cpus: Vec<TopCpuSummary>,
    /// What used them, the most time first.
    pub sources: Vec<TopSource>,
}

impl TopSummary {
    /// Summarizes all intervals.
    pub fn of(series: &TopSeries) -> Self {
        let mut samples = series.samples.iter().cloned();
        let sum = samples.next().map(|first| {
            samples.fold(first, |mut sum, next| {
                sum.add(next);
                sum
            })
        });
        let source = series.source.name();
        match sum {
            Some(sum) => Self {
                intervals: series.samples.len(),
                ..Self::of_interval(source, &sum, TopGrouping::Units)
            },
            None => Self {
                source: source.to_owned(),
                elapsed_ns: Nanos::ZERO,
                intervals: 0,
                own_ppm: None,
                cpus: Vec::new(),
                sources: Vec::new(),
            },
        }
    }

    /// Summarizes one interval.
    pub fn of_interval(source: &str, sample: &TopSample, grouping: TopGrouping) -> Self {
        let mut most: HashMap<Cpu, String> = HashMap::new();
        for one in sources(sample, TopGrouping::Units, true) {
            if let Some(cpu) = one.cpu {
                most.entry(cpu).or_insert(one.name);
            }
        }
        let mut cpu =
            |cpu: &TopCpu| summarized(cpu, sample.elapsed_ns, most.remove(&cpu.cpu));
        Self {
            source: source.to_owned(),
            elapsed_ns: sample.elapsed_ns,
            intervals: 1,
            own_ppm: Ppm::of(sample.own_ns, sample.elapsed_ns),
            cpus: sample.cpus.iter().map(&mut cpu).collect(),
            sources: sources(sample, grouping, false),
        }
    }

    /// What used one CPU.
    pub fn sources_of(
        sample: &TopSample,
        grouping: TopGrouping,
        cpu: Cpu,
    ) -> Vec<TopSource> {
        let mut all = sources(sample, grouping, true);
        all.retain(|one| one.cpu == Some(cpu));
        all
    }
}

fn summarized(cpu: &TopCpu, elapsed: Nanos, most: Option<String>) -> TopCpuSummary {
    let share = |ns: Nanos| Ppm::of(ns, elapsed);
    TopCpuSummary {
        cpu: cpu.cpu,
        ticks_hz: cpu.ticks.and_then(|count| PerSecond::of(count, elapsed)),
        programs_ppm: share(cpu.programs_ns),
        kernel_ppm: cpu.kernel_ns.and_then(share),
        interrupts_ppm: share(cpu.interrupts_ns),
        steal_ppm: cpu.steal_ns.and_then(share),
        quota_ppm: cpu.quota_ns.and_then(share),
        interruption_ns_max: cpu.interruption_ns_max,
        wait_ppm: cpu.wait_ns.and_then(share),
        waits_hz: cpu.waits.and_then(|count| PerSecond::of(count, elapsed)),
        wait_ns_max: cpu.wait_ns_max,
        most,
    }
}

/// The uses of a group.
struct Group<'a> {
    first: &'a TopUse,
    cpu: Option<Cpu>,
    ns: Nanos,
    count: Option<u64>,
    ns_max: Option<Nanos>,
    /// The names of its threads, with their times.
    threads: Vec<(&'a str, Nanos)>,
}

impl<'a> Group<'a> {
    fn of(first: &'a TopUse) -> Self {
        let TopUse { cpu, ns, count, ns_max, .. } = *first;
        let threads = vec![(&*first.culprit.name, ns)];
        Self { first, cpu, ns, count, ns_max, threads }
    }

    fn add(&mut self, one: &'a TopUse) {
        self.cpu = self.cpu.filter(|cpu| one.cpu == Some(*cpu));
        self.ns = self.ns.saturating_add(one.ns);
        self.count =
            self.count.zip(one.count).map(|(sum, count)| sum.saturating_add(count));
        self.ns_max = self.ns_max.zip(one.ns_max).map(|(sum, ns)| sum.max(ns));
        match self.threads.iter_mut().find(|(known, _)| *known == one.culprit.name) {
            Some((_, ns)) => *ns = ns.saturating_add(one.ns),
            None => self.threads.push((&one.culprit.name, one.ns)),
        }
    }
}

/// The uses of an interval in groups, by CPU or of all CPUs, the most time first. There can be thousands.
fn sources(sample: &TopSample, grouping: TopGrouping, by_cpu: bool) -> Vec<TopSource> {
    let mut groups: HashMap<_, Group<'_>> = HashMap::new();
    for one in &sample.uses {
        let cpu = one.cpu.filter(|_| by_cpu);
        let name = name(&one.culprit, grouping);
        let tid = tid(&one.culprit).filter(|_| grouping == TopGrouping::Threads);
        match groups.entry((cpu, one.culprit.kind, name, tid)) {
            Entry::Occupied(mut group) => group.get_mut().add(one),
            Entry::Vacant(new) => drop(new.insert(Group::of(one))),
        }
    }
    let groups = groups.into_iter();
    let mut all: Vec<TopSource> = groups
        .map(|((_, _, name, tid), group)| {
            source(name.into_owned(), tid, group, sample.elapsed_ns)
        })
        .collect();
    all.sort_by(|one, other| {
        let key = |one: &TopSource| (Reverse(one.ns), one.tid);
        key(one).cmp(&key(other)).then_with(|| one.name.cmp(&other.name))
    });
    all
}

fn source(name: String, tid: Option<u32>, group: Group<'_>, elapsed: Nanos) -> TopSource {
    let Group { first, cpu, ns, count, ns_max, mut threads } = group;
    threads.sort_by_key(|(name, ns)| (Reverse(*ns), *name));
    let is_name = matches!(threads[..], [(only, _)] if only == name);
    let threads = threads.into_iter().map(|(thread, _)| thread.to_owned());
    let thread = first.culprit.thread.as_ref();
    let owner = thread.and_then(|thread| thread.owner.as_ref());
    TopSource {
        cpu,
        kind: first.culprit.kind,
        unit: thread.and_then(|thread| thread.unit.clone()),
        threads: if is_name { Vec::new() } else { threads.collect() },
        name,
        tid,
        ns,
        ppm: Ppm::of(ns, elapsed),
        runs_hz: count.and_then(|count| PerSecond::of(count, elapsed)),
        ns_max,
        kernel: owner == Some(&ThreadOwner::Kernel),
        own: thread.is_some_and(|thread| thread.own),
    }
}

fn tid(culprit: &Culprit) -> Option<u32> {
    culprit.thread.as_ref().map(|thread| thread.tid)
}

/// The name of the group of a thread or an interrupt.
fn name(culprit: &Culprit, grouping: TopGrouping) -> Cow<'_, str> {
    let thread = culprit.thread.as_ref().filter(|_| grouping == TopGrouping::Units);
    let own = Cow::Borrowed(&*culprit.name);
    let Some(thread) = thread else { return own };
    match (&thread.unit, &thread.owner) {
        (Some(unit), _) => unit.to_string().into(),
        (None, Some(ThreadOwner::Program(program))) => program.into(),
        (None, Some(ThreadOwner::Kernel) | None) => own,
    }
}

#[cfg(test)]
mod tests;
