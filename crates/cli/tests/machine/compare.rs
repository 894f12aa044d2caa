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
