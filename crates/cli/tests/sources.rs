//! Requirements of event sources, and their error messages; and that tracefs instances of
//! noisefloor are removed at the end, however a run ends.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../../blame/tests/truth/own_mounts.rs"]
mod own_mounts;

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use own_mounts::{with_mounted, with_tracefs};

/// One test at a time: each run removes the instances that it finds, also those of another
/// test, and a CPU can be used by one run only.
static TURN: Mutex<()> = Mutex::new(());

/// `make test` sets it, too.
const CLAIMS: &str = "NOISEFLOOR_CLAIMS";

fn noise(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noisefloor"));
    command.arg("noise").args(args).stdin(Stdio::null());
    // Other users who measure on this machine do not conflict with these tests.
    let claims = std::env::var(CLAIMS).unwrap_or_else(|_| std::process::id().to_string());
    command.env(CLAIMS, claims);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Check that a file system that is not mounted is not reported as missing in the kernel.
#[test]
fn sysfs_that_is_not_mounted() {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let name = "sysfs_that_is_not_mounted";
    let filesystems = std::fs::read_to_string("/proc/filesystems").unwrap();
    if !filesystems.contains("tracefs") {
        println!("skipped: {name}: this kernel has no tracefs");
        return;
    }
    let script = "umount -l /sys && exec \"$0\" noise -d 10ms --source tracefs";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_noisefloor")]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = text(&output.stderr);
    if said.contains("mount: ") || said.contains("unshare: ") {
        println!("skipped: {name}: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("as root: mount -t sysfs sysfs /sys"), "{said}");
    assert!(!said.contains("CONFIG_TRACING"), "{said}");
}

/// Runs a test that needs a writable tracefs, or prints why it cannot.
fn in_tracefs(name: &str, test: impl FnOnce() + Send) {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let ended = with_tracefs(|| {
        let tried = noise(&["--source", "tracefs", "-d", "10ms"]).output().unwrap();
        if tried.status.code() == Some(3) {
            return Err(text(&tried.stderr));
        }
        test();
        Ok(())
    });
    if let Err(why) = ended {
        println!("skipped: {name}: {why}");
    }
}

fn folder(child: &Child) -> PathBuf {
    format!("/sys/kernel/tracing/instances/noisefloor-{}", child.id()).into()
}

/// The first and the last CPU.
fn ends() -> [String; 2] {
    let facts = facts::Facts::read(&facts::Root::live());
    let cpus = facts.cpus.allowed.get().unwrap();
    [cpus.iter().next(), cpus.iter().last()].map(|cpu| cpu.unwrap().to_string())
}

/// A run on the first CPU that continues until it is ended, and its trace.
fn start() -> (Child, PathBuf) {
    let [cpu, _] = ends();
    let args = ["--source", "tracefs", "-d", "100", "-c", &cpu];
    let child = noise(&args).spawn().unwrap();
    let folder = folder(&child);
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_on = || std::fs::read_to_string(folder.join("tracing_on"));
    let is_watching =
        || std::fs::read_to_string(folder.join("events/sched/sched_switch/enable"));
    while !(is_watching().is_ok_and(|on| on.starts_with('1'))
        && is_on().is_ok_and(|on| on.starts_with('1')))
    {
        assert!(Instant::now() < deadline, "no trace");
        std::thread::sleep(Duration::from_millis(5));
    }
    (child, folder)
}

fn end(child: Child, signal: libc::c_int) -> Output {
    let pid = libc::pid_t::try_from(child.id()).unwrap();
    // SAFETY: the child is ours and not yet waited for.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    child.wait_with_output().unwrap()
}

/// Check that gaps are attributed to traced events, that the parts add up, and that the trace
/// is removed afterwards.
#[test]
fn blames_and_goes() {
    in_tracefs("blames_and_goes", || {
        let child = noise(&["--source", "tracefs", "-d", "1", "--json"]).spawn().unwrap();
        let folder = folder(&child);
        let output = child.wait_with_output().unwrap();
        let object: Value = serde_json::from_slice(&output.stdout).unwrap();
        for cpu in object["summary"]["cpus"].as_array().unwrap() {
            let culprits = cpu["culprits"].as_array().unwrap();
            let sum: u64 = culprits.iter().map(|c| c["ns"].as_u64().unwrap()).sum();
            assert_eq!(sum, cpu["noise_ns"].as_u64().unwrap());
            let named = culprits.iter().filter(|c| c["kind"] != "unexplained");
            assert!(named.count() > 0, "{culprits:?}");
        }
        assert!(!folder.exists());
    });
}

/// Check that a run that is ended by Ctrl-C removes its trace.
#[test]
fn ends_with_ctrl_c() {
    in_tracefs("ends_with_ctrl_c", || {
        let (child, folder) = start();
        end(child, libc::SIGINT);
        assert!(!folder.exists());
    });
}

/// Check that the kernel ends the trace of a run that is killed, that the next run removes it
/// and reports so, with any event source, and that the one after that reports nothing.
#[test]
fn next_run_removes_what_a_killed_one_left() {
    in_tracefs("next_run_removes_what_a_killed_one_left", || {
        let (child, folder) = start();
        end(child, libc::SIGKILL);
        let is_on = std::fs::read_to_string(folder.join("tracing_on")).unwrap();
        assert_eq!(is_on.trim(), "0");
        let next = || noise(&["--source", "proc", "-d", "10ms"]).output().unwrap();
        let said = text(&next().stderr);
        let expected =
            format!("removed {}, left behind by a killed run", folder.display());
        assert!(said.contains(&expected), "{said}");
        assert!(!folder.exists());
        let said = text(&next().stderr);
        assert!(!said.contains("removed"), "{said}");
    });
}

/// Check that a run does not remove the trace of a running one.
#[test]
fn leaves_others_alone() {
    in_tracefs("leaves_others_alone", || {
        let [first, last] = ends();
        if first == last {
            println!("skipped: leaves_others_alone: there is one CPU");
            return;
        }
        let (child, folder) = start();
        let args = ["--source", "tracefs", "-d", "10ms", "-c", &last];
        let output = noise(&args).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(!text(&output.stderr).contains("removed"));
        assert!(folder.exists());
        end(child, libc::SIGTERM);
        assert!(!folder.exists());
    });
}

/// Check that a kernel without BTF is reported as such, and that the next best source is used.
#[test]
fn without_btf() {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let ran = with_mounted(c"tmpfs", &[c"/sys/kernel/btf"], || {
        Ok([&["--source", "bpf", "-d", "10ms"][..], &["-d", "10ms", "--json"]]
            .map(|args| noise(args).output().unwrap()))
    });
    let [refused, served] = match ran {
        Ok(outputs) => outputs,
        Err(why) => return println!("skipped: without_btf: {why}"),
    };
    assert_eq!(refused.status.code(), Some(3));
    let said = text(&refused.stderr);
    assert!(said.contains("CONFIG_DEBUG_INFO_BTF"), "{said}");
    assert_eq!(served.status.code(), Some(0), "{}", text(&served.stderr));
    let served: Value = serde_json::from_slice(&served.stdout).unwrap();
    let source = served["summary"]["source"].as_str().unwrap();
    assert!(["tracefs", "proc"].contains(&source), "{source}");
}

/// Check that on a machine without tracefs the message has the mount command.
#[test]
fn tells_how_to_mount() {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let places = [c"/sys/kernel/tracing", c"/sys/kernel/debug"];
    let ran = with_mounted(c"tmpfs", &places, || {
        Ok(noise(&["--source", "tracefs", "-d", "10ms"]).output().unwrap())
    });
    match ran {
        Ok(output) => {
            assert_eq!(output.status.code(), Some(3));
            let said = text(&output.stderr);
            assert!(said.contains("mount -t tracefs"), "{said}");
        }
        Err(why) => println!("skipped: tells_how_to_mount: {why}"),
    }
}
