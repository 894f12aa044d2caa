//! The program on the machine that runs the tests: real clocks, signals, privileges.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod advise;
mod compare;
mod counters;
mod culprits;
mod deployed;
mod duet;
#[path = "../shared/environment.rs"]
mod environment;
mod exporter;
#[path = "../shared/file_protections.rs"]
mod file_protections;
mod files;
mod guests;
mod hardware;
mod history;
mod hostile;
#[path = "../shared/install.rs"]
mod install;
mod jitter;
mod lab_parts;
mod latency;
mod moments;
mod occupied;
mod other_tools;
mod outranking;
mod printing;
mod prometheus;
mod quota;
mod repeat;
mod run;
#[path = "../shared/settings_lock.rs"]
mod settings_lock;
mod shared_folders;
mod slices;
mod surroundings;
mod terminals;
mod tool;
mod top;
mod watch;

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use settings_lock::lock_settings;
use tool::{
    TOOL, first_cpu, is_root, json, pid, public_tool, run, signal, spawn, text, tool,
    tool_on, turn, unprivileged, wait_for_spinners,
};

/// Check the contract's top level, and that the parts of the noise add up.
#[test]
fn check_keeps_the_contract() {
    let _turn = turn();
    let object = json(&["check", "--json", "--rest", "200ms", "-d", "300ms"]);
    for key in ["format", "kind", "taken", "facts", "spec", "summary", "doubts"] {
        assert!(!object[key].is_null(), "{key}");
    }
    assert!(object.get("series").is_none());
    let cpus = object["summary"]["noise"]["cpus"].as_array().unwrap();
    for cpu in cpus {
        let culprits = cpu["culprits"].as_array().unwrap();
        let sum: u64 = culprits.iter().map(|c| c["ns"].as_u64().unwrap()).sum();
        assert_eq!(sum, cpu["noise_ns"].as_u64().unwrap());
        assert!(cpu["loop_ns_p50"].as_u64().unwrap() > 0);
    }
    let findings = object["summary"]["findings"].as_array().unwrap().len();
    assert!((2..=7).contains(&findings), "{findings} findings");
}

/// Check `facts.tick.hz` against the kernel's configuration, read in another way.
#[test]
fn hz_is_what_was_configured() {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let files = [
        "zcat /proc/config.gz".to_owned(),
        format!("cat /boot/config-{}", release.trim()),
        format!("cat /lib/modules/{}/config", release.trim()),
    ];
    let read = |command: &String| {
        let output = Command::new("sh").args(["-c", command]).output().ok()?;
        let line = text(&output.stdout)
            .lines()
            .find_map(|line| line.strip_prefix("CONFIG_HZ=").map(str::to_owned))?;
        line.parse::<u64>().ok()
    };
    match files.iter().find_map(read) {
        Some(hz) => assert_eq!(json(&["facts", "--json"])["facts"]["tick"]["hz"], hz),
        None => println!("skipped: no kernel configuration is readable here"),
    }
}

/// Check that a limit sets the exit code to 1, and that everything is printed.
#[test]
fn limits_make_the_exit_code() {
    let _turn = turn();
    let output = run(&["noise", "-d", "1", "--max-gap", "1ns", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["kind"], "noise");
    assert!(text(&output.stderr).contains("limit"), "{}", text(&output.stderr));
    let loose =
        run(&["noise", "-d", "50ms", "--max-gap", "1h", "--max-noise-ppm", "1e6"]);
    assert_eq!(loose.status.code(), Some(0));
}

/// Check that a CPU outside the process's affinity is refused as such.
#[test]
fn affinity_is_named() {
    let _turn = turn();
    let facts = json(&["facts", "--json"]);
    let allowed = facts["facts"]["cpus"]["allowed"].as_str().unwrap().to_owned();
    if allowed.parse::<u32>().is_ok() {
        println!("skipped: affinity_is_named: this process has one CPU only");
        return;
    }
    let first = first_cpu();
    let other = allowed.rsplit(['-', ',']).next().unwrap();
    let args = ["noise", "--json", "-d", "1", "-c", other];
    let output = tool_on(&first, &args).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("affinity"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
}

/// Check that SCHED_FIFO without the privilege is refused with the remedy.
#[test]
fn fifo_needs_a_privilege() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let mut command = unprivileged(&public_tool(dir.path()));
    let output =
        command.args(["noise", "-d", "1", "--fifo", "50", "--json"]).output().unwrap();
    if output.status.success() {
        println!("skipped: fifo_needs_a_privilege: RLIMIT_RTPRIO allows it to everyone");
        return;
    }
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("CAP_SYS_NICE"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
}

/// Check that `noise --fifo --unthrottled` measures without RT throttling, has this in its
/// facts, and restores it.
#[test]
fn noise_without_throttling() {
    const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    let _turn = turn();
    let cpus = std::thread::available_parallelism().unwrap().get();
    if !is_root() || cpus < 2 || fs::OpenOptions::new().write(true).open(RUNTIME).is_err()
    {
        println!("skipped: noise_without_throttling: it takes root and two CPUs");
        return;
    }
    // No test with a journal of its own restores it meanwhile; other runs share this one's journal.
    let _settings = lock_settings();
    let needed = || {
        let restore = json(&["restore", "--json"]);
        let settings = restore["settings"].as_array().cloned().unwrap_or_default();
        settings.into_iter().find(|one| one["setting"] == RUNTIME)
    };
    let now = || fs::read_to_string(RUNTIME).unwrap().trim().to_owned();
    let before = needed().map_or_else(now, |one| one["old"].as_str().unwrap().to_owned());
    let cpu = first_cpu();
    let args = ["noise", "-q", "-d", "200ms", "-c", &cpu, "--fifo", "50"];
    let object = json(&[&args[..], &["--unthrottled", "--json"]].concat());
    assert_eq!(object["facts"]["sched"]["rt_runtime_us"], -1);
    // Another noisefloor may need the setting for longer, and then restores the same value. `restore`
    // itself restores nothing: the run has. The setting can change between the two readings.
    let is_restored = (0..9).any(|_| match needed() {
        Some(one) => {
            assert_eq!(
                (&one["fate"], &one["old"]),
                (&"needed".into(), &before.as_str().into())
            );
            true
        }
        None => now() == before,
    });
    assert!(is_restored, "it was {before} and is {}", now());
    let alone = run(&["noise", "--unthrottled"]);
    assert_eq!(alone.status.code(), Some(2), "{}", text(&alone.stderr));
}

/// Check that counting wake-ups without the privilege is refused with the remedy.
#[test]
fn wakers_need_a_privilege() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = unprivileged(&public_tool(dir.path()));
    let output = command.args(["wakers", "-d", "1", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("CAP_BPF"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
}

/// Check that Ctrl-C ends counting early, and that the counts so far are reported, with a
/// doubt, and that the report of the saved recording is the same.
#[test]
fn interrupted_wakers() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("my.json");
    let file = file.to_str().unwrap();
    let mut child = spawn(&["wakers", "-d", "1h", "-o", file]);
    let fds = format!("/proc/{}/fd", child.id());
    let is_bpf = |fd: fs::DirEntry| {
        fs::read_link(fd.path())
            .is_ok_and(|to| to.to_string_lossy().starts_with("anon_inode:bpf"))
    };
    // A process that has loaded a program handles signals already.
    let counts = || fs::read_dir(&fds).is_ok_and(|fds| fds.flatten().any(is_bpf));
    while !counts() {
        if let Some(status) = child.try_wait().unwrap() {
            let output = child.wait_with_output().unwrap();
            assert_eq!(status.code(), Some(3));
            println!("skipped: interrupted_wakers: {}", text(&output.stderr));
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("ended early"), "{}", text(&output.stdout));
    assert_eq!(text(&run(&["report", file]).stdout), text(&output.stdout));
    let object = json(&["report", file, "--json"]);
    assert_eq!((&object["kind"], &object["format"]), (&"wakers".into(), &1.into()));
    assert_eq!(object["doubts"][0]["code"], "interrupted");
}

/// Check that without any privilege `check` completes and names what root would add.
#[test]
fn check_without_privileges() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let mut command = unprivileged(&public_tool(dir.path()));
    let output =
        command.args(["check", "--rest", "200ms", "-d", "300ms"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains("sudo noisefloor check"),
        "{}",
        text(&output.stdout)
    );
}

/// Check that a process that is stopped for over a second shows a gap of that length, and not
/// the remainder of an overflow.
#[test]
fn stalls_keep_their_length() {
    let _turn = turn();
    let cpu = first_cpu();
    let child = spawn(&["noise", "-d", "1h", "-c", &cpu, "--json"]);
    wait_for_spinners(&child, 1);
    let before = Instant::now();
    signal(&child, libc::SIGSTOP);
    let mut status = 0;
    // SAFETY: the child is ours; `status` outlives the call.
    unsafe { libc::waitpid(pid(&child), &raw mut status, libc::WUNTRACED) };
    assert!(libc::WIFSTOPPED(status));
    let stopped = Instant::now();
    std::thread::sleep(Duration::from_millis(1_200));
    let least = stopped.elapsed();
    signal(&child, libc::SIGCONT);
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    let most = before.elapsed();
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    let longest = object["summary"]["cpus"][0]["gap_ns"]["max"].as_u64().unwrap();
    let longest = Duration::from_nanos(longest);
    assert!(longest >= least && longest <= most, "{least:?} {longest:?} {most:?}");
}

/// Check that Ctrl-C ends a run early, and that the result so far is reported, with a doubt.
#[test]
fn interrupted_runs_are_told() {
    let _turn = turn();
    let cpu = first_cpu();
    let child = spawn(&["noise", "-d", "1h", "-c", &cpu, "--json"]);
    wait_for_spinners(&child, 1);
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    let doubts = object["doubts"].as_array().unwrap();
    assert!(doubts.iter().any(|doubt| doubt["code"] == "interrupted"), "{doubts:?}");
    assert!(object["summary"]["cpus"][0]["elapsed_ns"].as_u64().unwrap() > 0);
}

/// Check that a run started with `nohup` continues after its terminal is closed.
#[test]
fn nohup_is_kept() {
    let _turn = turn();
    let cpu = first_cpu();
    let line = format!("trap '' HUP; exec {TOOL} noise -d 1h -c {cpu} --json");
    let mut shell = Command::new("sh");
    environment::with_own_claims(&mut shell);
    let child = shell.args(["-c", &line]).stdout(Stdio::piped()).spawn().unwrap();
    wait_for_spinners(&child, 1);
    signal(&child, libc::SIGHUP);
    std::thread::sleep(Duration::from_millis(300));
    let running = format!("/proc/{}/status", child.id());
    assert!(!fs::read_to_string(running).unwrap().contains("State:\tZ"));
    signal(&child, libc::SIGTERM);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

/// Check that a signal also ends a sleeping `ticks` at once.
#[test]
fn interrupted_ticks() {
    let mut child = spawn(&["ticks", "-i", "1h"]);
    let mut header = [0; 20];
    child.stdout.as_mut().unwrap().read_exact(&mut header).unwrap();
    signal(&child, libc::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Check that a killed run leaves no file behind, complete or not.
#[test]
fn killed_runs_leave_nothing() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("my.json");
    let mut child = spawn(&["noise", "-d", "1h", "-o", file.to_str().unwrap()]);
    wait_for_spinners(&child, std::thread::available_parallelism().unwrap().get());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Check that the report of a saved recording is the same text and the same JSON.
#[test]
fn reports_repeat_the_text() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &["noise", "-d", "100ms"][..],
        &["check", "-d", "100ms", "--rest", "100ms"],
        &["jitter", "--fifo", "0", "-q", "-t", "2", "-l", "2"],
        &["latency", "-d", "100ms", "--timer", "timerfd"],
    ] {
        let file = dir.path().join("my.json");
        let file = file.to_str().unwrap();
        let output = tool(args).args(["-o", file]).output().unwrap();
        let again = run(&["report", file]);
        assert_eq!(text(&output.stdout), text(&again.stdout), "{args:?}");
        let object = json(&["report", file, "--json", "--series"]);
        fs::write(dir.path().join("printed.json"), object.to_string()).unwrap();
        let printed = dir.path().join("printed.json");
        let third = run(&["report", printed.to_str().unwrap()]);
        assert_eq!(text(&output.stdout), text(&third.stdout), "{args:?}");
    }
}

/// Check that `ticks` ends with what the report of its saved recording says of the rates.
#[test]
fn ticks_are_reported_live() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("my.json");
    let file = file.to_str().unwrap();
    let live = run(&["ticks", "-n", "2", "-i", "50ms", "-o", file]);
    let again = run(&["report", file]);
    let (live, again) = (text(&live.stdout), text(&again.stdout));
    let (head, rates) = again.split_once("\n\n").unwrap();
    assert!(live.starts_with(head), "{live}{again}");
    assert!(live.ends_with(&format!("\n\n{rates}")), "{live}{again}");
}

/// Check that a file that cannot be written is refused before the measurement.
#[test]
fn unwritable_files_are_refused_first() {
    let before = Instant::now();
    let folder = tempfile::tempdir().unwrap().path().join("gone");
    let file = folder.join("my.json");
    let output = run(&["noise", "-d", "1h", "-o", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains(file.to_str().unwrap()), "{said}");
    assert!(before.elapsed() < Duration::from_secs(3_000));
}

/// Check that a closed pipe ends the program without a message.
#[test]
fn broken_pipes_are_no_failure() {
    for args in [&["facts"][..], &["ticks", "-i", "20ms"]] {
        let mut child = spawn(args);
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "", "{args:?}");
    }
}

/// Check that a tree recorded here has the same facts as this machine.
#[test]
fn a_recorded_tree_reads_as_the_machine() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    let tree = tree.to_str().unwrap();
    let recorded = json(&["facts", "--json", "--quiet", "--record", tree]);
    let read = json(&["facts", "--json", "--root", tree]);
    assert_eq!(recorded["facts"], read["facts"]);
}
