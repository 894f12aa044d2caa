//! `advise --prove`: settings of this machine are tried, and have their old values afterwards, whatever ends the proof.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::kills::wait_for;
use crate::{alone, cpu, output, text, tool};

/// The goals whose rules have settings for most machines.
const GOALS: [&str; 5] = ["benchmark", "idle", "hpc", "latency", "realtime"];
/// A user without privileges.
const UNPRIVILEGED: u32 = 65_534;

/// A goal, and the settings that are advised for it: their names, files, and current values.
struct Advised {
    goal: &'static str,
    settings: Vec<(PathBuf, String)>,
}

/// The file of a sysctl or a path; groups of files have none.
fn file_of(name: &str) -> Option<PathBuf> {
    let path = match name.contains('/') {
        true => PathBuf::from(name),
        false => Path::new("/proc/sys").join(name.replace('.', "/")),
    };
    path.exists().then_some(path)
}

fn now(file: &Path) -> String {
    fs::read_to_string(file).unwrap().trim().to_owned()
}

/// Whether an item is a setting in one writable file.
fn setting(item: &Value) -> Option<(PathBuf, String)> {
    let file = file_of(item["change"]["name"].as_str()?)?;
    let is_writable = fs::OpenOptions::new().write(true).open(&file).is_ok();
    let is_tried = item["shown_by"] == "try" && is_writable;
    is_tried.then(|| (file.clone(), now(&file)))
}

/// The goal with the fewest settings, so that a short budget is enough for one; `None`, with the reason printed, if
/// no setting is advised that can be tried. The values are those of the machine only if no other test changes some.
fn advised(test: &str) -> Option<Advised> {
    cpu(test)?;
    let of = |goal: &'static str| {
        let found = output(&["advise", "--no-measure", "--json", "--goal", goal]);
        let found: Value = serde_json::from_slice(&found.stdout).unwrap();
        let items = found["summary"]["items"].as_array().unwrap();
        Advised { goal, settings: items.iter().filter_map(setting).collect() }
    };
    let all = GOALS.map(of).into_iter().filter(|one| !one.settings.is_empty());
    let fewest = all.min_by_key(|one| one.settings.len());
    if fewest.is_none() {
        println!("skipped: {test}: no setting is advised here that can be tried");
    }
    fewest
}

/// The command, without a check before it.
fn prove<'a>(goal: &'a str, budget: &'a str) -> [&'a str; 7] {
    ["advise", "--no-measure", "--prove", "--json", "--goal", goal, budget]
}

fn assert_restored(advised: &Advised, output: &Output) {
    for (file, before) in &advised.settings {
        let said = text(&output.stderr);
        assert_eq!(now(file), *before, "{}: {said}", file.display());
    }
}

/// All items of a report, advised or not.
fn items(output: &Output) -> Vec<Value> {
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |key: &str| report["summary"][key].as_array().unwrap().clone();
    [of("items"), of("not_advised")].concat()
}

/// Check that a setting is proven in a short time, with an interval, that every other item says why it was not, and
/// that all settings have their old values.
#[test]
fn settings_are_proven() {
    let _alone = alone();
    let Some(advised) = advised("settings_are_proven") else { return };
    let output = output(&prove(advised.goal, "--budget=40s"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_restored(&advised, &output);
    let items = items(&output);
    let is_proven = |item: &&Value| item["proof"]["state"] == "proven";
    let (proven, others): (Vec<&Value>, Vec<&Value>) = items.iter().partition(is_proven);
    assert!(!proven.is_empty(), "{items:#?}");
    for proven in proven {
        let measured = &proven["proof"]["measured"];
        let [low, high] = [0, 1].map(|end| measured["interval"][end].as_f64().unwrap());
        assert!(low <= high, "{measured:#}");
        assert!(measured["runs"][1].as_u64().unwrap() >= 6, "{measured:#}");
        assert_eq!(proven["proof"]["rule"], proven["name"]);
    }
    for other in others {
        assert_eq!(other["proof"]["state"], "not_proven", "{other:#}");
        assert!(!other["proof"]["text"].as_str().unwrap().is_empty(), "{other:#}");
    }
}

/// Check that a signal while a setting is changed ends the proof with a report and exit code 4, and that all settings
/// have their old values.
#[test]
fn signals_restore_settings() {
    let _alone = alone();
    let Some(advised) = advised("signals_restore_settings") else { return };
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let mut run = tool(&prove(advised.goal, "--budget=10m"));
        let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(|| advised.settings.iter().any(|(file, before)| now(file) != *before));
        // SAFETY: takes numbers only; the child has not been waited for.
        unsafe { libc::kill(i32::try_from(run.id()).unwrap(), signal) };
        let output = run.wait_with_output().unwrap();
        assert_restored(&advised, &output);
        assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
        let items = items(&output);
        let is_early = |item: &Value| item["proof"]["code"] == "interrupted";
        assert!(items.iter().any(is_early), "{items:#?}");
        let left = text(&crate::output(&["restore"]).stdout);
        assert!(left.contains("Nothing to restore"), "{left}");
    }
}

/// Check that a program is repeated, that what was tried with it has the difference of its run time, and that a program
/// that fails is reported at once unless failures are accepted.
#[test]
fn a_program_is_advised() {
    let _alone = alone();
    let Some(advised) = advised("a_program_is_advised") else { return };
    let args = ["advise", "--json", "--budget=60s", "--goal", advised.goal];
    let run = |more: &[&str]| output(&[&args[..], more].concat());
    let failed = run(&["--", "false"]);
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stdout));
    assert!(text(&failed.stderr).contains("exit code 1; hint: --ignore-failure"));
    let found = run(&["--ignore-failure", "--", "sh", "-c", "sleep 0.02; exit 3"]);
    assert!(matches!(found.status.code(), Some(0 | 4)), "{}", text(&found.stderr));
    assert_restored(&advised, &found);
    let report: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(report["main"]["metric"], "run_ns");
    assert!(report["main"]["runs"].as_u64().unwrap() >= 6, "{}", report["main"]);
    let items = items(&found);
    let proven = items.iter().filter(|item| item["proof"]["state"] == "proven");
    let metrics: Vec<&Value> =
        proven.map(|item| &item["proof"]["measured"]["metric"]).collect();
    assert!(!metrics.is_empty(), "{items:#?}");
    assert!(metrics.iter().all(|metric| **metric == "run_ns"), "{metrics:?}");
}

/// Check that a user without privileges gets a clear message and exit code 3, before anything is measured.
#[test]
fn privileges_are_needed() {
    let test = "privileges_are_needed";
    let mut tool = tool(&["advise", "--prove"]);
    // SAFETY: takes nothing.
    if unsafe { libc::geteuid() } == 0 {
        tool.uid(UNPRIVILEGED);
    }
    let output = match tool.stdout(Stdio::piped()).stderr(Stdio::piped()).output() {
        Ok(output) => output,
        Err(why) => {
            return println!("skipped: {test}: another user cannot start it: {why}");
        }
    };
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let said = "noisefloor: failed to prove advice: settings are changed for it, as root only; \
                hint: sudo noisefloor advise --prove\n";
    assert_eq!(
        (text(&output.stdout).as_str(), text(&output.stderr).as_str()),
        ("", said)
    );
}
