//! The scheduler's settings, changed by the library and restored: by the end of a run, and by
//! `restore` after a run was killed. The kernel's files are read directly.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use facts::{Facts, Root};
use isolate::{Kind, RestoreOutcome, Tuning, TuningLease, may_tune};

use crate::kills::{journal, wait_for};
use crate::settings::{self, Settings};
use crate::{alone, output, text, tool};

/// The attempts to kill a run while settings are changed.
const KILLS: u32 = 20;
/// The settings that a child of this test changes, separated by commas.
const TUNINGS: &str = "NOISEFLOOR_TEST_TUNINGS";
const FEATURE: &str = "WAKEUP_PREEMPTION=off";
/// The tunables of EEVDF and of CFS, and a value in nanoseconds that no kernel has by default.
const TUNABLES: [&str; 2] = ["base_slice_ns", "min_granularity_ns"];
const NANOS: u64 = 3_141_592;
const PREEMPT: &str = "/sys/kernel/debug/sched/preempt";

fn may(text: &str) -> Result<(), isolate::Error> {
    let all: Vec<Tuning> = text.split(',').map(|one| one.parse().unwrap()).collect();
    may_tune(&all, &Facts::read(&Root::live()))
}

/// The tunable of this kernel; prints the reason if it has none or nothing may be changed.
fn tunable(test: &str) -> Option<&'static str> {
    let found = TUNABLES.into_iter().find(|name| may(&format!("{name}={NANOS}")).is_ok());
    match may(FEATURE) {
        Ok(()) => Some(found.unwrap()),
        Err(why) => {
            println!("skipped: {test}: {}", units::chain(&why));
            None
        }
    }
}

/// A feature, a tunable, and preemption if that can be changed.
fn tunings(tunable: &str) -> String {
    let models = fs::read_to_string(PREEMPT).unwrap_or_default();
    let other = models.split_whitespace().find(|word| !word.starts_with('('));
    let preempt = other.map(|word| format!(",preempt={word}")).unwrap_or_default();
    format!("{FEATURE},{tunable}={NANOS}{preempt}")
}

/// A child process of this program that changes these until its standard input ends.
fn child(tunings: &str, state: &Path) -> Command {
    let mut own = Command::new(std::env::current_exe().unwrap());
    own.args(["--ignored", "--exact", "tuning::holds", "--nocapture"]);
    own.env("NOISEFLOOR_STATE", state).env(TUNINGS, tunings);
    own.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    own
}

/// Starts one, and waits until all of it is changed.
fn tuned(tunings: &str, before: &Settings, state: &Path) -> Child {
    let started = child(tunings, state).spawn().unwrap();
    let count = tunings.split(',').count();
    wait_for(|| settings::changed(before, &settings::now()).len() == count);
    let changed = settings::changed(before, &settings::now());
    let has = |what: &str| changed.iter().any(|line| line.contains(what));
    assert!(has(" NO_WAKEUP_PREEMPTION ") && has(&format!("is {NANOS}")), "{changed:?}");
    println!("tuned: {changed:?}");
    started
}

/// Not a test: changes settings until its standard input ends, and prints an error if it
/// cannot.
#[test]
#[ignore = "started by another test"]
fn holds() {
    let Ok(tunings) = std::env::var(TUNINGS) else { return };
    let all: Vec<Tuning> = tunings.split(',').map(|one| one.parse().unwrap()).collect();
    let tuned = match TuningLease::begin(&all, &Facts::read(&Root::live())) {
        Ok(tuned) => tuned,
        Err(why) => {
            assert_eq!(why.kind(), Kind::System);
            println!("refused: {}", units::chain(&why));
            return;
        }
    };
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    let returned = tuned.end().unwrap();
    assert_eq!(returned.len(), all.len());
    assert!(
        returned.iter().all(|one| one.outcome == RestoreOutcome::Restored),
        "{returned:?}"
    );
}

/// Check that `restore` restores a feature, a tunable and preemption after a run that was
/// killed, and that a run which ends does so itself.
#[test]
fn given_back() {
    let Some(tunable) = tunable("given_back") else { return };
    let _alone = alone();
    let state = tempfile::tempdir().unwrap();
    let (before, tunings) = (settings::now(), tunings(tunable));
    let is_changed = || !settings::changed(&before, &settings::now()).is_empty();
    let mut run = tuned(&tunings, &before, state.path());
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(is_changed() && journal(state.path()).exists());
    let restore = tool(&["restore"])
        .env("NOISEFLOOR_STATE", state.path())
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let told = text(&restore.stdout);
    assert!(
        told.contains("WAKEUP_PREEMPTION in ") && told.contains(": restored to on"),
        "{told}"
    );
    assert!(!is_changed() && !journal(state.path()).exists());

    let mut run = tuned(&tunings, &before, state.path());
    drop(run.stdin.take());
    assert!(run.wait().unwrap().success());
    assert!(!is_changed() && !journal(state.path()).exists());
    assert_eq!(text(&output(&["restore"]).stderr), "");
}

/// Check that `slices` alternates between settings, that all are restored afterwards, and that
/// `restore` restores them after a run that was killed in the middle.
#[test]
fn steps() {
    let Some(tunable) = tunable("steps") else { return };
    let _alone = alone();
    let state = tempfile::tempdir().unwrap();
    let before = settings::now();
    let is_changed = || !settings::changed(&before, &settings::now()).is_empty();
    let second = format!("{tunable}={NANOS},{FEATURE}");
    let steps = ["slices", "4", "--sleepers", "1", "-c", "0", "--step", FEATURE];
    let steps = [&steps[..], &["--step", &second, "--json"]].concat();
    let run = |turns: &'static str, duration: &'static str| {
        let mut run = tool(&[&steps[..], &["--turns", turns, "-d", duration]].concat());
        run.env("NOISEFLOOR_STATE", state.path()).stdout(Stdio::piped());
        run
    };
    let output = run("2", "1").stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!is_changed() && !journal(state.path()).exists());
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = object["summary"]["steps"].as_array().unwrap();
    let names: Vec<&str> =
        found.iter().map(|one| one["step"].as_str().unwrap()).collect();
    assert_eq!(names, [FEATURE, &second]);
    for step in found {
        assert_eq!(step["turns_slice_ns"].as_array().unwrap().len(), 2, "{step}");
        assert!(step["wall_ns"].as_u64().unwrap() >= 1_000_000_000, "{step}");
        assert!(step["slice_ratio"].is_f64() && step["differs"].is_boolean(), "{step}");
    }

    // On a slow machine, a variant may have ended by the time at which its run is killed.
    let is_left = (0..KILLS).any(|_| {
        let mut killed = run("1000", "1000").stderr(Stdio::null()).spawn().unwrap();
        wait_for(is_changed);
        killed.kill().unwrap();
        killed.wait().unwrap();
        is_changed()
    });
    assert!(is_left);
    let restore = tool(&["restore"]).env("NOISEFLOOR_STATE", state.path()).status();
    assert!(restore.unwrap().success() && !is_changed());
}

/// Check that a value that the kernel refuses, or changes because no file has more than 32
/// bits, is reported, and that all settings are restored.
#[test]
fn all_or_nothing() {
    let Some(tunable) = tunable("all_or_nothing") else { return };
    let _alone = alone();
    let state = tempfile::tempdir().unwrap();
    let before = settings::now();
    for value in ["-1", "4298108888"] {
        let tunings = format!("{FEATURE},{tunable}={value}");
        let mut own = child(&tunings, state.path());
        let ended = own.stdin(Stdio::null()).stdout(Stdio::piped()).output().unwrap();
        let told = text(&ended.stdout);
        let line = told.lines().find(|line| line.contains("refused: "));
        println!("{line:?}");
        let which = format!("{tunable} = {value}: ");
        assert!(line.is_some_and(|line| line.contains(&which)), "{told}");
        let changed = settings::changed(&before, &settings::now());
        assert!(changed.is_empty() && !journal(state.path()).exists(), "{changed:?}");
    }
}

/// Check that an unknown setting is refused with a list of the known ones.
#[test]
fn what_there_is() {
    let Some(tunable) = tunable("what_there_is") else { return };
    let has = format!(" {tunable}");
    let models = fs::read_to_string(PREEMPT).unwrap_or_default();
    let preempt = if models.is_empty() { "cannot be changed" } else { " full" };
    // No kernel has both.
    let model = ["none", "laziest"].into_iter().find(|model| !models.contains(model));
    for (asked, told) in [
        ("WAKEUP_PREEMPTIONS=off", " NONTASK_CAPACITY"),
        ("no_such_ns=1", has.as_str()),
        (&format!("preempt={}", model.unwrap()), preempt),
    ] {
        let refused = may(asked).unwrap_err();
        println!("{refused}");
        assert_eq!(refused.kind(), Kind::NoSetting, "{refused}");
        assert!(units::chain(&refused).contains(told), "{refused}");
    }
}
