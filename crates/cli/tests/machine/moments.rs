//! Moments above a limit: what stops a measurement has a name, is given to a command, and is in a trace;
//! `--keep` lists the worst ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::culprits::can_watch;
use crate::outranking::{NAME, Outranking};
use crate::tool::{first_cpu, run, signal, spawn, text, tool, turn};

/// The limit: others delay a real-time task by less, and [`Outranking`] by more.
const LIMIT: &str = "1500us";

/// The commands with moments, on one CPU, for an hour.
fn commands(cpu: &str) -> [(&'static str, Vec<&str>); 4] {
    let program = ["--", "sh", "-c", "while :; do :; done"];
    [
        ("gap", vec!["noise", "--fifo", "80", "-d", "1h", "-c", cpu]),
        ("wakeup", vec!["latency", "--fifo", "80", "-d", "1h", "-c", cpu]),
        ("loop", vec!["jitter", "--fifo", "80", "-D", "1", "-l", "100", "-a", cpu]),
        ("interruption", [&["run", "--fifo", "80", "-c", cpu][..], &program].concat()),
    ]
}

/// The arguments of a command, before those of its program.
fn with<'a>(command: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let end = command.iter().position(|word| *word == "--").unwrap_or(command.len());
    [&command[..end], more, &command[end..]].concat()
}

fn read(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// The slices of a trace that overlap a moment on its CPU.
fn slices_at(trace: &Value, moment: &Value) -> Vec<Value> {
    let number = |value: &Value| value.as_f64().unwrap();
    let start = number(&moment["at_ns"]) / 1e3;
    let end = start + number(&moment["length_ns"]) / 1e3;
    let is_at = |slice: &&Value| {
        let is_slice = slice["ph"] == "X" && slice["pid"] == moment["cpu"];
        is_slice && {
            let (ts, dur) = (number(&slice["ts"]), number(&slice["dur"]));
            ts < end && start < ts + dur
        }
    };
    trace["traceEvents"].as_array().unwrap().iter().filter(is_at).cloned().collect()
}

/// Check that the first moment of each command ends it, that a command gets its JSON object, which
/// names the thread that took the time, and that the trace has both.
#[test]
fn a_moment_has_a_name() {
    let _turn = turn();
    let cpu = first_cpu();
    if !can_watch("a_moment_has_a_name") {
        return;
    }
    let Some(_outranking) = Outranking::start("a_moment_has_a_name", &cpu) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let [object, trace] = ["moment.json", "trace.json"].map(|file| dir.path().join(file));
    let command = format!("cat > {}", object.display());
    let trace_to = trace.display().to_string();
    for (kind, args) in commands(&cpu) {
        let more = ["--stop-above", LIMIT, "--on-stop", &command, "--trace", &trace_to];
        let output = run(&with(&args, &more));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{kind}: {said}");
        assert!(said.contains("limit exceeded: CPU "), "{kind}: {said}");
        let moment = read(&object);
        assert_eq!(
            (&moment["kind"], moment["cpu"].to_string()),
            (&kind.into(), cpu.clone())
        );
        let ns = |value: &Value| value.as_u64().unwrap();
        assert!(ns(&moment["value_ns"]) > 1_500_000, "{moment}");
        assert!(ns(&moment["at_ns"]) > 0 && moment["time"].is_string(), "{moment}");
        let causes = moment["causes"].as_array().unwrap();
        let sum: u64 = causes.iter().map(|cause| ns(&cause["ns"])).sum();
        assert_eq!(sum, ns(&moment["value_ns"]), "{moment}");
        let named =
            |all: &Value| all.as_array().unwrap().iter().any(|it| it["name"] == NAME);
        assert!(named(&moment["causes"]) && named(&moment["during"]), "{kind}: {moment}");
        let slices = slices_at(&read(&trace), &moment);
        assert!(slices.iter().any(|slice| slice["cat"] == "moment"), "{slices:?}");
        assert!(slices.iter().any(|slice| slice["name"] == NAME), "{slices:?}");
        fs::remove_file(&object).unwrap();
    }
}

/// Check that the name of a thread is neither run by the shell nor in the command's environment.
#[test]
fn names_are_no_commands() {
    let (_turn, test) = (turn(), "names_are_no_commands");
    let cpu = first_cpu();
    let name = "$(>it)`>it`'\"\n;";
    if !can_watch(test) {
        return;
    }
    let Some(_outranking) = Outranking::start_as(name, test, &cpu) else { return };
    let dir = tempfile::tempdir().unwrap();
    let command = "cat >moment; env >variables";
    let limit = ["--stop-above", LIMIT, "--on-stop", command];
    let args = ["noise", "--fifo", "80", "-d", "1h", "-c", &cpu];
    let output = tool(&with(&args, &limit)).current_dir(dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let moment = read(&dir.path().join("moment"));
    let causes = moment["causes"].as_array().unwrap();
    assert!(causes.iter().any(|cause| cause["name"] == name), "{moment}");
    let variables = fs::read_to_string(dir.path().join("variables")).unwrap();
    assert!(!variables.contains(">it"), "{variables}");
    assert!(!dir.path().join("it").exists());
}

/// Check that with `--keep` the measurement goes on, and that the worst moments are in JSON, in order,
/// and each given to a command.
#[test]
fn the_worst_moments() {
    let _turn = turn();
    let cpu = first_cpu();
    if !can_watch("the_worst_moments") {
        return;
    }
    let Some(_outranking) = Outranking::start("the_worst_moments", &cpu) else { return };
    let dir = tempfile::tempdir().unwrap();
    let objects = dir.path().join("moments.json");
    let command = format!("cat >> {}", objects.display());
    let limit = ["--stop-above", LIMIT, "--keep", "3", "--on-stop", &command, "--json"];
    let measuring = ["latency", "--fifo", "80", "-d", "1", "-c", &cpu];
    let output = run(&with(&measuring, &limit));
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    let moments = object["moments"].as_array().unwrap();
    assert_eq!((moments.len(), &object["spec"]["keep"]), (3, &3.into()));
    assert!(moments.is_sorted_by_key(|moment| moment["at_ns"].as_u64()), "{moments:?}");
    let given = fs::read_to_string(&objects).unwrap();
    let given = given.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert_eq!(&given.collect::<Vec<_>>(), moments);
    // The median of all is below the limit.
    let late = object["summary"]["cpus"][0]["late_ns"]["max"].as_u64();
    let worst = moments.iter().map(|moment| moment["value_ns"].as_u64()).max();
    assert_eq!(worst, Some(late));
}

/// Check that with `--keep` a program ends by itself, and that its exit code is that of the command
/// unless it is 0.
#[test]
fn programs_go_on() {
    let _turn = turn();
    let cpu = first_cpu();
    if !can_watch("programs_go_on") {
        return;
    }
    let limit = ["run", "-c", &cpu, "--stop-above", "1ns", "--keep", "2"];
    for (code, expected) in [("0", 1), ("5", 5)] {
        let script =
            format!("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exit {code}");
        let output = run(&[&limit[..], &["--", "sh", "-c", &script]].concat());
        assert_eq!(output.status.code(), Some(expected), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("The longest interruptions above 1 ns"));
    }
}

/// The first wake-up that is late at all, without events.
fn at_once<'a>(cpu: &'a str, command: &'a str) -> Vec<&'a str> {
    let limit = ["--stop-above", "1ns", "--no-trace", "--on-stop", command];
    with(&["latency", "-c", cpu, "-d", "1h"], &limit)
}

/// Check that a command that fails or does not read its standard input changes neither the report nor
/// the exit code, and that its output is not in the report.
#[test]
fn commands_fail() {
    let _turn = turn();
    let cpu = first_cpu();
    let failing = run(&at_once(&cpu, "echo mine; exit 7"));
    let (report, said) = (text(&failing.stdout), text(&failing.stderr));
    assert_eq!(failing.status.code(), Some(1), "{said}");
    assert!(said.contains("mine") && said.contains("exit status: 7"), "{said}");
    assert!(report.contains("The first wake-up later than 1 ns"), "{report}");
    assert!(!report.contains("mine"), "{report}");
    let missing = run(&at_once(&cpu, "/no/such/command"));
    assert_eq!(missing.status.code(), Some(1), "{}", text(&missing.stderr));
}

/// Waits for a file that a command writes its process ID to.
fn process_in(file: &Path) -> PathBuf {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let written = fs::read_to_string(file).unwrap_or_default();
        if let Some(id) = written.strip_suffix('\n') {
            return Path::new("/proc").join(id);
        }
        assert!(Instant::now() < deadline, "the command was not run");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a process has ended.
fn is_gone(process: &Path) -> bool {
    let deadline = Instant::now() + Duration::from_secs(20);
    while process.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    !process.exists()
}

/// Check that a signal ends a command that hangs, and that the report follows; and that it ends with
/// noisefloor if that is killed.
#[test]
fn commands_hang() {
    let _turn = turn();
    let cpu = first_cpu();
    let dir = tempfile::tempdir().unwrap();
    for (number, ending) in
        [libc::SIGINT, libc::SIGTERM, libc::SIGKILL].iter().enumerate()
    {
        let file = dir.path().join(number.to_string());
        let command =
            format!("trap '' INT TERM; echo $$ > {}; exec sleep 1000", file.display());
        let child = spawn(&at_once(&cpu, &command));
        let process = process_in(&file);
        signal(&child, *ending);
        let output = child.wait_with_output().unwrap();
        assert!(is_gone(&process), "signal {ending}: {}", process.display());
        if *ending != libc::SIGKILL {
            assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
            assert!(text(&output.stdout).contains("The first wake-up later than"));
        }
    }
}

/// Check that options without a meaning are usage errors.
#[test]
fn options_without_a_meaning() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().display().to_string();
    let limit = |more: &[&'static str]| [&["--stop-above", "1ms"], more].concat();
    let mistakes = [
        vec!["--stop-above", "0"],
        vec!["--stop-above", "-1us"],
        vec!["--keep", "3"],
        vec!["--on-stop", "true"],
        limit(&["--keep", "0"]),
        limit(&["--keep", "101"]),
        limit(&["--on-stop", ""]),
        limit(&["--on-stop", "  "]),
        limit(&["--trace", "/no/such/folder/trace.json"]),
        vec!["--stop-above", "1ms", "--trace", &folder],
    ];
    for (kind, args) in commands("0") {
        for mistake in &mistakes {
            let output = run(&with(&args, mistake));
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{kind} {mistake:?}: {said}");
        }
        if kind != "gap" {
            let output = run(&with(&args, &["--trace", "trace.json"]));
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{kind}: {said}");
            assert!(said.contains("--stop-above"), "{kind}: {said}");
        }
    }
}
