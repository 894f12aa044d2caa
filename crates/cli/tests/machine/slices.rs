//! Time slices of spinning processes, as users request them.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::tool::{
    children, is_root, json, public_tool, run, signal, spawn, text, turn, unprivileged,
};

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// Check the contract: all processes are reported, their parts add up, and the CPU time used
/// does not exceed that available.
#[test]
fn slices_keep_the_contract() {
    let _turn = turn();
    let args = ["slices", "6", "--sleepers", "2", "-d", "1", "--json", "--series"];
    let object = json(&args);
    assert_eq!((&object["kind"], &object["format"]), (&"slices".into(), &1.into()));
    let summary = &object["summary"];
    assert_eq!((number(&summary["spinners"]), number(&summary["sleepers"])), (6, 2));
    let tasks = summary["tasks"].as_array().unwrap();
    let sum = |key: &str, spins: bool| -> u64 {
        let all = tasks.iter().filter(|task| task["spins"] == spins);
        all.map(|task| number(&task[key])).sum()
    };
    assert_eq!(sum("switches", true), number(&summary["switches"]));
    assert_eq!(sum("cpu_ns", true), number(&summary["spinners_cpu_ns"]));
    let all = sum("cpu_ns", true) + sum("cpu_ns", false);
    assert_eq!(all, number(&summary["cpu_ns"]));
    let cpus = object["spec"]["cpus"].as_str().unwrap().split(',').count() as u64;
    // The readings are not simultaneous.
    let reading = number(&object["series"]["turns"][0]["samples"][0]["reading_ns"]);
    let most = (number(&summary["wall_ns"]) + 2 * reading + 50_000_000) * cpus;
    assert!(all > 0 && all < most, "{all} of {most}");
    let mean = number(&summary["spinners_cpu_ns"]) / number(&summary["switches"]);
    assert_eq!(number(&summary["slice_ns"]["mean"]), mean);
}

/// Check that with tracing the number and the mean of slices agree with the processes' own
/// counters, and that their ends are reported; that a sleeper is among the causes; and that
/// another task with the name of a measured one is not mistaken for it.
#[test]
fn watched_slices_are_the_counted_ones() {
    let _turn = turn();
    let args = ["slices", "8", "--sleepers", "1", "-d", "2", "--json", "--series"];
    let object = beside("spin/0", std::hint::spin_loop, || json(&args));
    let summary = &object["summary"];
    if summary["source"].is_null() {
        println!("skipped: watched_slices_are_the_counted_ones: {}", object["doubts"]);
        return;
    }
    let (traced, counted) =
        (number(&summary["traced_slices"]), number(&summary["switches"]));
    // During the first and the last reading, processes are switched, too: these switches are in
    // one count and not in the other. `reading_ns` is the duration of the longer one.
    let sample = &object["series"]["turns"][0]["samples"][0];
    let from = number(&sample["start_ns"]);
    let to = from + number(&sample["wall_ns"]);
    let margin = number(&sample["reading_ns"]) * 2 + 5_000_000;
    let list = |of: &Value| of.as_array().unwrap().clone();
    let measured = list(&object["series"]["tasks"]);
    let spins = |switched: &Value| {
        let is_it = |task: &&Value| task["pid"] == switched["tid"];
        measured.iter().find(is_it).is_some_and(|task| task["role"] == "spinner")
    };
    let spins: Vec<bool> =
        list(&object["series"]["switches"]["tasks"]).iter().map(spins).collect();
    let near = |moment: u64| {
        let cpus = object["series"]["switches"]["cpus"].as_array().unwrap();
        let all = |key| cpus.iter().flat_map(move |cpu| cpu[key].as_array().unwrap());
        let whole =
            all("stretches").map(|one| (number(&one[0]) + number(&one[1]), &one[2]));
        let loose = all("loose_ends").map(|one| (number(&one[0]), &one[1]));
        let ends = whole.chain(loose).filter(|(end, task)| {
            let task = usize::try_from(number(task)).unwrap();
            spins[task] && end.abs_diff(moment) <= margin
        });
        ends.count() as u64
    };
    let unsure = near(from) + near(to);
    assert!(
        traced.abs_diff(counted) <= unsure,
        "{traced} and {counted}, {unsure} unsure"
    );
    let ends = summary["ends"].as_array().unwrap();
    let slices: u64 = ends.iter().map(|ends| number(&ends["slices"])).sum();
    assert_eq!(slices, traced);
    assert!(
        ends.iter().any(|e| e["end"] == "wakeup" && e["by"] == "sleep/0"),
        "{ends:?}"
    );
}

/// Ends a thread when it is dropped.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The result of a function while a thread of that name repeats another one.
fn beside<T>(name: &str, again: impl Fn() + Sync, what: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    let until_done = || {
        while !done.load(Ordering::Relaxed) {
            again();
        }
    };
    std::thread::scope(|scope| {
        let _done = Done(&done);
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn_scoped(scope, until_done).unwrap();
        what()
    })
}

/// Check that a task that wakes up a thousand times per second is found and named, without
/// being specified.
#[test]
fn others_are_found() {
    let _turn = turn();
    let args = ["slices", "4", "--sleepers", "0", "-d", "2", "--json"];
    let wake = || std::thread::sleep(Duration::from_millis(1));
    let object = beside("restless", wake, || json(&args));
    let summary = &object["summary"];
    if summary["source"].is_null() {
        println!("skipped: others_are_found: {}", object["doubts"]);
        return;
    }
    let ends = summary["ends"].as_array().unwrap();
    let is_it = |ender: &&Value| ender["end"] == "wakeup" && ender["by"] == "restless";
    assert!(ends.iter().any(|ends| is_it(&ends)), "{ends:?}");
    let wakers = summary["wakers"]["threads"].as_array().unwrap();
    assert!(wakers.iter().any(|thread| thread["name"] == "restless"), "{wakers:?}");
}

/// Check the columns of the 2009 report's program, one line per sample, with the exact numbers
/// beside them.
#[test]
fn classic_columns() {
    let _turn = turn();
    let output = run(&["slices", "4", "--classic", "-d", "2", "--no-trace"]);
    let said = text(&output.stdout);
    let lines: Vec<&str> =
        said.lines().filter(|l| l.starts_with("avg slice: ")).collect();
    assert_eq!(lines.len(), 2, "{said}");
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!((words[0], words[1], words[3]), ("avg", "slice:", "utime:"), "{line}");
        // Averages of four whole numbers; of ticks, which are whole microseconds.
        let quarters = words[2].parse::<f64>().unwrap() * 4.0;
        assert!((quarters - quarters.round()).abs() < 1e-9, "{line}");
        assert!(
            words[4].parse::<f64>().unwrap() > 0.0 && words[5] == "exactly",
            "{line}"
        );
    }
}

/// Check that a thousand processes are started, measured and ended.
#[test]
fn a_thousand() {
    let _turn = turn();
    let child = spawn(&["slices", "1000", "--sleepers", "3", "-d", "1", "--json"]);
    let tool = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["summary"]["tasks"].as_array().unwrap().len(), 1_003);
    assert!(children(tool).is_empty());
}

/// Check that no process is left after any signal; and that one that can be handled ends the
/// run early, with the result so far.
#[test]
fn no_process_is_left() {
    let _turn = turn();
    for end in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGKILL] {
        let child = spawn(&["slices", "20", "-d", "1h", "--json"]);
        let started = wait_for(|| {
            let all = children(child.id());
            (all.len() == 23 && all.iter().all(|&pid| has_run(pid))).then_some(all)
        });
        signal(&child, end);
        let output = child.wait_with_output().unwrap();
        wait_for(|| started.iter().all(|&pid| is_gone(pid)).then_some(()));
        if end != libc::SIGKILL {
            let object: Value = serde_json::from_slice(&output.stdout).unwrap();
            let doubts = object["doubts"].as_array().unwrap();
            let has = |code: &str| doubts.iter().any(|doubt| doubt["code"] == code);
            assert!(has("interrupted"), "{doubts:?}");
            // On a busy machine the processes run long before the measurement begins.
            let code = if has("nothing_measured") { 4 } else { 0 };
            assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        }
    }
}

/// Whether a process has had a complete slice.
fn has_run(pid: u32) -> bool {
    let times = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let ran = times.split_whitespace().next().and_then(|ran| ran.parse::<u64>().ok());
    ran.is_some_and(|ran| ran > 50_000)
}

/// A process that has ended may still have to be reaped by its new parent.
fn is_gone(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |s| s.contains(") Z "))
}

fn wait_for<T>(mut what: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = what() {
            return found;
        }
        assert!(Instant::now() < deadline, "it did not happen in a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Check that invalid variants are refused before anything runs: unknown settings, those that
/// this kernel does not have (with a list of its own), or that may not be changed.
#[test]
fn refused_steps() {
    let refused = |step: &str| -> Output { run(&["slices", "--step", step, "-d", "1"]) };
    for (step, code) in [
        ("WAKEUP_PREEMPTION", 2),
        ("WAKEUP_PREEMPTION=perhaps", 2),
        ("base_slice_ns=long", 2),
    ] {
        let output = refused(step);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(step), "{}", text(&output.stderr));
    }
    let dir = tempfile::tempdir().unwrap();
    let mut command = unprivileged(&public_tool(dir.path()));
    let step = ["slices", "--step", "WAKEUP_PREEMPTION=off", "-d", "1"];
    let output = command.args(step).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
}

/// Check that without any privilege slices are measured, with doubts that name what is missing.
#[test]
fn slices_without_privileges() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let mut command = unprivileged(&public_tool(dir.path()));
    let output = command.args(["slices", "4", "-d", "1", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    let codes: Vec<&str> = object["doubts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|doubt| doubt["code"].as_str().unwrap())
        .collect();
    assert!(number(&object["summary"]["switches"]) > 0);
    if is_root() {
        assert!(codes.contains(&"untraced") && codes.contains(&"competes"), "{codes:?}");
    }
    let mut nicer = unprivileged(&public_tool(dir.path()));
    // These tests may themselves have a nice value below 0.
    let output =
        nicer.args(["slices", "2", "-d", "1", "--nice", "-20"]).output().unwrap();
    if is_root() {
        assert_eq!(output.status.code(), Some(3));
        assert!(text(&output.stderr).contains("RLIMIT_NICE"), "{}", text(&output.stderr));
    }
}

/// Check that a picture is written, well-formed enough to have its variants and its processes,
/// and that the report of a saved recording is the same.
#[test]
fn pictures_and_recordings() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).display().to_string();
    let [svg, html, kept] = ["a.svg", "a.html", "a.json"].map(file);
    let files = ["-o", &svg, "-o", &html, "-o", &kept];
    let output = run(&[&["slices", "4", "-d", "1"], &files[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let read = |file: &str| fs::read_to_string(Path::new(file)).unwrap();
    assert!(read(&svg).starts_with("<svg") || read(&svg).starts_with("<?xml"));
    assert!(read(&html).contains("<svg") && read(&html).trim_end().ends_with("</html>"));
    assert_eq!(text(&run(&["report", &kept]).stdout), text(&output.stdout));
    let again = file("b.svg");
    assert!(run(&["report", &kept, "-o", &again, "-q"]).status.success());
    assert_eq!(read(&again), read(&svg));
    let nowhere = run(&["slices", "4", "-d", "1", "-o", "/no/such/folder/a.svg"]);
    assert_eq!(nowhere.status.code(), Some(2), "{}", text(&nowhere.stderr));
}
