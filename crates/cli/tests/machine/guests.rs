//! `guests` beside real QEMUs whose guests are stopped: which are found, and how they are named.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::tool::{
    TOOL, UNPRIVILEGED, is_root, json, public_tool, run, signal, spawn, text,
    unprivileged,
};

const QEMU: &str = "qemu-system-x86_64";
/// The longest wait for a process on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// A QEMU whose guest never starts; it ends with this value, or with the thread that made it.
struct Qemu(Child);

impl Qemu {
    /// Starts it and waits for the threads of its vCPUs; `None`, and why, without QEMU.
    fn start(name: &str, vcpus: usize) -> Option<Self> {
        let mut command = Command::new(QEMU);
        command.args(["-machine", "pc", "-accel", "tcg,thread=multi", "-S", "-m", "64"]);
        command.args(["-display", "none", "-nodefaults", "-no-user-config"]);
        command.args(["-name", name, "-smp", &vcpus.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        isolate::tether(&mut command, None);
        let Ok(child) = command.spawn() else {
            println!("skipped: {QEMU} is not installed");
            return None;
        };
        let qemu = Self(child);
        let is_named = name.contains("debug-threads=on");
        wait_for("the threads of QEMU", || match is_named {
            true => qemu.threads("CPU ") == vcpus,
            false => qemu.threads("") > vcpus,
        });
        Some(qemu)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// The number of threads whose names begin with that.
    fn threads(&self, begin: &str) -> usize {
        let list = fs::read_dir(format!("/proc/{}/task", self.pid()));
        let names = list.into_iter().flatten().flatten();
        let names =
            names.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|name| name.starts_with(begin)).count()
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_there() {
        assert!(Instant::now() < deadline, "waited for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The guest of a process in a list.
fn of_pid(list: &Value, pid: u32) -> Option<Value> {
    list.as_array().unwrap().iter().find(|guest| guest["pid"] == pid).cloned()
}

/// Check hundreds of vCPUs: all in JSON, few in the report; and a user without privileges sees the
/// same.
#[test]
fn hundreds_of_vcpus() {
    let Some(qemu) = Qemu::start("guest=many,debug-threads=on", 200) else { return };
    let object = json(&["guests", "-d", "100ms", "--json"]);
    let guest = of_pid(&object["summary"]["guests"], qemu.pid()).unwrap();
    assert_eq!((&guest["name"], &guest["vcpus"]), (&"many".into(), &200.into()));
    assert_eq!(
        (&guest["monitor"], &guest["accelerator"]),
        (&"qemu".into(), &"TCG".into())
    );
    let threads = guest["vcpu_threads"].as_array().unwrap();
    let numbers: Vec<u64> =
        threads.iter().map(|one| one["vcpu"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..200).collect::<Vec<u64>>());
    let output = run(&["guests", "-d", "100ms", "-n", "3"]);
    let report = text(&output.stdout);
    assert!(report.lines().all(|line| line.chars().count() <= 80), "{report}");
    assert!(report.lines().count() < 60, "{report}");
    let dir = tempfile::tempdir().unwrap();
    let mut command = unprivileged(&public_tool(dir.path()));
    let output = command.args(["guests", "-d", "100ms", "--json"]).output().unwrap();
    if output.status.code() != Some(0) {
        println!("skipped: hundreds_of_vcpus: {}", text(&output.stderr));
        return;
    }
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(of_pid(&object["summary"]["guests"], qemu.pid()).is_some());
}

/// Check that a guest's name controls no terminal, and is unchanged in JSON; and that a guest
/// without names of threads is found, with a doubt.
#[test]
fn hostile_names() {
    let name = "a\x1b[2J\nFORGED\u{202e}";
    let Some(named) = Qemu::start(&format!("guest={name},debug-threads=on"), 1) else {
        return;
    };
    let unnamed = Qemu::start("guest=plain\x1b[31m", 2).unwrap();
    let output = run(&["guests", "-d", "50ms", "-n", "1000"]);
    let report = text(&output.stdout);
    // Wide numbers cut the rest of the name.
    assert!(report.contains("a\\x1b[2J"), "{report}");
    assert!(!report.contains(['\x1b', '\u{202e}']), "{report}");
    assert!(!report.lines().any(|line| line.trim().starts_with("FORGED")), "{report}");
    let object = json(&["guests", "-d", "50ms", "--json"]);
    let guests = &object["summary"]["guests"];
    assert_eq!(of_pid(guests, named.pid()).unwrap()["name"], name);
    let plain = of_pid(guests, unnamed.pid()).unwrap();
    assert_eq!((&plain["vcpus"], &plain["vcpu_wakeups_hz"]), (&2.into(), &Value::Null));
    assert_eq!(plain["vcpu_threads"], serde_json::json!([]));
    let doubts = object["doubts"].as_array().unwrap();
    let unnamed = doubts.iter().find(|doubt| doubt["code"] == "threads_unnamed").unwrap();
    assert!(unnamed["text"].as_str().unwrap().contains("debug-threads=on"), "{unnamed}");
}

/// Check that guests that end and start during the measurement are reported as such, and that
/// Ctrl-C ends it with a result.
#[test]
fn ending_and_starting() {
    let Some(first) = Qemu::start("guest=first,debug-threads=on", 1) else { return };
    let stays = Qemu::start("guest=stays,debug-threads=on", 1).unwrap();
    if fs::read_to_string("/proc/self/wchan").is_err() {
        println!("skipped: ending_and_starting: no /proc/PID/wchan");
        return;
    }
    let child = spawn(&["guests", "-d", "1h", "--json", "--series"]);
    // Between the two readings, its first thread is in poll(2).
    let wchan = format!("/proc/{0}/task/{0}/wchan", child.id());
    let waits = || fs::read_to_string(&wchan).unwrap_or_default();
    wait_for("the first reading", || waits().contains("poll"));
    let ended = first.pid();
    drop(first);
    let second = Qemu::start("guest=second,debug-threads=on", 1).unwrap();
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    for of in ["series", "summary"] {
        assert_eq!(of_pid(&object[of]["ended"], ended).unwrap()["name"], "first");
        assert_eq!(
            of_pid(&object[of]["started"], second.pid()).unwrap()["name"],
            "second"
        );
        assert!(of_pid(&object[of]["guests"], stays.pid()).is_some());
        assert!(of_pid(&object[of]["guests"], second.pid()).is_none());
    }
    let codes: Vec<&Value> =
        object["doubts"].as_array().unwrap().iter().map(|doubt| &doubt["code"]).collect();
    assert!(codes.contains(&&"interrupted".into()), "{codes:?}");
    assert!(codes.contains(&&"unequal".into()), "{codes:?}");
}

/// Check the message and the exit code without a guest, in a PID namespace of its own.
#[test]
fn no_guests() {
    let mut command = Command::new("unshare");
    command.args([
        "--pid",
        "--fork",
        "--mount-proc",
        TOOL,
        "guests",
        "-d",
        "1",
        "--json",
    ]);
    let output = command.output();
    let Some(output) = output.ok().filter(|output| !denied(&output.stderr)) else {
        println!("skipped: no_guests: a PID namespace needs unshare(1) and root");
        return;
    };
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("found no guests"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
}

/// Check that noisefloor reports which processes are invisible if `/proc` hides those of other
/// users.
#[test]
fn hidden_processes() {
    let dir = tempfile::tempdir().unwrap();
    let tool = public_tool(dir.path());
    fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).unwrap();
    for (option, part) in [(1, "may not be examined"), (2, "are not visible")] {
        let Some(said) = with_hidepid(&tool, option) else { return };
        assert!(said.contains("found no guests"), "{said}");
        assert!(said.contains(part) && said.contains("hidepid="), "{said}");
        assert!(said.contains("as root"), "{said}");
    }
}

/// The error of a user without privileges with this option of `/proc`; `None`, with the reason
/// printed, if it cannot be mounted.
fn with_hidepid(tool: &Path, option: u32) -> Option<String> {
    let user = format!("--reuid {UNPRIVILEGED} --regid {UNPRIVILEGED} --clear-groups");
    let script = format!(
        "mount -t proc -o hidepid={option} proc /proc || exit 99\n\
         exec setpriv {user} {} guests -d 100ms",
        tool.display()
    );
    let mut command = Command::new("unshare");
    let output = command.args(["--mount", "sh", "-c", &script]).output();
    let output = output.ok().filter(|output| output.status.code() != Some(99));
    let Some(output) = output.filter(|output| is_root() && !denied(&output.stderr))
    else {
        println!("skipped: hidden_processes: mounting /proc needs unshare(1) and root");
        return None;
    };
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    Some(text(&output.stderr))
}

/// Whether unshare(1) or setpriv(1) was refused.
fn denied(stderr: &[u8]) -> bool {
    let said = text(stderr);
    said.contains("unshare:") || said.contains("setpriv:") || said.contains("not found")
}
