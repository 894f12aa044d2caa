//! Settings are restored however a run ends; and the tick of a `nohz_full` CPU really stops. On
//! this machine, and as a static program in guests (`tests/lab/isolated.rs`), where the program
//! is in the root directory.
//!
//! These tests change settings of the machine that they run on, one test at a time.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../shared/environment.rs"]
mod environment;
#[path = "../shared/install.rs"]
mod install;
mod kills;
mod nohz;
mod offline;
mod proving;
mod required;
mod settings;
#[path = "../shared/settings_lock.rs"]
mod settings_lock;
mod spinning;
mod state;
mod storms;
mod trying;
mod tuning;

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use environment::{end_with_test, with_own_claims, with_usual_signals};
use settings_lock::lock_settings;

/// The path of the program in a guest.
const IN_GUEST: &str = "/noisefloor";

/// The program.
fn tool(args: &[&str]) -> Command {
    let built = env!("CARGO_BIN_EXE_noisefloor");
    let tool = if Path::new(IN_GUEST).exists() { IN_GUEST } else { built };
    let mut command = Command::new(tool);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    with_own_claims(&mut command);
    with_usual_signals(&mut command);
    // It restores the settings that it has changed.
    end_with_test(&mut command, libc::SIGTERM);
    command
}

/// Its output and exit status.
fn output(args: &[&str]) -> Output {
    tool(args).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// One test at a time uses the machine; a guest is set up first.
fn alone() -> (Option<File>, MutexGuard<'static, ()>) {
    static MACHINE: Mutex<()> = Mutex::new(());
    let alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let is_in_guest = Path::new(IN_GUEST).exists();
    let others = if is_in_guest { None } else { lock_settings() };
    let groups = Path::new("/sys/fs/cgroup");
    if is_in_guest && !groups.join("cgroup.procs").exists() {
        std::fs::create_dir_all(std::env::temp_dir()).unwrap();
        let (kind, place) = (c"cgroup2".as_ptr(), c"/sys/fs/cgroup".as_ptr());
        // SAFETY: the texts end with zeros, and live for ever.
        let failed = unsafe { libc::mount(kind, place, kind, 0, std::ptr::null()) };
        assert_eq!(failed, 0, "{}", std::io::Error::last_os_error());
    }
    (others, alone)
}

/// The CPU that is isolated: the last one; `None`, with the reason printed, if settings may not
/// be changed.
fn cpu(test: &str) -> Option<String> {
    let facts = facts::Facts::read(&facts::Root::live());
    let cpus = facts.cpus.online.get().unwrap();
    // SAFETY: takes nothing.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root || cpus.len() < 2 {
        println!("skipped: {test}: it takes root, and two CPUs");
        return None;
    }
    cpus.iter().last().map(|cpu| cpu.to_string())
}
