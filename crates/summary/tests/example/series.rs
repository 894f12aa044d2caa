//! Small recordings, for tests.

use recording::{
    Blamed, CpuNoise, CpuSwitches, Culprit, CulpritKind, NoiseSeries, Policy, ProcCounts,
    Role, Share, SlicesSeries, SlicesSpec, SlicesTask, SlicesTurn, Source, Step,
    StepSetting, SwitchedTask, Switches, Thread,
};
use units::{Cpu, Nanos, Span, TscHz};

/// A culprit, and its share of a gap.
pub(crate) fn share(
    gap: usize,
    kind: CulpritKind,
    name: &str,
    thread: Option<Thread>,
    ns: u64,
) -> (Culprit, Share) {
    let ns = Nanos::from_nanos(ns);
    let (inside_ns, entry_ns) = (Nanos::ZERO, Some(Nanos::ZERO));
    let share = Share { gap, culprit: 0, ns, inside_ns, entry_ns };
    (Culprit { kind, name: name.to_owned(), thread }, share)
}

/// The shares of culprits in the gaps of one CPU.
pub(crate) fn blamed(all: &[(Culprit, Share)]) -> Blamed {
    let share =
        |(culprit, (_, share)): (usize, &(Culprit, Share))| Share { culprit, ..*share };
    Blamed {
        culprits: all.iter().map(|(culprit, _)| culprit.clone()).collect(),
        shares: all.iter().enumerate().map(share).collect(),
        ..Blamed::default()
    }
}

/// One CPU, measured for a second.
pub(crate) fn cpu_noise(gaps: &[Span]) -> CpuNoise {
    CpuNoise {
        cpu: Cpu::new(3),
        began_ns: Nanos::ZERO,
        elapsed_ns: Nanos::from_secs(1),
        phases: Vec::new(),
        loop_ns: Nanos::from_nanos(20),
        passes: 1,
        gaps: gaps.to_vec(),
        lost: None,
        blamed: None,
        backwards: 0,
        proc: ProcCounts::default(),
    }
}

/// Measured CPUs, with gaps of at least 100 ns.
pub(crate) fn noise(source: Option<Source>, cpus: Vec<CpuNoise>) -> NoiseSeries {
    NoiseSeries {
        clock: "tsc".to_owned(),
        clock_hz: TscHz::new(2_000_000_000).unwrap(),
        began_raw_ns: Nanos::ZERO,
        monotonic: None,
        source,
        threshold_ns: Nanos::from_nanos(100),
        cpus,
    }
}

/// Two spinners and a sleeper on one CPU, without and with `A=off`.
pub(crate) fn slices(
    turns: Vec<SlicesTurn>,
    switches: Option<Switches>,
) -> (SlicesSpec, SlicesSeries) {
    let setting = StepSetting { name: "A".to_owned(), value: "off".to_owned() };
    let spec = SlicesSpec {
        spinners: 2,
        getrusage_every: None,
        sleepers: 1,
        sleep_ns: Nanos::from_millis(1),
        burst_ns: Nanos::ZERO,
        duration_ns: Nanos::from_secs(1),
        cpus: "0".parse().unwrap(),
        pinned: false,
        nice: 0,
        policy: Policy::Other,
        steps: vec![Step { settings: vec![setting] }],
        turns: 1,
        sample_ns: None,
        phases: None,
        simulated: None,
    };
    let task = |(pid, name, role): (u32, &str, Role)| SlicesTask {
        pid,
        name: name.to_owned(),
        role,
        cpu: None,
    };
    let (spinner, sleeper) = (Role::Spinner, Role::Sleeper);
    let tasks = [(1, "spin/0", spinner), (2, "spin/1", spinner), (3, "sleep/0", sleeper)];
    let tasks = tasks.map(task).to_vec();
    let began_ns = Nanos::ZERO;
    (
        spec,
        SlicesSeries { began_ns, tasks, turns, switches, wakers: None, placements: None },
    )
}

/// Switches on CPUs between these tasks: thread IDs and names.
pub(crate) fn switches(tasks: &[(u32, &str)], cpus: Vec<CpuSwitches>) -> Switches {
    let task = |&(tid, name): &(u32, &str)| SwitchedTask { tid, name: name.to_owned() };
    let tasks = tasks.iter().map(task).collect();
    Switches { source: Source::Bpf, tasks, cpus }
}
