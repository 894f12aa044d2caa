//! The verdict of `check`: whether the machine is busy, to what its CPUs lost their time, and what
//! that means for programs.
//!
//! Parts are of all CPUs' time together. Gaps that were counted but not kept are unexplained, and
//! the consequences look only at the time before the first of them.

use std::collections::{BTreeMap, BTreeSet};

use recording::{CpuNoise, CulpritKind, ThreadOwner};
use serde::{Deserialize, Serialize};
use units::{Nanos, Ppm};

use crate::NoiseSummary;
use crate::summary::noise::culprits::CulpritSummary;
use crate::summary::noise::job_times::JobTimes;
use crate::summary::noise::window;

/// A machine whose CPUs lose more to other programs is busy: one percent.
const BUSY: Ppm = Ppm::new(10_000.0);
/// The job that is hit, and the step that many CPUs take together.
const JOB: Nanos = Nanos::from_millis(1);
const NODES: u32 = 1_000;
/// The benchmark, and how many runs of it say by how much it varies.
const BENCHMARK: Nanos = Nanos::from_secs(1);
const RUNS: usize = 5;

/// The verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether other programs took more than 1 % of the CPUs' time; null where that is not known.
    pub busy: Option<bool>,
    /// How many CPUs were measured.
    pub cpus: usize,
    /// How long, all of them together.
    pub elapsed_ns: Nanos,
    /// What they lost.
    pub lost: TimePart,
    /// To what; null where events could not be seen.
    pub split: Option<Split>,
    /// What other threads took, programs' and the kernel's, as `/proc` counts it; null where this
    /// kernel does not.
    pub threads: Option<TimePart>,
    /// What it means for programs.
    pub consequences: Consequences,
}

/// An amount of the CPUs' time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TimePart {
    /// The amount.
    pub ns: Nanos,
    /// The same as a part of the CPUs' time; null for a run of no length.
    pub ppm: Option<Ppm>,
}

/// To what time was lost; the parts add up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// Other programs, and threads of which it is not known whose they are.
    pub programs: TimePart,
    /// The kernel: interrupts, softirqs, its threads.
    pub kernel: TimePart,
    /// What is proven to have been the hypervisor.
    pub hypervisor: TimePart,
    /// What no event explains.
    pub unexplained: TimePart,
    /// What of that may have been the hypervisor, at most; null where that is not known.
    pub hypervisor_max: Option<TimePart>,
    /// Group by group, of each of these four the most first.
    pub groups: Vec<Group>,
}

/// The culprits of one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// To which part it belongs.
    pub taker: Taker,
    /// What kind of event; `thread` for a program.
    pub kind: CulpritKind,
    /// The program's name, or the event's.
    pub name: String,
    /// How many processes; 0 where it is no program.
    pub processes: usize,
    /// How many threads of them, or of the kernel.
    pub threads: usize,
    /// In how many gaps it had a share, culprit by culprit.
    pub gaps: u64,
    /// What it took.
    pub part: TimePart,
    /// The longest share.
    pub max_ns: Nanos,
}

/// The parts of what was lost.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Taker {
    /// Other programs.
    Programs,
    /// The kernel.
    Kernel,
    /// The hypervisor.
    Hypervisor,
    /// No event is known.
    Unexplained,
}

/// What it means for programs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Consequences {
    /// The job's length.
    pub job_ns: Nanos,
    /// The chance that a gap hits it on a CPU at random; null where the run was too short.
    pub job_hit_ppm: Option<Ppm>,
    /// The CPU time that a benchmark takes.
    pub benchmark_ns: Nanos,
    /// By how much its run time varies: half of the range, as a part of the median; null for less
    /// than five runs.
    pub benchmark_spread_ppm: Option<Ppm>,
    /// How many CPUs do a job each and wait for the slowest.
    pub nodes: u32,
    /// How long that takes in the mean; null where the run was too short.
    pub step_ns: Option<Nanos>,
    /// How much longer that is than the job, as a part of it.
    pub step_slowdown_ppm: Option<Ppm>,
}

impl Verdict {
    /// What a summary says, and the gaps that it was worked out from.
    pub(crate) fn of(noise: &NoiseSummary, seen: &[CpuNoise]) -> Self {
        let elapsed: Nanos = noise.cpus.iter().map(|cpu| cpu.elapsed_ns).sum();
        let part = |ns| TimePart { ns, ppm: Ppm::of(ns, elapsed) };
        let is_seen = seen.iter().all(|cpu| cpu.blamed.is_some());
        let split = (is_seen && !seen.is_empty()).then(|| Split::of(noise, part));
        let waited = noise.cpus.iter().map(|cpu| cpu.proc.waited_ns);
        let threads = waited.sum::<Option<Nanos>>().map(part);
        let others = split.as_ref().map(|split| split.programs).or(threads);
        Self {
            busy: others.and_then(|others| others.ppm).map(|ppm| ppm >= BUSY),
            cpus: noise.cpus.len(),
            elapsed_ns: elapsed,
            lost: part(noise.cpus.iter().map(|cpu| cpu.noise_ns).sum()),
            split,
            threads,
            consequences: Consequences::of(noise, seen),
        }
    }
}

/// The groups of one taker, and what they have together.
#[derive(Debug, Clone, PartialEq)]
pub struct Groups<'a> {
    /// The groups, the most first.
    pub groups: Vec<&'a Group>,
    /// How many threads.
    pub threads: usize,
    /// In how many gaps they had shares.
    pub gaps: u64,
    /// The longest share.
    pub longest: Option<Nanos>,
}

impl Group {
    /// What several groups took.
    pub fn sum(groups: &[&Self]) -> Nanos {
        groups.iter().map(|group| group.part.ns).sum()
    }
}

impl Split {
    /// The groups of one taker.
    pub fn groups_of(&self, taker: Taker) -> Groups<'_> {
        let groups = self.groups.iter().filter(|group| group.taker == taker);
        let groups: Vec<&Group> = groups.collect();
        Groups {
            threads: groups.iter().map(|group| group.threads).sum(),
            gaps: groups.iter().map(|group| group.gaps).sum(),
            longest: groups.iter().map(|group| group.max_ns).max(),
            groups,
        }
    }

    fn of(noise: &NoiseSummary, part: impl Fn(Nanos) -> TimePart + Copy) -> Self {
        let groups = groups(&noise.culprits, part);
        let all = |taker| {
            let own = groups.iter().filter(|group| group.taker == taker);
            part(own.map(|group| group.part.ns).sum())
        };
        let steal = noise.steal.as_ref();
        Self {
            programs: all(Taker::Programs),
            kernel: all(Taker::Kernel),
            hypervisor: all(Taker::Hypervisor),
            unexplained: all(Taker::Unexplained),
            hypervisor_max: steal.map(|steal| part(steal.unexplained_max_ns)),
            groups,
        }
    }
}

/// Who is one in a group: of programs and of the kernel's threads, the name without a number.
fn group_of(culprit: &CulpritSummary) -> (Taker, CulpritKind, &str) {
    use CulpritKind::{Ipi, Irq, Nmi, Softirq, Steal, Thread, Timer, Unexplained};
    let (kind, name) = (culprit.kind, culprit.name.as_str());
    let owner = culprit.thread.as_ref().and_then(|thread| thread.owner.as_ref());
    match (kind, owner) {
        (Thread, Some(ThreadOwner::Kernel)) => {
            (Taker::Kernel, kind, without_number(name))
        }
        (Thread, Some(ThreadOwner::Program(program))) => (Taker::Programs, kind, program),
        (Thread, None) => (Taker::Programs, kind, name),
        (Steal, _) => (Taker::Hypervisor, kind, name),
        (Unexplained, _) => (Taker::Unexplained, kind, name),
        (Timer | Ipi | Irq | Softirq | Nmi, _) => (Taker::Kernel, kind, name),
    }
}

/// `kworker` of `kworker/1:2-events`, `ksoftirqd` of `ksoftirqd/0`, `kdamond` of `kdamond.0`.
fn without_number(name: &str) -> &str {
    name.split(['/', '.', ':']).next().unwrap_or(name)
}

fn groups(culprits: &[CulpritSummary], part: impl Fn(Nanos) -> TimePart) -> Vec<Group> {
    let mut found: BTreeMap<_, Vec<&CulpritSummary>> = BTreeMap::new();
    for culprit in culprits {
        found.entry(group_of(culprit)).or_default().push(culprit);
    }
    let group = |((taker, kind, name), all): (
        (Taker, CulpritKind, &str),
        Vec<&CulpritSummary>,
    )| {
        let threads = || all.iter().filter_map(|culprit| culprit.thread.as_ref());
        let processes: BTreeSet<u32> = threads().map(|thread| thread.pid).collect();
        Group {
            taker,
            kind,
            name: name.to_owned(),
            processes: if taker == Taker::Programs { processes.len() } else { 0 },
            threads: threads().count(),
            gaps: all.iter().map(|culprit| culprit.gaps).sum(),
            part: part(all.iter().map(|culprit| culprit.ns).sum()),
            max_ns: all.iter().map(|culprit| culprit.max_ns).max().unwrap_or_default(),
        }
    };
    let mut groups: Vec<Group> = found.into_iter().map(group).collect();
    groups.sort_by_key(|group| (group.taker, std::cmp::Reverse(group.part.ns)));
    groups
}

impl Consequences {
    fn of(noise: &NoiseSummary, seen: &[CpuNoise]) -> Self {
        let windows = || seen.iter().map(|cpu| (window(cpu), cpu.gaps.as_slice()));
        let jobs = JobTimes::new(JOB, windows());
        let benchmarks = JobTimes::new(BENCHMARK, windows());
        let enough = benchmarks.count() >= RUNS;
        let step = jobs.mean_of_longest(NODES);
        Self {
            job_ns: JOB,
            job_hit_ppm: mean_hit(noise),
            benchmark_ns: BENCHMARK,
            benchmark_spread_ppm: benchmarks.spread().filter(|_| enough),
            nodes: NODES,
            step_ns: step,
            step_slowdown_ppm: step.and_then(|step| jobs.slowdown(step)),
        }
    }
}

/// The chance on a CPU at random; `None` where it is not known of each.
fn mean_hit(noise: &NoiseSummary) -> Option<Ppm> {
    let of_cpu = |cpu: &crate::CpuNoiseSummary| {
        cpu.risk.iter().find(|risk| risk.job_ns == JOB).and_then(|risk| risk.hit_ppm)
    };
    let hits: Option<Vec<Ppm>> = noise.cpus.iter().map(of_cpu).collect();
    let hits = hits.filter(|hits| !hits.is_empty())?;
    let sum: f64 = hits.iter().map(|hit| hit.get()).sum();
    Some(Ppm::new(sum / hits.len() as f64))
}

#[cfg(test)]
mod tests {
    use recording::{Blamed, ProcCounts, Share, Thread};
    use units::Span;

    use super::*;
    use crate::example;

    const GAPS: [Span; 3] = [
        Span { start: Nanos::from_millis(100), length: Nanos::from_millis(300) },
        Span { start: Nanos::from_millis(500), length: Nanos::from_millis(100) },
        Span { start: Nanos::from_millis(900), length: Nanos::from_millis(50) },
    ];

    fn share(
        gap: usize,
        kind: CulpritKind,
        name: &str,
        owner: Option<(u32, u32, ThreadOwner)>,
        millis: u64,
    ) -> (recording::Culprit, Share) {
        let thread = owner.map(|(tid, pid, owner)| {
            let (prio, owner) = (120, Some(owner));
            Thread { tid, pid, prio, owner }
        });
        example::share(gap, kind, name, thread, millis * 1_000_000)
    }

    fn cpu(blamed: Option<Blamed>, proc: ProcCounts) -> CpuNoise {
        let elapsed_ns = Nanos::from_secs(10);
        CpuNoise { elapsed_ns, blamed, proc, ..example::cpu_noise(&GAPS) }
    }

    fn verdict_of(cpu: CpuNoise) -> Verdict {
        let series = example::noise(None, vec![cpu]);
        Verdict::of(&NoiseSummary::of(&series), &series.cpus)
    }

    fn verdict(blamed: Option<Blamed>) -> Verdict {
        verdict_of(cpu(blamed, ProcCounts::default()))
    }

    fn shares() -> Blamed {
        use CulpritKind::{Thread, Timer, Unexplained};
        let program = || ThreadOwner::Program("qemu".to_owned());
        let kernel = || ThreadOwner::Kernel;
        example::blamed(&[
            share(0, Thread, "CPU 0/KVM", Some((11, 10, program())), 200),
            share(0, Thread, "qemu", Some((10, 10, program())), 100),
            share(1, Thread, "kworker/1:1-events", Some((7, 7, kernel())), 40),
            share(1, Thread, "kworker/u8:0", Some((8, 8, kernel())), 50),
            share(1, Timer, "tick_nohz_handler", None, 10),
            share(2, Unexplained, "unexplained", None, 50),
        ])
    }

    /// Check that threads are rolled up by program, the kernel's by name, and that the parts add
    /// up to what was lost.
    #[test]
    fn parts_add_up() {
        let found = verdict(Some(shares()));
        let split = found.split.unwrap();
        let four = [split.programs, split.kernel, split.hypervisor, split.unexplained];
        let millis = four.map(|part| part.ns.get() / 1_000_000);
        assert_eq!(millis, [300, 100, 0, 50]);
        assert_eq!(four.iter().map(|part| part.ns).sum::<Nanos>(), found.lost.ns);
        let told: Vec<_> = split
            .groups
            .iter()
            .map(|group| {
                (group.name.as_str(), group.processes, group.threads, group.gaps)
            })
            .collect();
        let expected = [
            ("qemu", 1, 2, 2),
            ("kworker", 0, 2, 2),
            ("tick_nohz_handler", 0, 0, 1),
            ("unexplained", 0, 0, 1),
        ];
        assert_eq!(told, expected);
        assert_eq!(found.busy, Some(true));
    }

    /// Check that without events the machine is judged by `/proc`, and not at all without that.
    #[test]
    fn without_events() {
        let found = verdict(None);
        assert_eq!((found.split, found.busy), (None, None));
        let waited = |millis| {
            let waited_ns = Some(Nanos::from_millis(millis));
            let proc = ProcCounts { waited_ns, ..ProcCounts::default() };
            verdict_of(cpu(None, proc)).busy
        };
        assert_eq!([waited(99), waited(100)], [Some(false), Some(true)]);
    }

    /// Check what the gaps mean for programs against arithmetic.
    #[test]
    fn consequences() {
        let found = verdict(None).consequences;
        // Nine benchmarks fit into ten seconds; the first takes 1.45 s, the others one.
        let spread = found.benchmark_spread_ppm.unwrap();
        assert!((spread.get() - 225_000.0).abs() < 1.0, "{spread:?}");
        // Of 9,550 jobs one takes 301 ms: that is the longest of 1,000 with nearly 10 %.
        let step = found.step_ns.unwrap();
        let chance = 1.0 - (1.0 - 1.0 / 9_550.0_f64).powf(1_000.0);
        assert!(step > Nanos::from_millis(1) && step.as_secs_f64() > 0.301 * chance);
        assert!(step.as_secs_f64() < 0.301 * chance * 1.5, "{step:?}");
        assert!(found.job_hit_ppm.unwrap().get() > 45_000.0);
    }

    /// Check the keys: this is the JSON contract.
    #[test]
    fn contract() {
        let value = serde_json::to_value(verdict(Some(shares()))).unwrap();
        let keys = |value: &serde_json::Value| {
            value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(keys(&value), "busy consequences cpus elapsed_ns lost split threads");
        assert_eq!(
            keys(&value["split"]),
            "groups hypervisor hypervisor_max kernel programs unexplained"
        );
        assert_eq!(
            value["split"]["groups"][0],
            serde_json::json!({"taker": "programs", "kind": "thread", "name": "qemu",
                "processes": 1, "threads": 2, "gaps": 2,
                "part": {"ns": 300_000_000, "ppm": 30_000.0}, "max_ns": 200_000_000})
        );
        assert_eq!(
            keys(&value["consequences"]),
            "benchmark_ns benchmark_spread_ppm job_hit_ppm job_ns nodes step_ns step_slowdown_ppm"
        );
    }
}
