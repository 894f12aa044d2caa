//! Comparisons of recordings of this machine, with and without another program on the CPU.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::culprits::can_watch;
use crate::install::install;
use crate::tool::{first_cpu, json, on, run, text, tool, turn};

/// A program that takes a large part of the CPU, and is interrupted often.
const NAME: &str = "nf-disturber";
/// With seven runs each, a source that only one of both sets has is no chance, among up to a
/// hundred comparisons.
const RUNS: usize = 7;

/// Starts the program on a CPU.
fn disturb(folder: &Path, cpu: &str) -> Child {
    let program = folder.join(NAME);
    let shell = fs::canonicalize("/bin/sh").unwrap();
    install(shell, &program);
    let mut command = on(cpu, &program);
    command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
    crate::environment::end_with_test(&mut command, libc::SIGKILL);
    command.spawn().unwrap()
}

fn record(folder: &Path, cpu: &str) {
    fs::create_dir(folder).unwrap();
    for run in 0..RUNS {
        let file = folder.join(format!("{run}.json"));
        // A calibrated threshold may differ from run to run.
        let noise = ["noise", "-d", "150ms", "-c", cpu, "--threshold", "1us"];
        let args = [&noise[..], &["--source", "bpf", "-q", "-o"]].concat();
        let output = tool(&args).arg(&file).output().unwrap();
        let code = output.status.code();
        // A busy machine is a reason for doubt.
        assert!(matches!(code, Some(0 | 4)), "{}", text(&output.stderr));
    }
}

/// Check that a program on the CPU is found as a new source of noise, which is not there without it,
/// and that conditions decide the exit code.
#[test]
fn a_disturber_is_new() {
    let _turn = turn();
    if !can_watch("a_disturber_is_new") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [quiet, busy] = ["quiet", "busy"].map(|name| folder.path().join(name));
    let cpu = first_cpu();
    record(&quiet, &cpu);
    let mut disturber = disturb(folder.path(), &cpu);
    record(&busy, &cpu);
    disturber.kill().unwrap();
    disturber.wait().unwrap();
    let [quiet, busy] = [&quiet, &busy].map(|path| path.to_str().unwrap());
    let found = json(&["compare", quiet, busy, "--json"]);
    let of = |from: &Value| -> Value {
        let all = from["comparisons"][0]["culprits"].as_array().unwrap();
        all.iter()
            .find(|one| one["name"] == NAME)
            .unwrap_or_else(|| panic!("{from:#}"))
            .clone()
    };
    let new = of(&found);
    assert_eq!(new["nonzero"], serde_json::json!([0, RUNS]), "{new:#}");
    assert_eq!(new["conclusion"], "higher", "{found:#}");
    assert_eq!(found["sets"][1]["runs"], RUNS);
    assert_eq!(found["parameters"], serde_json::json!({}));
    assert_eq!(of(&json(&["compare", busy, quiet, "--json"]))["conclusion"], "lower");
    let report = text(&run(&["compare", quiet, busy]).stdout);
    let sentence = format!("new: B has it in {RUNS} of {RUNS} runs");
    assert!(report.contains(&sentence), "{report}");
}

/// Check that a single run is divided into blocks, and that it does not differ from itself.
#[test]
fn a_run_equals_itself() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.json");
    let file = file.to_str().unwrap();
    let output = run(&["noise", "-d", "200ms", "-c", &first_cpu(), "-q", "-o", file]);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", text(&output.stderr));
    let found =
        json(&["compare", file, file, "--json", "--fail-if", "noise_ppm > +1000000%"]);
    let metrics = found["comparisons"][0]["metrics"].as_array().unwrap();
    let noise = metrics.iter().find(|one| one["metric"] == "noise_ppm").unwrap();
    assert_eq!(noise["block"]["unit"], "ns");
    assert_eq!(noise["difference"], 0.0);
    assert!(
        metrics
            .iter()
            .all(|one| one["conclusion"] != "lower" && one["conclusion"] != "higher")
    );
}

/// Writes a set of runs of a program as `repeat` saves them, with these run times in milliseconds.
fn write_set(folder: &Path, run: &Value, times: &[u64]) {
    fs::create_dir(folder).unwrap();
    for (at, ms) in times.iter().enumerate() {
        let mut run = run.clone();
        run["series"]["elapsed_ns"] = (ms * 1_000_000).into();
        run["taken"] = format!("2026-11-28T04:00:{at:02}Z").into();
        fs::write(folder.join(format!("{at:03}.json")), run.to_string()).unwrap();
    }
}

/// Check that runs that alternate are a doubt of `compare`, that copies of the same recordings are not compared,
/// and that a set with some of them is a doubt.
#[test]
fn sets_with_patterns_and_common_runs() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.json");
    let output =
        run(&["run", "--source", "proc", "-q", "-o", file.to_str().unwrap(), "true"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let one = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let times = [50, 100, 51, 103, 49, 99, 52, 101, 50, 98, 53, 102];
    let steady = [70, 73, 71, 75, 69, 72, 74, 70, 71, 76, 72, 73];
    let paths = ["set", "copy", "part", "steady"].map(|name| folder.path().join(name));
    for (path, times) in paths.iter().zip([&times[..], &times, &times[..6], &steady]) {
        write_set(path, &one, times);
    }
    let [set, copy, part, steady] = paths.each_ref().map(|path| path.to_str().unwrap());
    let found = json(&["compare", "--json", set, copy, part, steady]);
    let main = &found["sets"][0]["main"];
    assert_eq!(main["pattern"]["order"], "alternating", "{main:#}");
    assert_eq!((&main["pattern"]["run"], &main["largest_run"]), (&2.into(), &4.into()));
    assert!(found["sets"][3]["main"]["pattern"].is_null(), "{found:#}");
    let common = [0, 1, 2].map(|at| found["comparisons"][at]["common_runs"].clone());
    assert_eq!(common, [12, 6, 0].map(Value::from));
    let codes = found["sets"][0]["doubts"].as_array().unwrap();
    assert!(codes.iter().any(|one| one["code"] == "not_stationary"), "{codes:#?}");
    let report = |other| text(&run(&["compare", set, other]).stdout);
    let same = report(copy);
    assert!(
        same.contains("A and B are the same 12 runs") && !same.contains("lower"),
        "{same}"
    );
    assert!(same.contains("two modes, which alternate"), "{same}");
    assert!(report(part).contains("6 of the runs are in both sets"));
    assert!(!report(steady).contains("in both sets"));
}
