//! Restricted environments: missing privileges or system calls, a CPU on which another
//! noisefloor measures.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::install::install;
use crate::tool::{
    UNPRIVILEGED, first_cpu, is_root, json, public_tool, run, spawn, text, tool, tool_on,
    turn, unprivileged, wait_for_spinners,
};

/// A short run on one CPU.
const SHORT: [&str; 4] = ["noise", "-d", "100ms", "-c"];

fn short(cpu: &str) -> Output {
    tool(&SHORT).arg(cpu).output().unwrap()
}

fn doubts(output: &Output) -> (Value, Vec<String>) {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    let doubts = object["doubts"].as_array().unwrap().iter();
    let doubts = doubts.map(|doubt| doubt["code"].as_str().unwrap().to_owned());
    let doubts = doubts.collect();
    (object, doubts)
}

fn other_cpu(first: &str) -> Option<String> {
    let facts = json(&["facts", "--json"]);
    let allowed = facts["facts"]["cpus"]["allowed"].as_str().unwrap().to_owned();
    let last = allowed.split(['-', ',']).next_back().unwrap().to_owned();
    (last != first).then_some(last)
}

/// A run of an hour on one CPU, ended on drop.
struct Endless(Child);

impl Endless {
    fn on(cpu: &str) -> Self {
        let child = spawn(&["noise", "-d", "1h", "-c", cpu]);
        wait_for_spinners(&child, 1);
        Self(child)
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Check that a CPU in use is refused with the process that uses it, that another one is not,
/// and that it is free again as soon as that process was killed.
#[test]
fn one_noise_for_each_cpu() {
    let _turn = turn();
    let cpu = first_cpu();
    let first = Endless::on(&cpu);
    let refused = short(&cpu);
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused.stderr));
    let said = text(&refused.stderr);
    assert!(said.contains(&format!("process {} (", first.0.id())), "{said}");
    match other_cpu(&cpu) {
        None => println!("skipped: one_noise_for_each_cpu, its half: there is one CPU"),
        Some(other) => assert_eq!(short(&other).status.code(), Some(0)),
    }
    drop(first);
    assert_eq!(short(&cpu).status.code(), Some(0));
}

/// Check that `--wait` waits for a CPU, reports it, and then measures.
#[test]
fn waits_for_a_cpu() {
    let _turn = turn();
    let cpu = first_cpu();
    let first = Endless::on(&cpu);
    let mut second = spawn(&["noise", "-d", "100ms", "--wait", "-c", &cpu]);
    let mut lines = BufReader::new(second.stderr.take().unwrap()).lines();
    let said = lines.next().unwrap().unwrap();
    assert!(said.contains(&format!("process {} (", first.0.id())), "{said}");
    assert!(second.try_wait().unwrap().is_none());
    drop(first);
    assert_eq!(second.wait().unwrap().code(), Some(0));
}

/// Check that the claim of a user who is neither root nor the same user is a doubt, and that
/// root's is respected by that user.
#[test]
fn other_users_claims_are_doubts() {
    let _turn = turn();
    if !is_root() {
        println!("skipped: other_users_claims_are_doubts: it takes root");
        return;
    }
    let (cpu, dir) = (first_cpu(), tempfile::tempdir().unwrap());
    let copy = public_tool(dir.path());
    let mut other = unprivileged(&copy);
    other.args(["noise", "-d", "1h", "-c", &cpu]).stdout(Stdio::null());
    let other = Endless(other.spawn().unwrap());
    wait_for_spinners(&other.0, 1);
    let output = tool(&SHORT).args([&cpu, "--json"]).output().unwrap();
    let (object, codes) = doubts(&output);
    assert!(codes.contains(&"claimed_by_other".to_owned()), "{codes:?}");
    let said = object["doubts"].to_string();
    assert!(said.contains(&format!("process {} (", other.0.id())), "{said}");
    assert!(said.contains(&format!("user {UNPRIVILEGED}")), "{said}");
    drop(other);
    let first = Endless::on(&cpu);
    let refused = unprivileged(&copy).args(SHORT).arg(&cpu).output().unwrap();
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused.stderr));
    drop(first);
}

/// Check that a usage error is reported as such if another noisefloor has the CPU, and if the
/// CPU is not in this process's affinity mask.
#[test]
fn mistakes_go_first() {
    let _turn = turn();
    let cpu = first_cpu();
    let other = other_cpu(&cpu);
    let first = Endless::on(&cpu);
    let mistakes = [
        &["noise", "-d", "0", "-c"][..],
        &["check", "-d", "0", "-c"],
        &["slices", "-d", "0", "-c"],
        &["latency", "-d", "0", "-c"],
        &["jitter", "-d", "0", "-a"],
        &["nohz", "test", "--observe", "1ns", "-a"],
        &["ticks", "-i", "0", "-c"],
        &["wakers", "-d", "0", "-c"],
    ];
    for mistake in mistakes {
        let mut asked = tool(mistake);
        let output = asked.arg(&cpu).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{mistake:?}");
        let said = text(&output.stderr);
        assert!(said.contains("between 1 ms and 30 days"), "{said}");
        if let Some(other) = &other {
            let output = tool_on(other, mistake).arg(&cpu).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{mistake:?} elsewhere");
        }
    }
    drop(first);
}

/// Check that without privileges noise is measured, that the missing attribution is reported
/// with the remedy, and that an explicitly requested source is an error.
#[test]
fn blame_needs_privileges() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let tool = public_tool(dir.path());
    let ask = |more: &[&str]| {
        unprivileged(&tool).args(SHORT).arg(first_cpu()).args(more).output().unwrap()
    };
    let (object, codes) = doubts(&ask(&["--json"]));
    if object["summary"]["source"] != "proc" {
        println!("skipped: blame_needs_privileges: this machine lets everyone watch");
        return;
    }
    assert!(codes.contains(&"untraced".to_owned()), "{codes:?}");
    for insisting in [&["--source", "bpf"][..], &["--stop-above", "1s"]] {
        let refused = ask(insisting);
        assert_eq!(refused.status.code(), Some(3), "{insisting:?}");
        let said = text(&refused.stderr);
        assert!(said.contains("CAP_BPF and CAP_PERFMON"), "{said}");
    }
    let (object, codes) = doubts(&ask(&["--source", "proc", "--json"]));
    assert_eq!(object["summary"]["source"], "proc");
    assert!(!codes.contains(&"untraced".to_owned()), "{codes:?}");
}

/// Check that a filter that refuses bpf(2) is named, and that the next best source is used.
#[test]
fn a_filter_refuses_bpf() {
    let _turn = turn();
    if !is_root()
        || run(&["noise", "-d", "1ms", "--source", "bpf"]).status.code() == Some(3)
    {
        println!("skipped: a_filter_refuses_bpf: eBPF is not possible without one");
        return;
    }
    let cpu = first_cpu();
    let mut command = tool(&SHORT);
    let refused = filtered(command.args([&cpu, "--source", "bpf"])).output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    assert!(text(&refused.stderr).contains("seccomp"), "{}", text(&refused.stderr));
    let mut command = tool(&SHORT);
    let served = filtered(command.args([&cpu, "--json"])).output().unwrap();
    let (object, _) = doubts(&served);
    assert!(["tracefs", "proc"].contains(&object["summary"]["source"].as_str().unwrap()));
}

/// The command, with a filter that refuses bpf(2).
fn filtered(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec only system calls are made.
    unsafe { command.pre_exec(refuse_bpf) }
}

/// Allows every system call except bpf(2) (`man 2 seccomp`).
fn refuse_bpf() -> std::io::Result<()> {
    let call = u32::try_from(libc::SYS_bpf).unwrap_or(u32::MAX);
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
    let step = |code: u32, jf: u8, k: u32| libc::sock_filter {
        code: u16::try_from(code).unwrap_or(0),
        jt: 0,
        jf,
        k,
    };
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0), // the call's number
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, call),
        step(libc::BPF_RET | libc::BPF_K, 0, refused),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
    // SAFETY: the program outlives the call, which copies it; it ends in every case.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ) != 0
    };
    if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Check that a user cannot choose the state directory of a program with file capabilities: a
/// journal of that user is not read.
#[test]
fn privileged_programs_ignore_the_variable() {
    let dir = tempfile::tempdir().unwrap();
    let program = public_tool(dir.path());
    let set = Command::new("setcap").arg("cap_sys_nice+ep").arg(&program).status();
    if !is_root() || !set.is_ok_and(|status| status.success()) {
        println!(
            "skipped: privileged_programs_ignore_the_variable: it takes root, and setcap(8)"
        );
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let journal = state.path().join("journal.json");
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let entry = serde_json::json!({
        "setting": {"file": "/proc/irq/4000000/smp_affinity_list"}, "old": "0", "new": ["1"],
        "holders": [], "pid": 1, "time_s": 0, "boot_id": boot_id.trim(),
    });
    let page = serde_json::json!({"format": 1, "changes": [entry]});
    fs::write(&journal, page.to_string()).unwrap();
    for path in [state.path(), &journal] {
        std::os::unix::fs::chown(path, Some(UNPRIVILEGED), None).unwrap();
    }
    let run = |program: &Path| {
        let mut restore = unprivileged(program);
        restore.arg("restore").env("HOME", dir.path());
        restore.env("NOISEFLOOR_STATE", state.path());
        text(&restore.output().unwrap().stdout)
    };
    // Root's runs may have left settings; that is reported, too.
    let said = run(&program).to_lowercase();
    assert!(said.contains("nothing to restore"), "{said}");
    let plain = dir.path().join("plain");
    install(&program, &plain);
    assert!(run(&plain).contains("4000000"));
}
