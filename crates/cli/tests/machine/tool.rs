//! noisefloor as a process: started, observed, signalled, and read.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::environment::{end_with_test, with_own_claims, with_usual_signals};
use crate::install::install;

pub(crate) const TOOL: &str = env!("CARGO_BIN_EXE_noisefloor");
/// A user without privileges, and not 65534, which may measure on this machine as well:
/// programs that ignore the environment (`AT_SECURE`) respect the claims of their own user.
pub(crate) const UNPRIVILEGED: u32 = 59_999;

pub(crate) fn tool(args: &[&str]) -> Command {
    with(Command::new(TOOL), args)
}

/// The same with those CPUs only.
pub(crate) fn tool_on(cpus: &str, args: &[&str]) -> Command {
    with(on(cpus, TOOL), args)
}

/// The same in the cgroup of that directory.
pub(crate) fn tool_in(cgroup: &Path, args: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    let enter = "echo $$ >\"$0/cgroup.procs\" && exec \"$@\"";
    shell.args(["-c", enter]).arg(cgroup).arg(TOOL);
    with(shell, args)
}

/// A program with those CPUs only.
pub(crate) fn on(cpus: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", cpus]).arg(program);
    command
}

fn with(mut tool: Command, args: &[&str]) -> Command {
    tool.args(args).stdin(Stdio::null()).env("LC_ALL", "C.UTF-8");
    with_own_claims(&mut tool);
    with_usual_signals(&mut tool);
    end_with_test(&mut tool, libc::SIGKILL);
    tool
}

pub(crate) fn run(args: &[&str]) -> Output {
    tool(args).output().unwrap()
}

pub(crate) fn json(args: &[&str]) -> Value {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn is_root() -> bool {
    // SAFETY: takes no arguments.
    unsafe { libc::geteuid() == 0 }
}

/// The program in a place where every user may run it: build directories may be closed to
/// others.
pub(crate) fn public_tool(dir: &Path) -> PathBuf {
    let copy = dir.join("noisefloor");
    install(TOOL, &copy);
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(dir, open).unwrap();
    copy
}

/// A command without any privilege.
pub(crate) fn unprivileged(tool: &Path) -> Command {
    let mut command = Command::new(tool);
    command.stdin(Stdio::null());
    with_own_claims(&mut command);
    if is_root() {
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    }
    command
}

pub(crate) fn spawn(args: &[&str]) -> Child {
    tool(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub(crate) fn pid(child: &Child) -> libc::pid_t {
    libc::pid_t::try_from(child.id()).unwrap()
}

pub(crate) fn signal(child: &Child, signal: libc::c_int) {
    // SAFETY: the child is ours and not yet waited for.
    assert_eq!(unsafe { libc::kill(pid(child), signal) }, 0);
}

/// Waits until something is so, for a minute at most.
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "no {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until each spinning thread of the process has run for much longer than it needs to
/// measure its pass, also on a busy machine, so that it spins.
pub(crate) fn wait_for_spinners(child: &Child, threads: usize) {
    wait_for_threads(|| Some(child.id()), "spin/", threads);
}

/// The same for threads whose names have that prefix, of a process that may not have started
/// yet.
pub(crate) fn wait_for_threads(
    process: impl Fn() -> Option<u32>,
    name_begins: &str,
    threads: usize,
) {
    let has_run = |task: &Path| -> Option<bool> {
        let name = fs::read_to_string(task.join("comm")).ok()?;
        let times = fs::read_to_string(task.join("schedstat")).ok()?;
        let ran: u64 = times.split_whitespace().next()?.parse().ok()?;
        Some(name.starts_with(name_begins) && ran > 500_000_000)
    };
    let running = || {
        let list = fs::read_dir(format!("/proc/{}/task", process()?)).ok()?;
        let tasks = list.filter_map(|entry| has_run(&entry.ok()?.path()));
        Some(tasks.filter(|&has_run| has_run).count())
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while running() != Some(threads) {
        assert!(Instant::now() < deadline, "no thread {name_begins} runs");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The processes that a process started.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let number: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(format!("/proc/{number}/status")).ok()?;
        let of = status.lines().find_map(|line| line.strip_prefix("PPid:\t"))?;
        (of.parse() == Ok(parent)).then_some(number)
    });
    processes.collect()
}

pub(crate) fn first_cpu() -> String {
    let facts = json(&["facts", "--json"]);
    let allowed = facts["facts"]["cpus"]["allowed"].as_str().unwrap().to_owned();
    allowed.split(['-', ',']).next().unwrap().to_owned()
}

/// A CPU can be claimed by one noisefloor at a time: tests that spin run one after the other,
/// and wait for real-time tasks of other users that end soon.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static CPUS: Mutex<()> = Mutex::new(());
    let turn = CPUS.lock().unwrap_or_else(PoisonError::into_inner);
    wait_for_others();
    turn
}

/// Waits until no real-time task of another user has a CPU, but only once for a task that does
/// not end.
fn wait_for_others() {
    static DO_NOT_END: AtomicBool = AtomicBool::new(false);
    let (cpus, began) = (isolate::allowed().unwrap(), Instant::now());
    while isolate::refuse_occupied(&cpus, Some(1)).is_err() {
        if DO_NOT_END.load(Ordering::Relaxed) || began.elapsed() > Duration::from_secs(60)
        {
            return DO_NOT_END.store(true, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
