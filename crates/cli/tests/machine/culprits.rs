//! Who took it, as users ask: one gap and what went on around it, a trace, the parts.

use std::fs;

use serde_json::Value;

use crate::tool::{first_cpu, json, run, text, turn};

/// Whether events can be seen here at all; says so if not.
fn can_watch(name: &str) -> bool {
    let tried = run(&["noise", "-d", "1ms", "-c", &first_cpu(), "--source", "bpf"]);
    let can = tried.status.code() == Some(0);
    if !can {
        println!("skipped: {name}: {}", text(&tried.stderr).trim());
    }
    can
}

fn read(file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Check that the first gap above a limit ends the run, and that what went on around it is
/// told in order.
#[test]
fn what_was_that_one() {
    let _turn = turn();
    if !can_watch("what_was_that_one") {
        return;
    }
    let cpu = first_cpu();
    let output = run(&["noise", "-d", "1h", "-c", &cpu, "--stop-above", "1us"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    let places = ["more than 1 µs", "the gap begins", "the gap ends"]
        .map(|part| told.find(part).unwrap_or_else(|| panic!("no {part}: {told}")));
    assert!(places.is_sorted(), "{told}");
}

/// Check that a trace and the recording have the same gaps, and that timers are in it.
#[test]
fn a_trace() {
    let _turn = turn();
    if !can_watch("a_trace") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [trace, recording] =
        ["trace.json", "my.json"].map(|name| dir.path().join(name).display().to_string());
    let cpu = first_cpu();
    let args = ["noise", "-d", "1", "-c", &cpu, "--trace", &trace, "-o", &recording];
    let output = run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let recording = read(&recording);
    let gaps = recording["series"]["cpus"][0]["gaps"].as_array().unwrap().len();
    let trace = read(&trace);
    let slices = trace["traceEvents"].as_array().unwrap();
    let drawn = slices.iter().filter(|slice| slice["cat"] == "gap");
    assert_eq!(drawn.clone().count(), gaps);
    let pid = cpu.parse::<u64>().unwrap();
    assert!(drawn.clone().all(|slice| slice["ph"] == "X" && slice["pid"] == pid));
    assert!(slices.iter().any(|slice| slice["ph"] == "X" && slice["cat"] == "interrupt"));
}

/// Check that the culprits of a CPU and of all CPUs add up to the noise, that threads say who
/// they are, and that everything is named.
#[test]
fn parts_and_names() {
    let _turn = turn();
    if !can_watch("parts_and_names") {
        return;
    }
    let object = json(&["noise", "-d", "1", "--json"]);
    let summary = &object["summary"];
    assert_eq!(summary["source"], "bpf");
    let sum = |culprits: &Value| -> u64 {
        culprits.as_array().unwrap().iter().map(|c| c["ns"].as_u64().unwrap()).sum()
    };
    let cpus = summary["cpus"].as_array().unwrap();
    let noise: u64 = cpus.iter().map(|cpu| cpu["noise_ns"].as_u64().unwrap()).sum();
    assert_eq!(cpus.iter().map(|cpu| sum(&cpu["culprits"])).sum::<u64>(), noise);
    assert_eq!(sum(&summary["culprits"]), noise);
    let all = summary["culprits"].as_array().unwrap();
    for culprit in all {
        assert!(!culprit["name"].as_str().unwrap().is_empty(), "{culprit}");
        let is_thread = culprit["kind"] == "thread";
        for key in ["tid", "pid", "prio"] {
            assert_eq!(culprit[key].is_number(), is_thread, "{culprit}");
        }
        assert!(culprit["inside_ns"].as_u64() <= culprit["ns"].as_u64(), "{culprit}");
    }
    assert!(all.iter().any(|culprit| culprit["kind"] == "timer"), "{all:?}");
}
