//! The verdict of `check`: whether the machine is busy, the attribution of its CPUs' lost time, and the
//! consequences for programs.
//!
//! Shares are those of the time of all CPUs together. The time of the measuring process itself is a
//! part of its own: it belongs to no other program, and the machine loses it only to this measurement. Gaps that were counted but not stored are
//! unexplained, and the consequences are those of the time before the first of them.

use std::collections::{BTreeMap, BTreeSet};

use facts::Unit;
use recording::{AtScaleSpec, CpuNoise, CulpritKind, ThreadOwner, source_name};
use serde::Serialize;
use units::{Nanos, Ppm};

use crate::noise::at_scale::AtScale;
use crate::noise::culprits::CulpritSummary;
use crate::noise::job_times::JobTimes;
use crate::noise::{CpuNoiseSummary, NoiseSummary};

/// From this share on that other programs use, a machine is busy: a program that needs a CPU for
/// itself gets a tenth less of it.
const BUSY: Ppm = Ppm::new(100_000.0);
/// The length of a job, also of one step of a parallel program, and the number of its CPUs.
const JOB: Nanos = Nanos::from_millis(1);
const NODES: u32 = 1_000;
/// The length of a benchmark, and the number of runs from which its variation is known.
const BENCHMARK: Nanos = Nanos::from_secs(1);
const RUNS: usize = 5;

/// The name of the group of the measuring process.
const OWN: &str = "noisefloor";

/// The verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Whether other programs used 10 % of the CPUs' time or more; null if unknown.
    pub busy: Option<bool>,
    /// The number of measured CPUs.
    pub cpus: usize,
    /// The measured time of all of them together.
    pub elapsed_ns: Nanos,
    /// The time that they lost.
    pub lost: TimePart,
    /// Its attribution; null if events were not traced.
    pub split: Option<Split>,
    /// The time used by other threads, according to `/proc/thread-self/schedstat`; null without that
    /// file.
    pub threads: Option<TimePart>,
    /// The consequences for programs.
    pub consequences: Consequences,
}

/// An amount of the CPUs' time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct TimePart {
    /// The amount.
    pub ns: Nanos,
    /// That as a share of the CPUs' time; null if no time passed.
    pub ppm: Option<Ppm>,
}

impl TimePart {
    pub(crate) fn of(ns: Nanos, elapsed: Nanos) -> Self {
        Self { ns, ppm: Ppm::of(ns, elapsed) }
    }

    /// Both together, of the same CPUs.
    pub(crate) fn plus(self, other: Self) -> Self {
        let shares = self.ppm.zip(other.ppm);
        let ppm = shares.map(|(one, other)| Ppm::new(one.get() + other.get()));
        Self { ns: self.ns + other.ns, ppm }
    }
}

/// The attribution of the lost time; the parts add up to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Split {
    /// Other programs, and threads with an unknown owner.
    pub programs: TimePart,
    /// The kernel: interrupts, softirqs, kernel threads.
    pub kernel: TimePart,
    /// CPU quotas of cgroups: the measuring threads had used theirs up.
    pub quota: TimePart,
    /// The hypervisor, as far as proven.
    pub hypervisor: TimePart,
    /// The firmware, as far as proven.
    pub firmware: TimePart,
    /// Time without a known cause.
    pub unexplained: TimePart,
    /// The measuring process itself; zero in older recordings, where it is part of the programs.
    pub own: TimePart,
    /// The upper bound of the hypervisor's part of the unexplained time; null if unknown.
    pub hypervisor_max: Option<TimePart>,
    /// The groups of each of these six, in descending order of time.
    pub groups: Vec<Group>,
}

/// The culprits of one program, or of one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// The part of the lost time to which it belongs.
    pub category: LossCategory,
    /// The kind of event; `thread` for a program.
    pub kind: CulpritKind,
    /// The name of the program or the event.
    pub name: String,
    /// The unit of systemd or the container to which the program belongs; null if none is known.
    pub unit: Option<Unit>,
    /// The number of processes; 0 if it is not a program.
    pub processes: usize,
    /// The number of threads of them, or of the kernel.
    pub threads: usize,
    /// The number of gaps with a share of it, added up for its culprits.
    pub gaps: u64,
    /// Its time.
    pub part: TimePart,
    /// The longest share.
    pub max_ns: Nanos,
}

/// The parts of the lost time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossCategory {
    /// Other programs.
    Programs,
    /// The kernel.
    Kernel,
    /// A CPU quota.
    Quota,
    /// The hypervisor.
    Hypervisor,
    /// The firmware.
    Firmware,
    /// No cause is known.
    Unexplained,
    /// The measuring process itself.
    Own,
}

/// The consequences for programs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Consequences {
    /// The length of a job.
    pub job_ns: Nanos,
    /// The probability that it meets a gap, on a random CPU; null if the run was too short.
    pub job_hit_ppm: Option<Ppm>,
    /// The CPU time of a benchmark.
    pub benchmark_ns: Nanos,
    /// The variation of its run time: half of the range, as a share of the median; null for fewer than
    /// five runs.
    pub benchmark_spread_ppm: Option<Ppm>,
    /// The number of CPUs of a parallel program: each runs a job, and waits for the slowest.
    pub nodes: u32,
    /// The mean duration of such a step; null if the run was too short.
    pub step_ns: Option<Nanos>,
    /// Its additional time, as a share of the job.
    pub step_slowdown_ppm: Option<Ppm>,
}

impl Verdict {
    /// From a summary and its gaps.
    pub(crate) fn of(noise: &NoiseSummary, cpus: &[CpuNoise]) -> Self {
        let elapsed = noise.elapsed();
        let part = |ns| TimePart::of(ns, elapsed);
        let is_traced = cpus.iter().all(|cpu| cpu.blamed.is_some());
        let split = (is_traced && !cpus.is_empty()).then(|| Split::of(noise, part));
        let waited = noise.cpus.iter().map(|cpu| cpu.proc.waited_ns);
        let threads = waited.sum::<Option<Nanos>>().map(part);
        let others = split.as_ref().map(|split| split.programs).or(threads);
        Self {
            busy: others.and_then(|others| others.ppm).map(|ppm| ppm >= BUSY),
            cpus: noise.cpus.len(),
            elapsed_ns: elapsed,
            lost: part(noise.lost()),
            split,
            threads,
            consequences: Consequences::of(noise, cpus),
        }
    }
}

/// The groups of one category, and their sums.
#[derive(Debug, Clone, PartialEq)]
pub struct Groups<'a> {
    /// The groups, in descending order of time.
    pub groups: Vec<&'a Group>,
    /// The number of threads.
    pub threads: usize,
    /// The number of gaps with a share of them.
    pub gaps: u64,
    /// The longest share.
    pub longest: Option<Nanos>,
}

impl Group {
    /// The time of several groups.
    pub fn sum(groups: &[&Self]) -> Nanos {
        groups.iter().map(|group| group.part.ns).sum()
    }

    /// These culprits of one source, without their time.
    fn of((category, kind, name): Source, all: &[&CulpritSummary]) -> Self {
        let threads = || all.iter().filter_map(|culprit| culprit.thread.as_ref());
        let processes: BTreeSet<u32> = threads().map(|thread| thread.pid).collect();
        Self {
            category,
            kind,
            name: name.to_owned(),
            unit: None,
            processes: match category {
                LossCategory::Programs | LossCategory::Own => processes.len(),
                LossCategory::Kernel
                | LossCategory::Quota
                | LossCategory::Hypervisor
                | LossCategory::Firmware
                | LossCategory::Unexplained => 0,
            },
            threads: threads().count(),
            gaps: all.iter().map(|culprit| culprit.gaps).sum(),
            part: TimePart::default(),
            max_ns: all.iter().map(|culprit| culprit.max_ns).max().unwrap_or_default(),
        }
    }
}

impl Split {
    /// The groups of one category.
    pub fn groups_of(&self, category: LossCategory) -> Groups<'_> {
        let groups = self.groups.iter().filter(|group| group.category == category);
        let groups: Vec<&Group> = groups.collect();
        Groups {
            threads: groups.iter().map(|group| group.threads).sum(),
            gaps: groups.iter().map(|group| group.gaps).sum(),
            longest: groups.iter().map(|group| group.max_ns).max(),
            groups,
        }
    }

    fn of(noise: &NoiseSummary, part: impl Fn(Nanos) -> TimePart + Copy) -> Self {
        let groups = groups(&noise.culprits, part, unit_of);
        let all = |category| {
            let own = groups.iter().filter(|group| group.category == category);
            part(own.map(|group| group.part.ns).sum())
        };
        let steal = noise.steal.as_ref();
        Self {
            programs: all(LossCategory::Programs),
            kernel: all(LossCategory::Kernel),
            quota: all(LossCategory::Quota),
            hypervisor: all(LossCategory::Hypervisor),
            firmware: all(LossCategory::Firmware),
            unexplained: all(LossCategory::Unexplained),
            own: all(LossCategory::Own),
            hypervisor_max: steal.map(|steal| part(steal.unexplained_max_ns)),
            groups,
        }
    }
}

/// A category, a kind and a name.
type Source<'a> = (LossCategory, CulpritKind, &'a str);

/// The source to which a culprit belongs: the program of its threads, and kernel threads by their name
/// without a number.
pub(crate) fn source_of<'a>(
    kind: CulpritKind,
    name: &'a str,
    thread: Option<&'a recording::Thread>,
) -> Source<'a> {
    use CulpritKind::{Ipi, Irq, Nmi, Quota, Softirq, Steal, Thread, Timer, Unexplained};
    if thread.is_some_and(|thread| thread.own) {
        return (LossCategory::Own, kind, OWN);
    }
    let owner = thread.and_then(|thread| thread.owner.as_ref());
    match (kind, owner) {
        (Thread, Some(ThreadOwner::Kernel)) => {
            (LossCategory::Kernel, kind, source_name(name, thread))
        }
        (Thread, Some(ThreadOwner::Program(_)) | None) => {
            (LossCategory::Programs, kind, source_name(name, thread))
        }
        (Quota, _) => (LossCategory::Quota, kind, name),
        (Steal, _) => (LossCategory::Hypervisor, kind, name),
        (CulpritKind::Firmware, _) => (LossCategory::Firmware, kind, name),
        (Unexplained, _) => (LossCategory::Unexplained, kind, name),
        (Timer | Ipi | Irq | Softirq | Nmi, _) => (LossCategory::Kernel, kind, name),
    }
}

/// The unit of a program's culprit.
fn unit_of(culprit: &CulpritSummary) -> Option<&Unit> {
    let thread = culprit.thread.as_ref().filter(|thread| !thread.own);
    thread.and_then(|thread| thread.unit.as_ref())
}

/// The groups of culprits with one source and one `unit`.
pub(crate) fn groups(
    culprits: &[CulpritSummary],
    part: impl Fn(Nanos) -> TimePart,
    unit: fn(&CulpritSummary) -> Option<&Unit>,
) -> Vec<Group> {
    let mut found: BTreeMap<(Source, Option<&Unit>), Vec<&CulpritSummary>> =
        BTreeMap::new();
    for culprit in culprits {
        let source = source_of(culprit.kind, &culprit.name, culprit.thread.as_ref());
        found.entry((source, unit(culprit))).or_default().push(culprit);
    }
    let groups = found.into_iter().map(|((source, unit), all)| {
        let ns = all.iter().map(|culprit| culprit.ns).sum();
        Group { unit: unit.cloned(), part: part(ns), ..Group::of(source, &all) }
    });
    let mut groups: Vec<Group> = groups.collect();
    groups.sort_by_key(|group| (group.category, std::cmp::Reverse(group.part.ns)));
    groups
}

impl Consequences {
    fn of(noise: &NoiseSummary, cpus: &[CpuNoise]) -> Self {
        let windows = || cpus.iter().map(|cpu| (cpu.window(), cpu.gaps.as_slice()));
        let benchmarks = JobTimes::new(BENCHMARK, windows());
        let enough = benchmarks.count() >= RUNS;
        let step = step(noise, cpus);
        Self {
            job_ns: JOB,
            job_hit_ppm: mean_hit(noise),
            benchmark_ns: BENCHMARK,
            benchmark_spread_ppm: benchmarks.spread().filter(|_| enough),
            nodes: NODES,
            step_ns: step.map(|step| step.mean_ns()),
            step_slowdown_ppm: step.map(|step| step.slowdown_ppm),
        }
    }
}

/// The effect on parallel jobs: the one that was asked for, or another.
fn step(noise: &NoiseSummary, cpus: &[CpuNoise]) -> Option<AtScale> {
    let (ranks, step_ns) = (u64::from(NODES), JOB);
    let is_same = |one: &&AtScale| (one.ranks, one.step_ns) == (ranks, step_ns);
    let known = noise.at_scale.iter().find(is_same).copied();
    let asked = || AtScaleSpec { ranks: vec![ranks], step_ns };
    known.or_else(|| AtScale::of(&asked(), cpus).pop())
}

/// The probability on a random CPU; `None` if unknown for one of them.
fn mean_hit(noise: &NoiseSummary) -> Option<Ppm> {
    let of_cpu = |cpu: &CpuNoiseSummary| {
        cpu.risk.iter().find(|risk| risk.job_ns == JOB).and_then(|risk| risk.hit_ppm)
    };
    let hits: Option<Vec<Ppm>> = noise.cpus.iter().map(of_cpu).collect();
    let hits = hits.filter(|hits| !hits.is_empty())?;
    let sum: f64 = hits.iter().map(|hit| hit.get()).sum();
    Some(Ppm::new(sum / hits.len() as f64))
}

#[cfg(test)]
mod tests;
