//! Fleets of made-up nodes with known causes.

use recording::{Code, CulpritKind, Doubt};
use serde_json::{Value, json};
use units::{Cpu, Ppm};

use super::*;
use crate::comparison::observation::{CulpritNumber, MetricNumber};
use crate::comparison::run_numbers::RunNumbers;
use crate::fleet::doubts::FleetDoubtCode;
use crate::random::Random;

/// A node of a check: its noise in ppm, of two CPUs, and what a source takes of it besides.
fn numbers(
    noise: f64,
    source: Option<(&str, f64)>,
    facts: &[(&str, Value)],
) -> RunNumbers {
    let metric = |cpu, value| MetricNumber {
        metric: "noise_ppm".to_owned(),
        cpu: Some(Cpu::new(cpu)),
        value,
        better: None,
    };
    let culprit = |name: &str, ppm| CulpritNumber {
        kind: CulpritKind::Thread,
        name: name.to_owned(),
        ppm: Ppm::new(ppm),
    };
    let more = source.map_or(0.0, |(_, ppm)| ppm);
    let culprits = [culprit("tick", noise)].into_iter();
    RunNumbers {
        taken: "2026-11-30T06:00:00Z".to_owned(),
        metrics: vec![metric(0, 0.5 * (noise + more)), metric(1, 1.5 * (noise + more))],
        culprits: Some(
            culprits.chain(source.map(|(name, ppm)| culprit(name, ppm))).collect(),
        ),
        facts: facts
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect(),
        parameters: vec![
            ("kind".to_owned(), json!("check")),
            ("noise_ns".to_owned(), json!(7)),
        ],
        doubts: Vec::new(),
    }
}

/// A fleet of so many nodes, whose noise is that of `noise`; `change` makes one of them special.
fn fleet(
    count: usize,
    change: impl Fn(usize, f64) -> (Option<(&'static str, f64)>, Vec<(&'static str, Value)>),
) -> Fleet {
    let mut random = Random::new(12);
    let mut fleet = Fleet::default();
    for at in 0..count {
        let noise = 1000.0 * (0.4 * (random.normal() / 2.0).tanh()).exp();
        let (source, facts) = change(at, noise);
        let run = FleetRun::of("check", &numbers(noise, source, &facts));
        fleet.add(&format!("r{}n{:02}", at / 16, at % 16), &format!("{at}.json"), run);
    }
    fleet
}

fn summarize(fleet: Fleet) -> FleetSummary {
    fleet.summarize(&FleetQuestion::default(), Vec::new()).unwrap()
}

fn names(summary: &FleetSummary) -> Vec<&str> {
    summary.noisy.iter().map(|one| one.node.node.as_str()).collect()
}

fn kernel(version: &str) -> Vec<(&'static str, Value)> {
    vec![("kernel.release", json!(version)), ("boot.parameters", json!(["quiet", "ro"]))]
}

/// Check that a fleet without a noisy node has none, no group, and the numbers of its nodes.
#[test]
fn quiet() {
    let found = summarize(fleet(64, |at, _| (None, kernel(["6.12", "6.1"][at % 2]))));
    assert_eq!((found.nodes, found.recordings), (64, 64));
    assert!(found.noisy.is_empty() && found.groups.is_empty(), "{:?}", found.groups);
    assert!((found.median - 1000.0).abs() < 100.0, "{}", found.median);
    assert_eq!(found.map.label.as_deref(), Some("name"));
    assert_eq!((found.map.rows.len(), found.map.rows[0].cells.len()), (4, 16));
    let keys: Vec<&str> = found.facts.iter().map(|fact| fact.key.as_str()).collect();
    assert_eq!(keys, ["label.name", "kernel.release"]);
    assert!(found.doubts.is_empty(), "{:?}", found.doubts);
}

/// Check that noisy nodes are named with the source that takes their time, and the kernel that they have.
#[test]
fn causes() {
    let change = |at: usize, noise: f64| match at {
        20..24 => (Some(("kworker/3", 9.0 * noise)), kernel("6.1")),
        _ => (None, kernel("6.12")),
    };
    let found = summarize(fleet(160, change));
    let mut all = names(&found);
    all.sort_unstable();
    assert_eq!(all, ["r1n04", "r1n05", "r1n06", "r1n07"]);
    let first = &found.noisy[0];
    let source = &first.sources.as_ref().unwrap()[0];
    assert_eq!((source.kind, source.name.as_str()), (CulpritKind::Thread, "kworker"));
    assert!(source.part_ppm.unwrap().get() > 8e5 && source.median_ppm.get() == 0.0);
    let group = &found.groups[first.groups[0]];
    assert_eq!((group.nodes, group.noisy, group.by_noisy), (4, 4, true));
    assert_eq!(group.facts[0].key, "kernel.release");
    assert_eq!(group.facts[0].value, json!("6.1"));
    assert!(group.p_value < 1e-4 && group.median > 5.0 * group.others);
    let map = found.sources.unwrap();
    assert_eq!(map.sources.iter().filter(|one| one.name == "kworker").count(), 1);
    assert_eq!(map.columns.iter().map(|column| column.nodes).sum::<usize>(), 160);
}

/// Check that a boot parameter by which half of a fleet is noisier is found without a noisy node.
#[test]
fn two_halves() {
    let change = |at: usize, noise: f64| {
        let words =
            if at % 2 == 0 { json!(["quiet", "nohz=off"]) } else { json!(["quiet"]) };
        let more = (at % 2 == 0).then_some(("tick", 0.8 * noise));
        (more, vec![("boot.parameters", words)])
    };
    let found = summarize(fleet(100, change));
    assert!(found.noisy.is_empty());
    assert_eq!(found.groups.len(), 1, "{:?}", found.groups);
    let group = &found.groups[0];
    assert_eq!(
        (group.facts[0].value.clone(), group.by_noisy),
        (json!("nohz=off"), false)
    );
}

/// Check that one noisy node of few has the fact that it alone has, and that this is no group.
#[test]
fn too_few_to_say() {
    let change = |at: usize, noise: f64| match at {
        3 => (Some(("backup", 30.0 * noise)), kernel("6.1")),
        _ => (None, kernel("6.12")),
    };
    let found = summarize(fleet(12, change));
    assert_eq!(names(&found), ["r0n03"]);
    assert!(found.groups.is_empty());
    let rare = &found.noisy[0].rare;
    assert_eq!(
        (rare.len(), rare[0].key.as_str(), rare[0].nodes),
        (1, "kernel.release", 1)
    );
    let four = summarize(fleet(4, |at, noise| {
        ((at == 0).then_some(("x", 99.0 * noise)), vec![])
    }));
    assert!(four.noisy.is_empty() && four.limit.is_none());
}

/// Check that facts of which each node has its own value are listed and not tested.
#[test]
fn serial_numbers() {
    let found = summarize(fleet(64, |at, _| (None, vec![("virt.serial", json!(at))])));
    let serial = found.facts.iter().find(|fact| fact.key == "virt.serial").unwrap();
    assert!(serial.is_individual && serial.values.is_empty());
    assert_eq!(
        (serial.count, found.tested),
        (64, 4),
        "the labels of four racks are tested"
    );
}

/// Check copies, recordings of other kinds, without the metric and with doubts, and two machines of one name.
#[test]
fn what_does_not_fit() {
    let mut fleet = fleet(8, |_, _| (None, kernel("6.12")));
    let run = |noise, facts: &[(&str, Value)]| {
        FleetRun::of("check", &numbers(noise, None, facts))
    };
    fleet.add("n1", "a", run(900.0, &[]));
    fleet.add("n2", "b", run(900.0, &[]));
    fleet.add("n3", "c", run(901.0, &[("virt.product", json!("X"))]));
    fleet.add("n3", "d", run(902.0, &[("virt.product", json!("Y"))]));
    fleet.add("n4", "e", FleetRun::of("latency", &numbers(1.0, None, &[])));
    let grave = Doubt::new(Code::ClockDrift, "drift");
    let numbers = RunNumbers { doubts: vec![grave], ..numbers(903.0, None, &[]) };
    fleet.add("n5", "f", FleetRun::of("check", &numbers));
    fleet.add(
        "n6",
        "g",
        FleetRun::of("check", &RunNumbers { metrics: vec![], ..numbers }),
    );
    let found = summarize(fleet);
    let doubt = |code| {
        let one = found.doubts.iter().find(|one| one.code == code);
        one.map(|one| (one.count, one.text.as_str(), one.names[0].as_str()))
    };
    assert_eq!(doubt(FleetDoubtCode::Duplicate), Some((1, "", "b (of a)")));
    assert_eq!(doubt(FleetDoubtCode::SameName), Some((1, "", "n3")));
    assert_eq!(doubt(FleetDoubtCode::OtherKind), Some((1, "latency", "e")));
    assert_eq!(doubt(FleetDoubtCode::Unreliable), Some((2, "clock_drift", "f")));
    assert_eq!(doubt(FleetDoubtCode::NoMetric), Some((1, "", "g")));
    let has = |name: &str| found.values.iter().any(|one| one.node == name);
    assert!(has("n3") && has("n3#2") && !has("n2") && !has("n4") && !has("n6"));
}

/// Check that several recordings of a node are its median, with the factor by which they differ.
#[test]
fn several_recordings() {
    let mut fleet = fleet(20, |_, _| (None, Vec::new()));
    for noise in [6500.0, 8000.0, 9500.0] {
        fleet.add(
            "many",
            &noise.to_string(),
            FleetRun::of("check", &numbers(noise, None, &[])),
        );
    }
    let found = summarize(fleet);
    assert_eq!(names(&found), ["many"]);
    let many = &found.noisy[0];
    assert_eq!((many.node.value, many.node.recordings), (8000.0, 3));
    assert!(many.spread.is_some_and(|factor| (1.1..1.5).contains(&factor)), "{many:?}");
}

/// Check what is refused: a kind and a metric that no recording has, and one that is no noise.
#[test]
fn refused() {
    let ask = |kind: Option<&str>, metric: Option<&str>| {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let asked = FleetQuestion {
            kind: own(kind),
            metric: own(metric),
            labels: FleetLabels::default(),
        };
        fleet(6, |_, _| (None, Vec::new()))
            .summarize(&asked, Vec::new())
            .map(|found| found.metric)
    };
    assert_eq!(ask(Some("check"), None), Ok("noise_ppm".to_owned()));
    assert!(matches!(ask(Some("noise"), None), Err(FleetError::NoKind(..))));
    assert!(matches!(ask(None, Some("gap_ns_max")), Err(FleetError::NoMetric(..))));
    assert!(matches!(
        Fleet::default().summarize(&FleetQuestion::default(), Vec::new()),
        Err(FleetError::NoKind(..))
    ));
}

/// Check that the order in which recordings are added has no effect.
#[test]
fn any_order() {
    let ordered = |order: &[usize]| {
        let mut fleet = Fleet::default();
        for at in order {
            let noise =
                1000.0 + 7.0 * (at % 5) as f64 + if *at == 4 { 9000.0 } else { 0.0 };
            let facts = [("kernel.release", json!(at % 3)), ("tick.hz", json!(at % 2))];
            let run = FleetRun::of(
                "check",
                &numbers(noise, Some((["a", "b"][at % 2], 5.0)), &facts),
            );
            fleet.add(&format!("n{at}"), &at.to_string(), run);
        }
        serde_json::to_string(&summarize(fleet)).unwrap()
    };
    let order: Vec<usize> = (0..30).collect();
    let reversed: Vec<usize> = order.iter().rev().copied().collect();
    assert!(ordered(&order) == ordered(&reversed), "{}", ordered(&reversed));
}
