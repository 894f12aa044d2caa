//! Processes that this one starts and answers for: they end with it, cannot fill a disk, or
//! where that matters, their threads take turns.
//!
//! `prctl(2)` `PR_SET_PDEATHSIG` is tied to the thread that starts the process: that
//! thread must live as long as the process is needed. `setrlimit(2)` `RLIMIT_FSIZE`.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{
    Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit,
};
use units::{Cpu, CpuSet};

use crate::error::Error;
use crate::thread::{mask, outrank, pin_to, set_affinity, set_fifo};

/// The first thread's priority among those that take turns.
const FIRST: u8 = 1;

/// Lets the command's process be killed when the calling thread ends, however it does,
/// keeps Ctrl-C from it, and lets it write to any terminal, but, where `file_bytes_max` is
/// given, no file that is longer: the attempt ends it with `SIGXFSZ`.
pub fn tether(command: &mut Command, file_bytes_max: Option<u64>) {
    let parent = std::process::id();
    command.process_group(0);
    // SAFETY: between fork and exec only async-signal-safe calls are made, on memory that
    // was there before.
    unsafe { command.pre_exec(move || bind(parent, file_bytes_max)) };
}

/// Lets the command's threads take turns on one CPU: the first one goes before those that
/// it starts whenever it has something to do, and until it waits again. So the moment at
/// which it comes between them depends on what they do, and not on what else this machine
/// does.
///
/// Starting it fails where [`may_take_turns`] says so, and where the CPU cannot be had.
pub fn take_turns(command: &mut Command, cpu: Cpu) {
    let mask = mask(cpu);
    let bind = move || set_affinity(&mask).and_then(|()| set_fifo(FIRST));
    // SAFETY: between fork and exec only async-signal-safe calls are made, on memory that
    // was there before.
    unsafe { command.pre_exec(bind) };
}

/// Whether this process may have another's threads take turns.
///
/// # Errors
/// `Kind::Privilege` without `CAP_SYS_NICE` or a sufficient `RLIMIT_RTPRIO`.
pub fn may_take_turns() -> Result<(), Error> {
    may_outrank(FIRST)
}

/// Whether this process may have another one `SCHED_FIFO` at that priority.
///
/// # Errors
/// `Kind::Privilege` without `CAP_SYS_NICE` or a sufficient `RLIMIT_RTPRIO`.
pub fn may_outrank(priority: u8) -> Result<(), Error> {
    tried(move || outrank(priority))
}

/// Whether this process may have another one on these CPUs.
///
/// # Errors
/// `Kind::Cpuset` where the kernel says that none of them may be used.
pub fn may_have(cpus: &CpuSet) -> Result<(), Error> {
    let cpus = cpus.clone();
    tried(move || pin_to(&cpus))
}

/// Tries something in a thread of its own, which ends with what it was given.
fn tried(what: impl FnOnce() -> Result<(), Error> + Send + 'static) -> Result<(), Error> {
    let tried = std::thread::spawn(what).join();
    tried.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn bind(parent: u32, file_bytes_max: Option<u64>) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // In a group of its own it would be stopped where it writes to a terminal that is set so
    // (stty tostop).
    // SAFETY: takes numbers only, and no handler is given.
    unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
    if let Some(most) = file_bytes_max {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(Resource::Fsize, limit)?;
    }
    // The parent may have ended before it could be tied to.
    if std::os::unix::process::parent_id() != parent {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    /// Check that a process ends with the thread that started it.
    #[test]
    fn ends_with_its_thread() {
        let start = || {
            let mut sleep = Command::new("sleep");
            tether(sleep.arg("1000"), None);
            sleep.spawn().unwrap()
        };
        let mut child = std::thread::spawn(start).join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }

    /// Check that a process is not stopped where it writes to a terminal that is set so.
    #[test]
    fn writes_to_any_terminal() {
        let mut grep = Command::new("grep");
        tether(grep.args(["SigIgn", "/proc/self/status"]), None);
        let output = String::from_utf8(grep.output().unwrap().stdout).unwrap();
        let ignored = output.split_whitespace().nth(1).unwrap();
        let ignored = u64::from_str_radix(ignored, 16).unwrap();
        assert!(ignored >> (libc::SIGTTOU - 1) & 1 == 1, "{output}");
    }

    /// Check that a process whose threads take turns is where it was put and comes before
    /// others, and that what it starts does not.
    #[test]
    fn takes_turns() {
        if let Err(why) = may_take_turns() {
            println!("skipped: takes_turns: {why}");
            return;
        }
        let facts = facts::Facts::read(&facts::Root::live());
        let cpu = facts.cpus.allowed.get().unwrap().iter().last().unwrap();
        // The policy is the 41st word of stat(5); the name in brackets is one word here.
        let script = "cut -d' ' -f41 /proc/$$/stat; cut -d' ' -f41 /proc/self/stat; \
                      sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status";
        let mut shell = Command::new("sh");
        take_turns(shell.args(["-c", script]), cpu);
        let output = String::from_utf8(shell.output().unwrap().stdout).unwrap();
        let words: Vec<&str> = output.lines().collect();
        assert_eq!(words, ["1", "0", &cpu.to_string()]);
    }

    /// Check that a process that writes too much is ended, its file as long as allowed.
    #[test]
    fn files_are_bounded() {
        let file = std::env::temp_dir().join(format!("tether-{}", std::process::id()));
        let mut fill = Command::new("sh");
        fill.args(["-c", "exec head -c 100000 /dev/zero >\"$0\""]).arg(&file);
        tether(&mut fill, Some(5000));
        let status = fill.status().unwrap();
        let length = std::fs::metadata(&file).unwrap().len();
        std::fs::remove_file(&file).unwrap();
        assert_eq!((status.signal(), length), (Some(libc::SIGXFSZ), 5000));
    }
}
