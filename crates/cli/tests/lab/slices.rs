//! Time slices of spinning processes on real kernels: results are the same as on other
//! machines, and reading them has no effect.

use serde_json::Value;

use crate::site::{NEW, OLD, Site, named};

/// Results of another machine, on one CPU with 16 spinners: the kernel's package, the cell, and
/// the mean slice in milliseconds.
const EXPECTED: [(&str, &str, f64); 8] = [
    ("6.1.192-2", "both", 0.97),
    ("6.1.192-2", "wakeup=off both", 3.98),
    ("6.1.192-2", "alone", 3.98),
    ("6.1.192-2", "gentle=off both", 0.97),
    ("6.12.117-1~deb12u1", "both", 0.49),
    ("6.12.117-1~deb12u1", "wakeup=off both", 0.72),
    ("6.12.117-1~deb12u1", "alone", 0.72),
    ("6.12.117-1~deb12u1", "parity=off both", 0.41),
];
/// The largest difference from that: the spinners' code between two calls differs between the
/// builds.
const MARGIN: f64 = 0.02;
/// The same with two sleepers that preempt: the relation of their periods differs in each
/// phase, and that machine had one of these. In few phases they wake in turns instead of together,
/// and preempt twice as often; in which ones depends on the addresses of the build. A slice between those of
/// two phases agrees, too.
const MARGIN_OF_TWO: f64 = 0.05;

const AS_FOUND: &str = r#"
name = "as-found"
kernels = ["debian:6.1-cloud", "debian:6.12-cloud"]
variations = 1
phases = 8

[[workload]]
name = "alone"
slices = { spinners = 16, getrusage_every = 12500, burst = "2700ns", duration = "4s" }

[[workload]]
name = "both"
slices = { spinners = 16, getrusage_every = 12500, sleepers = 2, burst = "2700ns", duration = "4s" }
"#;
const CHANGED: &str = r#"
name = "changed"
kernels = ["debian:6.1-cloud", "debian:6.12-cloud"]
variations = 1
phases = 8

[[setting]]
name = "wakeup=off"
write = { "/sys/kernel/debug/sched/features" = "NO_WAKEUP_PREEMPTION" }

[[setting]]
name = "gentle=off"
kernels = ["debian:6.1-cloud"]
write = { "/sys/kernel/debug/sched/features" = "NO_GENTLE_FAIR_SLEEPERS" }

[[setting]]
name = "parity=off"
kernels = ["debian:6.12-cloud"]
write = { "/sys/kernel/debug/sched/features" = "NO_RUN_TO_PARITY" }

[[workload]]
name = "both"
slices = { spinners = 16, getrusage_every = 12500, sleepers = 2, burst = "2700ns", duration = "4s" }
"#;

/// Iterations of all spinners' loops per nanosecond.
fn passes(cell: &Value) -> f64 {
    let summary = &cell["summary"];
    summary["passes"].as_f64().unwrap() / summary["wall_ns"].as_f64().unwrap()
}

/// The mean slices of the phases in milliseconds, in ascending order.
fn slices(cell: &Value) -> Vec<f64> {
    let phases = cell["summary"]["turns_slice_ns"].as_array().unwrap();
    let mut phases: Vec<f64> =
        phases.iter().map(|slice| slice.as_f64().unwrap() / 1e6).collect();
    phases.sort_by(f64::total_cmp);
    phases
}

/// The mean of the sorted values between the quartiles.
fn interquartile_mean(values: &[f64]) -> f64 {
    let quarter = values.len() / 4;
    let middle = &values[quarter..values.len() - quarter];
    middle.iter().sum::<f64>() / middle.len() as f64
}

/// Check the mean slices of both kernels (the interquartile mean of their phases), with sleepers
/// and without, and with the relevant features; that every cell uses all CPU time, and that the
/// cost of sleepers is reported.
#[test]
fn what_was_measured_elsewhere() {
    let Some(site) = Site::new() else { return };
    let files = [("as-found.toml", AS_FOUND), ("changed.toml", CHANGED)];
    let files = files.map(|(name, text)| site.file(name, text));
    let cells: Vec<Value> =
        files.iter().flat_map(|file| site.cells(&[file], 0)).collect();
    assert_eq!(cells.len(), EXPECTED.len());
    for cell in &cells {
        let summary = &cell["summary"];
        let (used, wall) = (&summary["cpu_ns"], &summary["wall_ns"]);
        let busy = used.as_f64().unwrap() / wall.as_f64().unwrap();
        assert!((0.99..=1.0).contains(&busy), "{busy}: {}", cell["name"]);
        let version = cell["kernel"].as_str().unwrap();
        let is_it = |(package, name, _): &&(&str, &str, f64)| {
            version.contains(&format!("({package})")) && cell["name"] == *name
        };
        let Some((.., expected)) = EXPECTED.iter().find(is_it) else { continue };
        let preempts = cell["name"].as_str().is_some_and(|name| {
            name.ends_with("both") && !name.starts_with("wakeup=off")
        });
        let margin = if preempts { MARGIN_OF_TWO } else { MARGIN };
        let (name, phases) = (&cell["name"], slices(cell));
        println!("{version}, {name}: {phases:?} ms");
        let (least, most) = (phases[0], phases[phases.len() - 1]);
        let is_between =
            (least * (1.0 - margin)..=most * (1.0 + margin)).contains(expected);
        let off = (interquartile_mean(&phases) / expected - 1.0).abs();
        let agrees = off <= margin || preempts && is_between;
        assert!(agrees, "{version}, {name}: {phases:?} ms, not {expected}");
    }
    for kernel in [OLD, NEW] {
        let cells: Vec<Value> =
            cells.iter().filter(|cell| cell["asked"] == kernel).cloned().collect();
        let [alone, both] = ["alone", "both"].map(|name| named(&cells, name));
        let cost = both["sleepers_cost"]["work_ppm"].as_f64().unwrap() / 1e6;
        let lost = 1.0 - passes(both) / passes(alone);
        assert!((cost - lost).abs() < 1e-6, "{cost} {lost}");
        assert!(alone.get("sleepers_cost").is_none());
        let version = alone["kernel"].as_str().unwrap();
        if !EXPECTED.iter().any(|(package, ..)| version.contains(&format!("({package})")))
        {
            println!("skipped: no expected values for {version}");
        }
    }
}

/// Check that the instructions that spinners execute per second do not depend on readings
/// during the run, within 1/1000.
#[test]
fn reading_costs_nothing() {
    let Some(site) = Site::new() else { return };
    let file = site.file(
        "reading.toml",
        r#"
name = "reading"
kernels = ["debian:6.12-cloud"]
variations = 1
phases = 2
[[workload]]
name = "both"
slices = { spinners = 16, sleepers = 2, duration = "2s" }
[[workload]]
name = "read"
slices = { spinners = 16, sleepers = 2, duration = "2s", sample = "500ms" }
"#,
    );
    let cells = site.cells(&[&file], 0);
    let [read, both] = ["read", "both"].map(|name| passes(named(&cells, name)));
    let effect = read / both - 1.0;
    assert!(effect.abs() < 0.001, "{effect}");
}
