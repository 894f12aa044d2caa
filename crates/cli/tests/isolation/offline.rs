//! A CPU that goes offline during a measurement, in guests only: on a machine with other programs
//! it would break their affinities.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{IN_GUEST, alone, cpu, text, tool};

/// How long the CPU is offline.
const AWAY: Duration = Duration::from_millis(700);

/// How long the measurement runs before and after that.
const BEFORE: Duration = Duration::from_millis(500);

/// The CPU, if it may be taken offline; `None`, with the reason printed, if not.
fn removable(test: &str) -> Option<String> {
    if !Path::new(IN_GUEST).exists() {
        println!("skipped: {test}: it takes a CPU offline, in a guest");
        return None;
    }
    cpu(test)
}

fn set_online(cpu: &str, state: &str) {
    let file = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    std::fs::write(file, state).unwrap();
}

/// Waits until the measurement observes the states of CPUs: it has a thread for that.
fn wait_until_observed(child: &Child) {
    let tasks = format!("/proc/{}/task", child.id());
    let is_observed = || {
        std::fs::read_dir(&tasks).unwrap().flatten().any(|task| {
            let name = std::fs::read_to_string(task.path().join("comm"));
            name.is_ok_and(|name| name.trim_end() == "hotplug")
        })
    };
    while !is_observed() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The doubts of a measurement during which the CPU is offline for that time, and which is ended
/// after that; and the longest time that the CPU can have been offline.
fn doubts(cpu: &str, args: &[&str]) -> (Vec<Value>, Duration) {
    let child = tool(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until_observed(&child);
    std::thread::sleep(BEFORE);
    let begin = Instant::now();
    set_online(cpu, "0");
    std::thread::sleep(AWAY);
    set_online(cpu, "1");
    std::thread::sleep(BEFORE);
    let pid = libc::pid_t::try_from(child.id()).unwrap();
    // SAFETY: the process is a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
    let told = child.wait_with_output().unwrap();
    let at_most = begin.elapsed();
    assert_eq!(told.status.code(), Some(4), "{args:?}: {}", text(&told.stderr));
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    (told["doubts"].as_array().unwrap().clone(), at_most)
}

/// Check that every measurement reports that the CPU was offline, and for how long, and not that
/// its loop was stopped or its thread was moved for an unknown reason.
#[test]
fn reported_with_its_length() {
    let Some(cpu) = removable("reported_with_its_length") else { return };
    let _alone = alone();
    for args in [
        &["noise", "-c", &cpu, "-d", "1h", "--json"][..],
        &["latency", "-c", &cpu, "-d", "1h", "--json"],
        &["ticks", "-c", &cpu, "-i", "1h", "-n", "1", "--json"],
    ] {
        let (doubts, at_most) = doubts(&cpu, args);
        let of = |code: &str| doubts.iter().filter(|doubt| doubt["code"] == code).count();
        assert_eq!(of("offline"), 1, "{args:?}: {doubts:?}");
        assert_eq!((of("idled"), of("migrated")), (0, 0), "{args:?}: {doubts:?}");
        let offline = doubts.iter().find(|doubt| doubt["code"] == "offline").unwrap();
        let told = offline["text"].as_str().unwrap();
        let start = format!("CPU {cpu}: it was offline for ");
        let rest = told.strip_prefix(&start).unwrap_or_else(|| panic!("{told}"));
        let (ms, _) = rest.split_once(" ms, from ").unwrap_or_else(|| panic!("{told}"));
        assert!(ms.parse::<u128>().unwrap() <= at_most.as_millis() + 1, "{told}");
    }
}
