//! The tick of a `nohz_full` CPU, where there is one.

use std::os::unix::process::CommandExt;
use std::process::Stdio;

use serde_json::Value;

use crate::{alone, cpu, output, text, tool};

/// The CPU whose tick can stop; `None`, said, where there is none.
fn nohz_full(test: &str) -> Option<String> {
    let facts = facts::Facts::read(&facts::Root::live());
    let cpu = cpu(test)?;
    let can_stop = isolate::nohz_full(cpu.parse().unwrap(), &facts);
    if let Err(why) = &can_stop {
        println!("skipped: {test}: {why}");
    }
    can_stop.ok().map(|()| cpu)
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// The timer interrupts a second of a summary's `meanwhile` or `stay`.
fn timer_hz(seen: &Value) -> f64 {
    seen["timer_hz"].as_f64().unwrap()
}

/// Check that the tick stops, waited for and forced, and hardly any timer interrupt comes
/// after that.
#[test]
fn the_tick_stops() {
    let Some(cpu) = nohz_full("the_tick_stops") else { return };
    let _alone = alone();
    for how in [&["--stay", "5"][..], &["--forced", "--stay", "2"]] {
        let args = [&["nohz", "test", "-a", &cpu, "--json"], how].concat();
        let told = output(&args);
        assert_eq!(told.status.code(), Some(0), "{how:?}: {}", text(&told.stderr));
        let summary = &json(&told.stdout)["summary"];
        assert_eq!(summary["entered"], true, "{summary}");
        assert_eq!(summary["kept_by"], Value::Array(Vec::new()));
        assert!(timer_hz(&summary["stay"]) < 2.0, "{summary}");
    }
}

/// Check that it stops over and over.
#[test]
fn the_tick_stops_often() {
    let Some(cpu) = nohz_full("the_tick_stops_often") else { return };
    let _alone = alone();
    let told = output(&["nohz", "stress", "-a", &cpu, "-n", "20", "--json"]);
    assert_eq!(told.status.code(), Some(0), "{}", text(&told.stdout));
    let summary = &json(&told.stdout)["summary"];
    assert_eq!((&summary["tries"], &summary["failures"]), (&20.into(), &0.into()));
    let wait = |name: &str| summary["wait_ns"][name].as_u64().unwrap();
    assert!(wait("min") <= wait("p50") && wait("p50") <= wait("p99"));
}

/// Check that a planted POSIX timer of CPU time keeps the tick, and is named.
#[test]
fn what_keeps_it_is_named() {
    let Some(cpu) = nohz_full("what_keeps_it_is_named") else { return };
    let _alone = alone();
    for verb in ["test", "stress"] {
        let mut command = tool(&["nohz", verb, "-a", &cpu, "--limit", "500ms", "--json"]);
        // Timers of setitimer(2) outlive execve(2).
        // SAFETY: between fork and exec one async-signal-safe call is made, on its own stack.
        unsafe { command.pre_exec(plant) };
        let told = command.stdout(Stdio::piped()).output().unwrap();
        assert_eq!(told.status.code(), Some(1), "{}", text(&told.stdout));
        let summary = &json(&told.stdout)["summary"];
        let first = &summary["kept_by"][0];
        assert_eq!(first["dependency"], "POSIX_TIMER", "{summary}");
        assert!(first["times"].as_u64().unwrap() > 0);
    }
}

/// Arms a timer that will not ring while this process lives.
fn plant() -> std::io::Result<()> {
    let never = libc::timeval { tv_sec: 100_000, tv_usec: 0 };
    let timer = libc::itimerval { it_interval: never, it_value: never };
    // SAFETY: `timer` outlives the call, which only reads it; the old one is not asked for.
    match unsafe {
        libc::setitimer(libc::ITIMER_PROF, &raw const timer, std::ptr::null_mut())
    } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Check that a CPU that is not `nohz_full` is refused, and what would make it so is told.
#[test]
fn what_would_help_is_told() {
    let Some(cpu) = cpu("what_would_help_is_told") else { return };
    let facts = facts::Facts::read(&facts::Root::live());
    let other =
        if isolate::nohz_full(cpu.parse().unwrap(), &facts).is_ok() { "0" } else { &cpu };
    for verb in ["test", "stress"] {
        let told = output(&["nohz", verb, "-a", other]);
        let why = text(&told.stderr);
        assert_eq!(told.status.code(), Some(3), "{why}");
        assert!(why.contains("nohz_full="), "{why}");
    }
}
