//! Metrics of recordings of real measurements.
#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::fs;
use std::path::Path;

use recording::Recording;
use summary::{Metric, Summary, metrics};

fn of(kind: &str) -> Vec<Metric> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/golden");
    let file = folder.join(format!("{kind}-1.json"));
    let text = fs::read_to_string(&file).unwrap();
    metrics(&Summary::of(&Recording::from_json(&text, &file).unwrap()))
}

/// Check that every kind of recording has its metrics, for each CPU if they are per CPU.
#[test]
fn every_kind_has_metrics() {
    for (kind, key, is_of_cpus) in [
        ("calls", "getpid_ns_p50", false),
        ("check", "noise_ppm", true),
        ("check", "timer_hz", true),
        ("jitter", "jitter_ns_max", false),
        ("latency", "late_ns_p99", true),
        ("noise", "gap_ns_max", true),
        ("run", "run_ns", false),
        ("slices", "slice_ns_mean", false),
        ("ticks", "timer_hz", true),
        ("wakers", "wakeups_hz", false),
        ("watch", "wait_ns_p99", false),
    ] {
        let all = of(kind);
        let found: Vec<&Metric> = all.iter().filter(|metric| metric.key == key).collect();
        assert!(!found.is_empty(), "{kind} has no {key}: {all:?}");
        for metric in found {
            assert_eq!(metric.cpu.is_some(), is_of_cpus, "{kind}: {metric:?}");
        }
    }
}
