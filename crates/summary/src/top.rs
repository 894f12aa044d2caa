//! The summary of `top`: what uses each CPU, of one interval or of all.

use std::cmp::Reverse;
use std::collections::HashMap;

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
        let by_unit = sources(sample, TopGrouping::Units, true);
        let cpu = |cpu: &TopCpu| {
            let most = by_unit.iter().find(|one| one.cpu == Some(cpu.cpu));
            summarized(cpu, sample.elapsed_ns, most.map(|one| one.name.clone()))
        };
        Self {
            source: source.to_owned(),
            elapsed_ns: sample.elapsed_ns,
            intervals: 1,
            own_ppm: Ppm::of(sample.own_ns, sample.elapsed_ns),
            cpus: sample.cpus.iter().map(cpu).collect(),
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

/// The uses of an interval in groups, by CPU or of all CPUs, the most time first.
fn sources(sample: &TopSample, grouping: TopGrouping, by_cpu: bool) -> Vec<TopSource> {
    let mut groups: HashMap<_, (TopUse, Vec<(&str, Nanos)>)> = HashMap::new();
    for one in &sample.uses {
        let cpu = one.cpu.filter(|_| by_cpu);
        let name = name(&one.culprit, grouping);
        let tid = tid(&one.culprit).filter(|_| grouping == TopGrouping::Threads);
        let group = groups.entry((cpu, one.culprit.kind, name, tid));
        let (sum, threads) = group
            .and_modify(|(sum, _)| {
                sum.add(one);
                sum.cpu = sum.cpu.filter(|cpu| one.cpu == Some(*cpu));
            })
            .or_insert_with(|| (one.clone(), Vec::new()));
        debug_assert!(sum.ns >= one.ns);
        match threads.iter_mut().find(|(known, _)| *known == one.culprit.name) {
            Some((_, ns)) => *ns = ns.saturating_add(one.ns),
            None => threads.push((&one.culprit.name, one.ns)),
        }
    }
    let mut all: Vec<TopSource> = groups
        .into_iter()
        .map(|((_, _, name, tid), (sum, threads))| {
            source(name, tid, &sum, threads, sample.elapsed_ns)
        })
        .collect();
    all.sort_by(|one, other| {
        (Reverse(one.ns), &one.name, one.tid).cmp(&(
            Reverse(other.ns),
            &other.name,
            other.tid,
        ))
    });
    all
}

fn source(
    name: String,
    tid: Option<u32>,
    sum: &TopUse,
    mut threads: Vec<(&str, Nanos)>,
    elapsed: Nanos,
) -> TopSource {
    threads.sort_by_key(|(name, ns)| (Reverse(*ns), *name));
    let names: Vec<String> =
        threads.iter().map(|(thread, _)| (*thread).to_owned()).collect();
    let thread = sum.culprit.thread.as_ref();
    let owner = thread.and_then(|thread| thread.owner.as_ref());
    TopSource {
        cpu: sum.cpu,
        kind: sum.culprit.kind,
        unit: thread.and_then(|thread| thread.unit.clone()),
        threads: if names == [name.as_str()] { Vec::new() } else { names },
        name,
        tid,
        ns: sum.ns,
        ppm: Ppm::of(sum.ns, elapsed),
        runs_hz: sum.count.and_then(|count| PerSecond::of(count, elapsed)),
        ns_max: sum.ns_max,
        kernel: owner == Some(&ThreadOwner::Kernel),
        own: thread.is_some_and(|thread| thread.own),
    }
}

fn tid(culprit: &Culprit) -> Option<u32> {
    culprit.thread.as_ref().map(|thread| thread.tid)
}

/// The name of the group of a thread or an interrupt.
fn name(culprit: &Culprit, grouping: TopGrouping) -> String {
    let thread = culprit.thread.as_ref().filter(|_| grouping == TopGrouping::Units);
    let Some(thread) = thread else { return culprit.name.clone() };
    match (&thread.unit, &thread.owner) {
        (Some(unit), _) => unit.to_string(),
        (None, Some(ThreadOwner::Program(program))) => program.clone(),
        (None, Some(ThreadOwner::Kernel) | None) => culprit.name.clone(),
    }
}

#[cfg(test)]
mod tests;
