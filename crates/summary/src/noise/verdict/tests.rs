//! Tests of `verdict`.

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
        Thread { tid, pid, prio, owner, unit: None, own: false }
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

/// Check that threads are grouped by program, kernel threads by name, and that the parts add up to
/// the lost time.
#[test]
fn parts_add_up() {
    let found = verdict(Some(shares()));
    let split = found.split.unwrap();
    let four = [split.programs, split.kernel, split.hypervisor, split.unexplained];
    let millis = four.map(|part| part.ns.get() / 1_000_000);
    assert_eq!(millis, [300, 100, 0, 50]);
    assert_eq!(four.iter().map(|part| part.ns).sum::<Nanos>(), found.lost.ns);
    let groups: Vec<_> = split
        .groups
        .iter()
        .map(|group| (group.name.as_str(), group.processes, group.threads, group.gaps))
        .collect();
    let expected = [
        ("qemu", 1, 2, 2),
        ("kworker", 0, 2, 2),
        ("tick_nohz_handler", 0, 0, 1),
        ("unexplained", 0, 0, 1),
    ];
    assert_eq!(groups, expected);
    assert_eq!(found.busy, Some(false));
}

/// Check that the threads of the measuring process are a part of their own, that a stranger of
/// the same name is a program, and that the parts still add up.
#[test]
fn own_cost_is_apart() {
    let thread = |tid, pid, own| {
        let owner = Some(ThreadOwner::Program("noisefloor".to_owned()));
        Some(Thread { tid, pid, prio: -1, owner, unit: None, own })
    };
    let share = |gap, thread, millis: u64| {
        let kind = CulpritKind::Thread;
        example::share(gap, kind, "noisefloor", thread, millis * 1_000_000)
    };
    let blamed = example::blamed(&[
        share(0, thread(11, 10, true), 200),
        share(0, thread(10, 10, true), 100),
        share(1, thread(20, 20, false), 100),
        share(2, None, 50),
    ]);
    let found = verdict(Some(blamed));
    let split = found.split.unwrap();
    let parts = [split.own, split.programs, split.kernel, split.unexplained];
    assert_eq!(parts.map(|part| part.ns.get() / 1_000_000), [300, 150, 0, 0]);
    assert_eq!(parts.iter().map(|part| part.ns).sum::<Nanos>(), found.lost.ns);
    let own = split.groups_of(LossCategory::Own);
    assert_eq!((own.groups.len(), own.threads, own.gaps), (1, 2, 2));
    assert_eq!((own.groups[0].name.as_str(), own.groups[0].processes), (OWN, 1));
}

/// Check that without events the verdict is that of `/proc`, and unknown without that.
#[test]
fn without_events() {
    let found = verdict(None);
    assert_eq!((found.split, found.busy), (None, None));
    let waited = |millis| {
        let waited_ns = Some(Nanos::from_millis(millis));
        let proc = ProcCounts { waited_ns, ..ProcCounts::default() };
        verdict_of(cpu(None, proc)).busy
    };
    assert_eq!([waited(999), waited(1000)], [Some(false), Some(true)]);
}

/// Check the consequences by hand.
#[test]
fn consequences() {
    let found = verdict(None).consequences;
    // Nine benchmarks fit into ten seconds; the first takes 1.45 s, the others one.
    let spread = found.benchmark_spread_ppm.unwrap();
    assert!((spread.get() - 225_000.0).abs() < 1.0, "{spread:?}");
    // A step of 1,000 CPUs begins when about 30 of them are in the gap of 300 ms, and 1 / 31 of it remains
    // before the end of the last one.
    let step = found.step_ns.unwrap().as_secs_f64();
    assert!((step / (0.3 * 30.0 / 31.0 + 0.001) - 1.0).abs() < 0.03, "{step:?}");
    assert!(found.job_hit_ppm.unwrap().get() > 45_000.0);
}

/// Check that the time of a CPU quota is a part of its own, and no program's.
#[test]
fn quotas() {
    use CulpritKind::{Quota, Thread};
    let program = ThreadOwner::Program("qemu".to_owned());
    let split = verdict(Some(example::blamed(&[
        share(0, Quota, "CPU quota", None, 250),
        share(0, Thread, "qemu", Some((10, 10, program)), 50),
    ])));
    let split = split.split.unwrap();
    let millis = [split.programs, split.quota].map(|part| part.ns.get() / 1_000_000);
    assert_eq!(millis, [50, 250]);
    assert_eq!(split.groups_of(LossCategory::Quota).gaps, 1);
}

/// Check the keys of the JSON contract.
#[test]
fn contract() {
    let value = serde_json::to_value(verdict(Some(shares()))).unwrap();
    let keys = |value: &serde_json::Value| {
        value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(keys(&value), "busy consequences cpus elapsed_ns lost split threads");
    assert_eq!(
        keys(&value["split"]),
        "firmware groups hypervisor hypervisor_max kernel own programs quota unexplained"
    );
    assert_eq!(
        value["split"]["groups"][0],
        serde_json::json!({"category": "programs", "kind": "thread", "name": "qemu",
            "unit": null, "processes": 1, "threads": 2, "gaps": 2,
            "part": {"ns": 300_000_000, "ppm": 30_000.0}, "max_ns": 200_000_000})
    );
    assert_eq!(
        keys(&value["consequences"]),
        "benchmark_ns benchmark_spread_ppm job_hit_ppm job_ns nodes step_ns step_slowdown_ppm"
    );
}
