//! Repeated runs on this machine: sets of recordings, failing and hanging programs, signals.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::tool::{first_cpu, json, run, signal, spawn, text, turn};

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

fn repeat(args: &[&str]) -> Output {
    run(&[&["repeat", "--pause", "0"], args].concat())
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("{}", text(&output.stderr)))
}

/// Check that runs are saved as a set, that more runs continue it, that `compare` reads it, and that the
/// report has the numbers of the recordings.
#[test]
fn runs_are_a_set() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    let (cpu, set_name) = (first_cpu(), set.to_str().unwrap());
    let repeat = |runs: &str| {
        json(&[
            "repeat",
            "--json",
            "-n",
            runs,
            "--pause",
            "0",
            "--seed",
            "7",
            "-o",
            set_name,
            "noise",
            "-c",
            &cpu,
            "-d",
            "50ms",
            "--threshold",
            "1us",
            "--source",
            "proc",
        ])
    };
    let report = repeat("3");
    assert_eq!(files(&set), ["001.json", "002.json", "003.json"]);
    let recordings: Vec<Value> = files(&set)
        .iter()
        .map(|file| json(&["report", "--json", set.join(file).to_str().unwrap()]))
        .collect();
    let mut noise = Vec::new();
    for (recording, round) in recordings.iter().zip(1..) {
        let expected =
            serde_json::json!({"settings": [], "round": round, "place": 1, "seed": 7});
        assert_eq!(recording["repeat"], expected);
        noise.push(recording["metrics"]["noise_ppm"][&cpu].as_f64().unwrap());
    }
    noise.sort_by(f64::total_cmp);
    let metrics = report["sets"][0]["metrics"].as_array().unwrap();
    let found = metrics.iter().find(|one| one["metric"] == "noise_ppm").unwrap();
    assert_eq!(found["runs"], 3);
    for (key, value) in ["min", "median", "max"].iter().zip(&noise) {
        assert_eq!(found[key].as_f64(), Some(*value), "{found:#}");
    }
    assert!(report.get("results").is_none());
    repeat("2");
    assert_eq!(files(&set).len(), 5);
    let compared = json(&["compare", "--json", set_name, set_name]);
    assert_eq!(compared["sets"][0]["runs"], 5);
}

/// Check that `-o` saves the recordings in a folder, and writes the report to files; and that two
/// folders, or standard output, are refused before the first run.
#[test]
fn reports_are_written() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [set, page, markdown] = ["set", "page.html", "report.md"].map(path);
    let to = ["-n", "2", "-o", &set, "-o", &page, "-o", &markdown];
    let output = repeat(&[&to[..], &["run", "sh", "-c", "exit 0"]].concat());
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    assert_eq!(files(Path::new(&set)).len(), 2);
    for file in [&page, &markdown] {
        let report = fs::read_to_string(file).unwrap();
        assert!(report.contains("sh -c"), "{report}");
    }
    for (other, why) in [("other", "in one folder"), ("-", "expected a folder")] {
        let other = if other == "-" { other.to_owned() } else { path(other) };
        let first = if other == "-" { &page } else { &set };
        let output = repeat(&["-o", first, "-o", &other, "noise"]);
        assert_eq!(code(&output), 2);
        assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
    }
}

/// Check the keys of hyperfine's export, and that they are the numbers of the runs.
#[test]
fn benchmarks_are_exported() {
    let _turn = turn();
    let args = ["repeat", "--json", "--warmup", "1", "-n", "4", "--", "run"];
    let report = json(&[&args[..], &["sh", "-c", "exit 0"]].concat());
    let [result] = &report["results"].as_array().unwrap()[..] else { panic!() };
    assert_eq!(result["command"], "sh -c exit 0");
    assert_eq!(result["exit_codes"], serde_json::json!([0, 0, 0, 0]));
    let times = result["times"].as_array().unwrap();
    let times: Vec<f64> = times.iter().map(|time| time.as_f64().unwrap()).collect();
    let mean = times.iter().sum::<f64>() / 4.0;
    let number = |key: &str| result[key].as_f64().unwrap_or_else(|| panic!("{key}"));
    assert!((number("mean") - mean).abs() < 1e-12);
    assert!(number("min") <= number("median") && number("median") <= number("max"));
    for key in ["stddev", "user", "system"] {
        assert!(number(key) >= 0.0);
    }
}

/// Check that a failing program ends the runs, unless failures are ignored, and that its messages
/// can be shown.
#[test]
fn programs_fail() {
    let _turn = turn();
    let failing = ["sh", "-c", "echo it failed >&2; exit 3"];
    let output = repeat(&[&["-n", "3", "run"], &failing[..]].concat());
    assert_eq!(code(&output), 1);
    let said = text(&output.stderr);
    assert!(said.contains("it failed") && said.contains("exit code 3"), "{said}");
    let ignored = [&["-n", "3", "-i", "--json", "run"], &failing[..]].concat();
    let output = repeat(&ignored);
    assert_eq!(code(&output), 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["results"][0]["exit_codes"], serde_json::json!([3, 3, 3]));
    let missing = repeat(&["-n", "3", "run", "./no-such-program"]);
    assert_eq!(code(&missing), 3);
    assert!(text(&missing.stderr).contains("failed to run ./no-such-program"));
    let prepared = repeat(&["-n", "3", "--prepare", "exit 9", "run", "true"]);
    assert_eq!(code(&prepared), 1);
    assert!(text(&prepared.stderr).contains("--prepare: 'exit 9' failed"));
}

/// Check that the command that prepares a run is run before each one, warm-ups included.
#[test]
fn runs_are_prepared() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let prepare = format!("echo >>{}", log.display());
    let output =
        repeat(&["-n", "3", "--warmup", "2", "--prepare", &prepare, "run", "true"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(log).unwrap(), "\n".repeat(5));
}

/// Kills the processes with that command line; there may be none.
fn end_all(command_line: &str) {
    let words = command_line.replace(' ', "\0") + "\0";
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let own = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(process) = number.filter(|_| own == words.as_bytes()) {
            // SAFETY: takes numbers only.
            unsafe { libc::kill(process, libc::SIGKILL) };
        }
    }
}

/// Check that a hanging program is ended with its children, and that a process that it left behind does
/// not delay the next run.
#[test]
fn programs_hang_and_fork() {
    let _turn = turn();
    // No other process has these words.
    let sleep = format!("sleep 4321.{}", std::process::id());
    let begin = Instant::now();
    let hanging = format!("trap '' TERM; {sleep} & wait; {sleep}");
    let output = repeat(&["-n", "3", "--timeout", "300ms", "run", "sh", "-c", &hanging]);
    assert_eq!(code(&output), 1);
    assert!(text(&output.stderr).contains("--timeout"), "{}", text(&output.stderr));
    let forking = format!("{sleep} & exit 0");
    let output = repeat(&["-n", "2", "--json", "run", "sh", "-c", &forking]);
    end_all(&sleep);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let doubts = report["sets"][0]["doubts"].as_array().unwrap();
    assert!(doubts.iter().any(|doubt| doubt["code"] == "survivors"), "{report:#}");
    assert!(begin.elapsed() < Duration::from_secs(500));
}

/// Check that Ctrl-C ends the runs, and that those before it are reported and stay saved.
#[test]
fn ctrl_c_ends_the_runs() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    let args = ["repeat", "--json", "-n", "1000", "--pause", "0", "-o"];
    let child =
        spawn(&[&args[..], &[set.to_str().unwrap(), "run", "sleep", "0.2"]].concat());
    let begin = Instant::now();
    let saved = || fs::read_dir(&set).is_ok_and(|files| files.count() >= 2);
    while !saved() && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 4, "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["doubts"][0]["code"], "interrupted");
    let saved = files(&set);
    assert_eq!(report["sets"][0]["runs"], saved.len());
    assert!(saved.iter().all(|file| file.ends_with(".json")), "{saved:?}");
}

/// The output of `repeat` with these options and this run if Ctrl-C ends it while `SCRIPT`, a word
/// of theirs, sleeps.
fn interrupted(words: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let script = format!("touch {}; exec sleep 30", begun.display());
    let words =
        words.iter().map(|&word| if word == SCRIPT { script.as_str() } else { word });
    let child =
        spawn(&["repeat", "-n", "2"].into_iter().chain(words).collect::<Vec<_>>());
    let begin = Instant::now();
    while !begun.exists() && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    signal(&child, libc::SIGINT);
    child.wait_with_output().unwrap()
}

const SCRIPT: &str = "SCRIPT";

/// Check that Ctrl-C ends the command that prepares a run, as an interruption and not as a failure.
#[test]
fn ctrl_c_ends_the_preparation() {
    let _turn = turn();
    let output = interrupted(&["--prepare", SCRIPT, "run", "true"]);
    assert_eq!(code(&output), 4, "{}", text(&output.stderr));
}

/// Check that if Ctrl-C ends the runs before one is complete, one sentence says so, and no table is
/// printed.
#[test]
fn nothing_is_complete() {
    let _turn = turn();
    let output = interrupted(&["run", "sh", "-c", SCRIPT]);
    assert_eq!(code(&output), 4, "{}", text(&output.stderr));
    let said = "noisefloor: nothing to report: the runs ended before one was complete\n";
    assert_eq!(
        (text(&output.stdout).as_str(), text(&output.stderr).as_str()),
        ("", said)
    );
}

/// Check that the temporary folder of a killed process is removed by the next one.
#[test]
fn nothing_is_left_behind() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    let hidden = || {
        let is_hidden = |file: &String| file.starts_with('.');
        set.exists().then(|| files(&set).into_iter().filter(is_hidden).count())
    };
    let args = ["repeat", "-n", "1000", "--pause", "0", "-o", set.to_str().unwrap()];
    // No other process has these words.
    let sleep = format!("sleep 20.{}", std::process::id());
    let run = ["run", "sh", "-c", &sleep];
    let mut child = spawn(&[&args[..], &run].concat());
    let begin = Instant::now();
    while hidden() != Some(1) && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(hidden(), Some(1));
    let output = repeat(&["-n", "1", "-o", set.to_str().unwrap(), "run", "true"]);
    end_all(&sleep);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    assert_eq!(hidden(), Some(0));
}

/// Check that usage errors come before the first run, and leave no folder.
#[test]
fn usage_errors() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    for (words, expected) in [
        (&["facts"][..], "'facts' cannot be repeated"),
        (&["noise", "-o", "x"], "-o belongs before 'noise'"),
        (&["noise", "--json"], "--json belongs before 'noise'"),
        (&["noise", "--no-such-option"], "--no-such-option"),
        (&["--quite", "noise"], "--quite"),
        (&["repeat", "noise"], "'repeat' cannot be repeated"),
    ] {
        let before = ["-o", set.to_str().unwrap(), "--"];
        let output = repeat(&[&before[..], words].concat());
        assert_eq!(code(&output), 2, "{words:?}");
        let said = text(&output.stderr);
        assert!(said.contains(expected), "{words:?}: {said}");
    }
    assert!(!set.exists());
    fs::write(&set, "").unwrap();
    let output = repeat(&["-o", set.to_str().unwrap(), "noise"]);
    assert_eq!(code(&output), 2);
    assert!(text(&output.stderr).contains("-o: failed to write "));
}

/// The report of runs of a shell script, in which `NOISEFLOOR` is the process that runs it.
fn scripted(runs: &str, script: &str) -> Output {
    let cpu = first_cpu();
    // The parent of the shell is the supervisor, whose name has no spaces.
    let script = format!("read _ _ _ NOISEFLOOR _ </proc/$PPID/stat; {script}");
    let options = ["--json", "-n", runs, "--", "run", "-c", &cpu, "sh", "-c", &script];
    repeat(&options)
}

/// Check that one process runs a program repeatedly, whose standard input is empty.
#[test]
fn one_process_runs_a_program() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let script = format!("echo $NOISEFLOOR \"$(cat)\" >>{}", file.display());
    let output = scripted("3", &script);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let pids = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = pids.lines().map(str::trim).collect();
    assert!(lines.len() == 3 && lines.iter().all(|line| *line == lines[0]), "{pids}");
    assert!(lines[0].parse::<u32>().is_ok(), "{pids}");
}

/// Check that the runs before one whose process is killed are reported.
#[test]
fn a_killed_process_is_one_run() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let once = folder.path().join("once");
    let script = format!(
        "[ ! -e {0} ] || kill -KILL $NOISEFLOOR; touch {0}; sleep 0.01",
        once.display()
    );
    let output = scripted("5", &script);
    assert_ne!(code(&output), 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["results"][0]["times"].as_array().unwrap().len(), 1, "{report}");
    let doubts = report["doubts"].as_array().unwrap();
    assert!(doubts.iter().any(|doubt| doubt["code"] == "interrupted"), "{report}");
}
