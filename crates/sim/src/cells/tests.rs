use std::path::PathBuf;

use facts::Facts;
use recording::{
    Answer, Moments, Phases, Policy, SlicesSeries, Source, TicksSeries, TicksSpec,
    Variation,
};
use serde_json::{Value, json};
use units::{Cpu, CpuSet, Nanos};

use super::*;

/// The load of a guest: spinners on its CPUs, beside sleepers.
fn spec(cpus: u32) -> SlicesSpec {
    SlicesSpec {
        spinners: 4,
        getrusage_every: None,
        sleepers: 1,
        sleep_ns: Nanos::from_millis(1),
        burst_ns: Nanos::ZERO,
        duration_ns: Nanos::from_millis(400),
        cpus: (0..cpus).map(Cpu::new).collect::<CpuSet>(),
        pinned: false,
        nice: 0,
        policy: Policy::Other,
        steps: Vec::new(),
        turns: 1,
        sample_ns: None,
        phases: Some(Phases {
            count: 2,
            every_ns: Nanos::from_millis(20),
            step_ns: Phases::STEP,
        }),
        simulated: None,
    }
}

fn facts(release: &str, cpus: &str, hz: u32, mode: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("kernel.release", json!(release)),
        ("cpus.online", json!(cpus)),
        ("tick.hz", json!(hz)),
        ("tick.mode", json!(mode)),
    ]
}

fn recording(facts: Vec<(&'static str, Value)>, body: Body) -> Recording {
    Recording {
        taken: String::new(),
        tool: Recording::TOOL.to_owned(),
        facts: Facts::of_known(facts),
        body,
        doubts: Vec::new(),
        moments: Moments::default(),
        hardware: None,
        repeat: None,
    }
}

/// A cell with that recording.
fn cell(recording: Recording) -> Cell {
    let answer = Answer { recording, counts: None, profile: None, host: None };
    Cell {
        name: "one".to_owned(),
        asked: "debian:6.12-cloud".to_owned(),
        kernel: "6.12.117".to_owned(),
        image_bytes: None,
        machine: "pc".to_owned(),
        params: String::new(),
        settings: Vec::new(),
        services: Vec::new(),
        workload: String::new(),
        watch: None,
        mode: Mode::Exact,
        repeat: 1,
        identity: String::new(),
        cached: false,
        ending: Ending::Done(Box::new(answer)),
        variations: Vec::new(),
    }
}

/// The values do not matter: only a guest's load is simulated.
fn slices(facts: Vec<(&'static str, Value)>, cpus: u32) -> Cell {
    let series = SlicesSeries {
        began_ns: Nanos::ZERO,
        tasks: Vec::new(),
        turns: Vec::new(),
        switches: None,
        wakers: None,
        placements: None,
    };
    cell(recording(facts, Body::Slices { spec: spec(cpus), series }))
}

fn usual() -> Cell {
    slices(facts("6.12.117+deb12-cloud-amd64", "0", 250, "idle"), 1)
}

fn why(cell: &Cell) -> String {
    SimulatedCell::of(cell, &[]).unwrap_err().to_string()
}

/// Check that a cell is simulated with its load, its rules, its CPUs, its HZ and its settings, and that the
/// same cell gives the same recording.
#[test]
fn like_the_guest() {
    let found = SimulatedCell::of(&usual(), &[]).unwrap();
    assert_eq!((found.rules, &found.remarks[..]), ("6.12", &[][..]));
    let Body::Slices { spec: own, series } = &found.recordings[0].body else { panic!() };
    let inputs = own.simulated.as_ref().unwrap();
    assert_eq!((&*inputs.rules, inputs.kernel_work, inputs.seed), ("6.12", true, 0));
    let load = SlicesSpec { simulated: None, ..own.clone() };
    assert_eq!((load, series.tasks.len(), series.turns.len()), (spec(1), 5, 2));
    assert_eq!(series.switches, None);
    assert_eq!(SimulatedCell::of(&usual(), &[]).unwrap(), found);
    let others = [
        slices(facts("6.1.0-57-cloud-amd64", "0", 250, "idle"), 1),
        slices(facts("6.12.117+deb12-cloud-amd64", "0", 1000, "idle"), 1),
        slices(facts("6.12.117+deb12-cloud-amd64", "0-1", 250, "idle"), 2),
        Cell {
            settings: vec!["/sys/kernel/debug/sched/base_slice_ns=9000000".to_owned()],
            ..usual()
        },
    ];
    for other in &others {
        let other = SimulatedCell::of(other, &[]).unwrap();
        let Body::Slices { series: others, .. } = &other.recordings[0].body else {
            panic!()
        };
        assert_ne!(others.turns, series.turns);
    }
    let facts = SimulatedCell::of(&others[2], &[]).unwrap().recordings.remove(0).facts;
    assert_eq!(facts.cpus.online.get().map(CpuSet::len), Some(2));
}

/// Check that a cell is simulated as often as it was run, and that the tasks' start makes the difference.
#[test]
fn variations() {
    let of = |number| Variation {
        number,
        identity: String::new(),
        cached: false,
        ending: usual().ending,
    };
    let cell = Cell { variations: [2, 3].map(of).into(), ..usual() };
    let found = SimulatedCell::of(&cell, &[]).unwrap().recordings;
    assert_eq!(found.len(), 3);
    assert_eq!(SimulatedCell::of(&usual(), &[]).unwrap().recordings, found[..1]);
    assert_ne!(found[1], found[2]);
}

/// Check that a tick that never stops is simulated as such, by the facts of the guest.
#[test]
fn periodic_tick() {
    let release = "6.12.117+deb12-cloud-amd64";
    let stops = |mode| {
        let cell = slices(facts(release, "0", 250, mode), 1);
        let guest = measured(&cell).unwrap().0;
        machine(guest, &Rules::named("6.12").unwrap(), "").unwrap().stops_idle_tick
    };
    assert_eq!(["periodic", "idle", "full"].map(stops), [false, true, true]);
}

/// Check that DAMON's thread is simulated where its kernel has it, unless a boot parameter disables it.
#[test]
fn without_damon() {
    let cell = slices(facts("6.18.15", "0", 250, "idle"), 1);
    let has = |rules: &str, params: &str| {
        let guest = measured(&cell).unwrap().0;
        let machine = machine(guest, &Rules::named(rules).unwrap(), params).unwrap();
        machine.threads.iter().any(|thread| thread.name == KernelThread::DAMON)
    };
    assert!(has("6.18", "") && has("7.2", "nohz=off") && !has("6.12", ""));
    assert!(!has("6.18", "nohz=off damon_stat.enabled=0"));
    assert_eq!(parameters("damon_stat.enabled=0"), None);
}

/// Check the remarks about another version, boot parameters and tracing, and that a traced cell's switches
/// are simulated.
#[test]
fn remarks() {
    let cell = Cell {
        params: "nohz=off isolcpus=1 skew_tick=1".to_owned(),
        watch: Some(Source::Bpf),
        ..slices(facts("7.3.1", "0", 250, "idle"), 1)
    };
    let found = SimulatedCell::of(&cell, &[]).unwrap();
    assert_eq!(found.rules, "7.2");
    let expected = [
        "7.3 has the rules of 7.2, the newest",
        "boot parameters are not simulated: isolcpus=1 skew_tick=1",
        "the instructions of tracing (bpf) are not simulated",
    ];
    assert_eq!(found.remarks, expected);
    let Body::Slices { series, .. } = &found.recordings[0].body else { panic!() };
    assert!(series.switches.is_some());
}

/// Check the reasons why a cell cannot be simulated.
#[test]
fn refusals() {
    let lost =
        Ending::Lost { why: "the kernel ended".to_owned(), console: PathBuf::new() };
    assert_eq!(why(&Cell { ending: lost, ..usual() }), "it is lost");
    let timed = Cell { mode: Mode::Timed, ..usual() };
    assert_eq!(why(&timed), "in timed mode guest time is real time, which varies");
    let (cpus, interval_ns) = (Cpu::new(0).into(), Nanos::from_secs(1));
    let spec = TicksSpec { cpus, interval_ns, count: Some(1) };
    let body = Body::Ticks { spec, series: TicksSeries::default() };
    assert_eq!(
        why(&cell(recording(Vec::new(), body))),
        "it does not measure time slices"
    );
    let of = |facts| why(&slices(facts, 1));
    assert_eq!(of(Vec::new()), "the version of its kernel is unknown");
    let mut unknown = facts("6.1", "0", 250, "idle");
    unknown.remove(2);
    assert_eq!(of(unknown), "its CONFIG_HZ is unknown");
    let mut unknown = facts("6.1", "0", 250, "idle");
    unknown.remove(1);
    assert_eq!(of(unknown), "its number of CPUs is unknown");
    let background = [BackgroundLoad { cpu: Cpu::new(0), spinners: 1 }];
    let error = SimulatedCell::of(&usual(), &background).unwrap_err();
    assert_eq!(error.to_string(), "its background load is not simulated");
    let settings = vec!["/proc/sys/vm/swappiness=0".to_owned()];
    let why = why(&Cell { settings, ..usual() });
    assert_eq!(why, "there is no rule for /proc/sys/vm/swappiness");
}
