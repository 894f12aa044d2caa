//! The history of this machine: saved runs, their report, and comparisons of them.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::tool::{first_cpu, text, tool, turn};

fn with(history: &Path, args: &[&str]) -> Output {
    tool(args).env("NOISEFLOOR_HISTORY", history).output().unwrap()
}

fn json(history: &Path, args: &[&str]) -> Value {
    let output = with(history, args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Check that measurements are saved, that the history has their numbers, as JSON and CSV, that entries
/// are compared, and that old ones are deleted.
#[test]
fn runs_are_saved() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state/history.db");
    let cpu = first_cpu();
    let noise = ["noise", "-c", &cpu, "-d", "50ms", "--json", "--save"];
    let mut values = Vec::new();
    for _ in 0..4 {
        let recording = json(&file, &noise);
        values.push(recording["metrics"]["noise_ppm"][&cpu].as_f64().unwrap());
    }
    let run = with(&file, &["run", "--save", "-q", "--", "true"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let metric = ["history", "--kind", "noise", "--metric", "noise_ppm"];
    let found = json(&file, &[&metric[..], &["--json"]].concat());
    let entries = found["metrics"][0]["entries"].as_array().unwrap();
    let stored: Vec<f64> =
        entries.iter().map(|entry| entry["value"].as_f64().unwrap()).collect();
    assert_eq!(stored, values);
    assert_eq!(found["metrics"][0]["stretches"].as_array().unwrap().len(), 1);
    assert_eq!(found["changes"], serde_json::json!([]));
    let csv = text(&with(&file, &[&metric[..], &["--csv"]].concat()).stdout);
    assert_eq!(csv.lines().next(), Some("id,taken,metric,value"));
    assert_eq!(csv.lines().count(), 5);
    let compared = json(&file, &["compare", "--json", "history:1-2", "history:3-4"]);
    assert_eq!(compared["sets"][1]["runs"], 2);
    let report = text(&with(&file, &metric).stdout);
    assert!(report.contains("4 entries"), "{report}");
    assert!(report.lines().all(|line| line.chars().count() <= 80), "{report}");
    let pruned = with(&file, &["history", "prune", "--before", "2999-01-01"]);
    assert_eq!(text(&pruned.stdout), "Deleted 5 entries.\n");
    assert_eq!(with(&file, &metric).status.code(), Some(2));
}

/// Check that files of benchmarks are appended once, for any machine, all or none, and shown by their names.
#[test]
fn files_are_added() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let paths: Vec<String> = (0..3)
        .map(|run| {
            let path = folder.path().join(format!("{run}.txt"));
            let line = format!("BenchmarkSort-8 100 {}.5 ns/op 16 B/op\n", 100 + run);
            fs::write(&path, line).unwrap();
            path.to_str().unwrap().to_owned()
        })
        .collect();
    let [first, second, third] = &paths[..] else { panic!() };
    let add = ["history", "add", "--json", "--machine", "node-7"];
    let added = json(&file, &[&add[..], &[first, second]].concat());
    assert_eq!(added["added"], serde_json::json!([1, 2]));
    let again = json(&file, &[&add[..], &[second, third]].concat());
    assert_eq!(again["known"], serde_json::json!([2]));
    assert_eq!(again["added"], serde_json::json!([3]));
    let none = folder.path().join("none.json");
    let missing = with(&file, &["history", "add", first, none.to_str().unwrap()]);
    assert_eq!(missing.status.code(), Some(2));
    let shown = ["history", "--kind", "benchmarks", "--machine", "node-7"];
    let found = json(&file, &[&shown[..], &["--json"]].concat());
    let metrics = found["metrics"].as_array().unwrap();
    let keys: Vec<&str> =
        metrics.iter().map(|one| one["metric"].as_str().unwrap()).collect();
    assert_eq!(keys, ["BenchmarkSort-8:B/op", "BenchmarkSort-8:ns"]);
    assert_eq!(metrics[1]["entries"].as_array().unwrap().len(), 3);
    assert_eq!(metrics[1]["entries"][0]["value"], 100.5);
    let report = text(&with(&file, &shown).stdout);
    assert!(report.contains("BenchmarkSort-8 B/op"), "{report}");
    let own = with(&file, &["history", "--kind", "benchmarks"]);
    assert_eq!(own.status.code(), Some(2), "{}", text(&own.stdout));
}

/// Check the messages of what cannot be read, and that a file of another kind is left as it is.
#[test]
fn refusals() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let said = |args: &[&str], code| {
        let output = with(&file, args);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{args:?}: {}",
            text(&output.stderr)
        );
        text(&output.stderr)
    };
    assert!(said(&["history"], 2).contains("noisefloor check --save"));
    assert!(said(&["compare", "history:1", "history:2"], 2).contains("no history"));
    assert!(said(&["facts", "--save"], 2).contains("unexpected argument"));
    assert!(said(&["history", "--since", "soon"], 2).contains("expected a date"));
    fs::write(&file, "a text, and no database, that is longer than a header").unwrap();
    let run = ["run", "-q", "--save", "--", "true"];
    assert!(said(&["history"], 2).contains("not a database"));
    // The program's exit code takes precedence.
    assert!(said(&run, 0).contains("not a database"));
    assert!(fs::read_to_string(&file).unwrap().starts_with("a text"));
    fs::remove_file(&file).unwrap();
    assert!(said(&run, 0).is_empty());
    assert!(said(&["compare", "history:1", "history:7"], 2).contains("no entry 7"));
    assert!(said(&["compare", "history:x", "history:1"], 2).contains("FIRST-LAST"));
    assert!(said(&["history", "--kind", "run", "--metric", "x"], 2).contains("run_ns"));
    assert!(said(&["history"], 2).contains("--kind: run (1)"));
}
