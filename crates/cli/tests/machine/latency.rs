//! Timer wake-up latency, as users request it.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::culprits::can_watch;
use crate::outranking::{self, Outranking};
use crate::tool::{
    first_cpu, is_root, json, public_tool, run, signal, spawn, text, turn, unprivileged,
};

/// Check the contract: as many samples as intervals fit, quantiles in ascending order, and all
/// requested keys.
#[test]
fn latency_keeps_the_contract() {
    let cpu = first_cpu();
    for timer in ["clock_nanosleep", "timerfd"] {
        let args = ["latency", "--json", "-c", &cpu, "-i", "500us", "-d", "1"];
        let object = json(&[&args[..], &["--timer", timer]].concat());
        assert_eq!(object["kind"], "latency");
        let summary = &object["summary"];
        assert_eq!(
            (&summary["timer"], &summary["policy"]),
            (&timer.into(), &"other".into())
        );
        assert_eq!(
            (&summary["interval_ns"], &summary["priority"]),
            (&500_000.into(), &Value::Null)
        );
        let seen = &summary["cpus"][0];
        assert_eq!(seen["samples"], 2_000);
        let count = |key: &str| seen[key].as_u64().unwrap();
        assert_eq!(count("wakeups") + count("missed"), 2_000);
        let late = |key: &str| seen["late_ns"][key].as_u64().unwrap();
        let rising = ["min", "p50", "p99", "p99_9", "max"].map(late);
        assert!(rising.is_sorted(), "{rising:?}");
        assert!((rising[0]..=rising[4]).contains(&late("mean")), "{seen}");
    }
}

/// Check that the report lists the allowed idle states, that `--dma-latency 0` leaves the first
/// only, and that the kernel's counters agree.
#[test]
fn idle_states_of_a_run() {
    const DEVICE: &str = "/dev/cpu_dma_latency";
    const NO_LIMIT: u64 = 2_000_000_000;
    let cpu = first_cpu();
    let args = ["latency", "--json", "-c", &cpu, "-d", "500ms"];
    let found = |args: &[&str]| json(args)["summary"]["cpus"][0].clone();
    let states = |cpu: &Value| cpu["idle_states"].as_array().unwrap().clone();
    let free = found(&args);
    if states(&free).is_empty() {
        println!("skipped: idle_states_of_a_run: this kernel reports no idle states");
        return;
    }
    let deeper = |cpu: &Value| states(cpu).split_off(1);
    let asleep = |cpu: &Value| {
        let times = deeper(cpu).into_iter().map(|state| state["time_ns"].as_u64());
        times.map(Option::unwrap).sum::<u64>()
    };
    if !is_root() || !std::path::Path::new(DEVICE).exists() {
        println!("skipped: idle_states_of_a_run: it takes root and {DEVICE}");
        assert!(free["wake_limit_us"].is_null(), "{free}");
        return;
    }
    let held = found(&[&args[..], &["--dma-latency", "0"]].concat());
    assert_eq!(held["wake_limit_us"], 0);
    let allowed = |state: &Value| state["allowed"].as_bool().unwrap();
    assert!(states(&held).iter().all(|s| allowed(s) == (s["latency_us"] == 0)), "{held}");
    // An idle period that began before the limit was set counts when it ends.
    assert!(asleep(&held) < 50_000_000, "{held}");
    // Another process may hold it at the same time.
    if free["wake_limit_us"] == NO_LIMIT {
        assert!(states(&free).iter().any(|s| allowed(s) && s["latency_us"] != 0));
    }
}

/// Check that settings that need another CPU are not ignored silently.
#[test]
fn nowhere_to_move() {
    if !is_root() {
        println!("skipped: nowhere_to_move: it takes root");
        return;
    }
    let output = run(&["latency", "-d", "50ms", "--irqs", "--kthreads"]);
    let said = text(&output.stderr);
    assert!(said.contains("no other CPU is left"), "{said}");
}

/// Check that a limit sets the exit code to 1 and names the CPU, and that everything is
/// printed.
#[test]
fn late_limits() {
    let cpu = first_cpu();
    let output =
        run(&["latency", "-d", "50ms", "-c", &cpu, "--max-late", "1ns", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert!(said.contains(&format!("CPU {cpu}: longest wake-up latency ")), "{said}");
    assert!(serde_json::from_slice::<Value>(&output.stdout).is_ok());
    let loose = run(&["latency", "-d", "50ms", "-c", &cpu, "--max-late", "1h"]);
    assert_eq!(loose.status.code(), Some(0), "{}", text(&loose.stderr));
}

/// Check that a process that is stopped for some time is late for every expiry of that time,
/// and that Ctrl-C ends it early with all of them.
#[test]
fn stopped_threads_are_late() {
    let cpu = first_cpu();
    let child = spawn(&["latency", "-d", "1h", "-i", "10ms", "-c", &cpu, "--json"]);
    let tasks = format!("/proc/{}/task", child.id());
    let sleeps = || {
        let tasks = std::fs::read_dir(&tasks).unwrap().flatten();
        let comm =
            |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
        tasks.filter_map(|task| comm(task).ok()).any(|name| name.starts_with("late/"))
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while !sleeps() {
        assert!(Instant::now() < deadline, "no sleeping thread");
        std::thread::sleep(Duration::from_millis(5));
    }
    // The thread is there; so that it has a schedule, too.
    std::thread::sleep(Duration::from_millis(200));
    signal(&child, libc::SIGSTOP);
    std::thread::sleep(Duration::from_millis(500));
    signal(&child, libc::SIGCONT);
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    let doubts = object["doubts"].as_array().unwrap();
    assert!(doubts.iter().any(|doubt| doubt["code"] == "interrupted"), "{doubts:?}");
    let seen = &object["summary"]["cpus"][0];
    if seen["samples"].as_u64() < Some(3) {
        println!("skipped: stopped_threads_are_late: the thread had not begun to sleep");
        return;
    }
    let latest = Duration::from_nanos(seen["late_ns"]["max"].as_u64().unwrap());
    assert!(latest >= Duration::from_millis(480), "{latest:?}");
    assert!(seen["missed"].as_u64().unwrap() >= 47, "{seen}");
}

/// Check that real-time threads have no slack and report their policy, and that without the
/// privilege they are refused with the remedy.
#[test]
fn real_time_latency() {
    let args = ["latency", "-d", "20ms", "-i", "1ms", "--fifo", "3", "--json"];
    if is_root() {
        let output = run(&args);
        if output.status.code() == Some(3) {
            println!("skipped: real_time_latency: {}", text(&output.stderr));
            return;
        }
        let object: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(object["summary"]["policy"], "fifo");
        assert_eq!(object["summary"]["priority"], 3);
        assert_eq!(object["summary"]["cpus"][0]["slack_ns"], 0);
    }
    let dir = tempfile::tempdir().unwrap();
    let mut command: Command = unprivileged(&public_tool(dir.path()));
    let output = command.args(args).output().unwrap();
    if output.status.success() {
        println!("skipped: real_time_latency: RLIMIT_RTPRIO allows it to everyone");
        return;
    }
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("CAP_SYS_NICE"), "{}", text(&output.stderr));
}

/// Check that a thread that delays a real-time task is named, in the sums and for the latest wake-ups,
/// and that all parts and all culprits add up to the latency.
#[test]
fn delays_have_a_name() {
    let _turn = turn();
    if !can_watch("delays_have_a_name") {
        return;
    }
    let cpu = first_cpu();
    let Some(outranking) = Outranking::start("delays_have_a_name", &cpu) else { return };
    let object = json(&["latency", "--fifo", "80", "-c", &cpu, "-d", "2", "--json"]);
    drop(outranking);
    let seen = &object["summary"]["cpus"][0];
    let list = |key: &str| seen[key].as_array().unwrap().clone();
    let ns = |value: &Value| value["ns"].as_u64().unwrap();
    let named = |value: &Value| value["name"] == outranking::NAME;
    let is_it = |culprit: &&Value| named(culprit) && culprit["part"] == "scheduling";
    let culprits = list("culprits");
    let culprit = culprits.iter().find(is_it).unwrap_or_else(|| panic!("{culprits:?}"));
    assert!(culprit["wakeups"].as_u64().unwrap() > 20, "{culprit}");
    assert!(culprit["max_ns"].as_u64().unwrap() > 1_000_000, "{culprit}");
    assert_eq!(culprit["prio"], 0);
    let sum = |of: &[Value]| of.iter().map(ns).sum::<u64>();
    assert_eq!(sum(&list("parts")), sum(&culprits));
    // Others delay some of them: the hypervisor, for example.
    let latest = list("latest");
    assert!(latest.iter().filter(|late| named(&late["main"])).count() >= 3, "{latest:?}");
    for late in &latest {
        let moments = late["moments"].as_array().unwrap();
        let during: Vec<Value> =
            moments.iter().filter(|one| !one["part"].is_null()).cloned().collect();
        assert_eq!(sum(&during), late["late_ns"], "{late}");
        let after = |one: &Value| one["after_ns"].as_i64().unwrap();
        assert!(moments.is_sorted_by_key(after), "{late}");
    }
}

/// Check that the first wake-up above a limit ends the run, with what happened; and that nothing is
/// traced if that is not wanted.
#[test]
fn ends_at_a_late_wakeup() {
    let _turn = turn();
    if !can_watch("ends_at_a_late_wakeup") {
        return;
    }
    let cpu = first_cpu();
    let args = ["latency", "-c", &cpu, "-d", "1h", "--stop-above", "1us"];
    let output = run(&args);
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert!(report.contains("The first wake-up later than 1 µs"), "{report}");
    assert!(report.contains("ended early, by a wake-up above the limit"), "{report}");
    let untraced = run(&[&args[..], &["--no-trace"]].concat());
    let report = text(&untraced.stdout);
    assert_eq!(untraced.status.code(), Some(1), "{report}");
    assert!(!report.contains("Causes of late wake-ups"), "{report}");
}
