//! Child processes, and what this process has as one: they are killed with this process, limited in the size of their files, or run
//! with a fixed order of their threads.
//!
//! `prctl(2)` `PR_SET_PDEATHSIG` refers to the thread that starts the process: that thread must
//! live as long as the process is needed. `setrlimit(2)` `RLIMIT_FSIZE`. `signal-hook` cannot ignore
//! SIGTTOU: it only installs handlers, which exec resets.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Resource, Rlimit, setrlimit};
use units::{Cpu, CpuSet};

use crate::error::Error;
use crate::program::supervisor::{checked, end_with};
use crate::thread::{mask_of, outrank, pin_to, set_affinity, set_fifo};

/// The `SCHED_FIFO` priority of the first thread.
const FIRST: u8 = 1;

/// Lets the kernel kill the command's process when the calling thread ends for any reason, excludes
/// it from Ctrl-C, and lets it write to any terminal. With `file_bytes_max`, writing a longer file
/// ends it with `SIGXFSZ`.
pub fn tether(command: &mut Command, file_bytes_max: Option<u64>) {
    let parent = std::process::id();
    command.process_group(0);
    // SAFETY: between fork and exec, only async-signal-safe calls are made, and no memory is
    // allocated.
    unsafe { command.pre_exec(move || bind(parent, file_bytes_max)) };
}

/// Takes the standard input of this process, which is empty from then on, also for the processes that it
/// starts.
///
/// # Errors
/// There are too many open files.
pub fn take_stdin() -> io::Result<OwnedFd> {
    let taken = rustix::io::fcntl_dupfd_cloexec(io::stdin(), libc::STDERR_FILENO + 1)?;
    let empty = File::open("/dev/null")?;
    // SAFETY: takes numbers only. Rust assumes that standard input stays open, which it does.
    checked(unsafe { libc::dup2(empty.as_raw_fd(), libc::STDIN_FILENO) })?;
    Ok(taken)
}

/// Gives the command's threads a fixed order on one CPU: the first thread preempts the threads
/// that it starts whenever it is runnable, and runs until it sleeps. So the points at which it runs
/// depend only on the program, and not on other load of this machine.
///
/// Starting the command fails if [`may_order_threads`] does, or if the CPU is not allowed.
pub fn order_threads(command: &mut Command, cpu: Cpu) {
    let mask = mask_of(&cpu.into());
    let bind = move || set_affinity(&mask).and_then(|()| set_fifo(FIRST));
    // SAFETY: between fork and exec, only async-signal-safe calls are made, and no memory is
    // allocated.
    unsafe { command.pre_exec(bind) };
}

/// Checks whether [`order_threads`] is permitted.
///
/// # Errors
/// `Kind::Privilege` without `CAP_SYS_NICE` or a sufficient `RLIMIT_RTPRIO`.
pub fn may_order_threads() -> Result<(), Error> {
    may_outrank(FIRST)
}

/// Checks whether this process may give a child this `SCHED_FIFO` priority.
///
/// # Errors
/// `Kind::Privilege` without `CAP_SYS_NICE` or a sufficient `RLIMIT_RTPRIO`.
pub fn may_outrank(priority: u8) -> Result<(), Error> {
    try_in_thread(move || outrank(priority))
}

/// Checks whether this process may restrict a child to these CPUs.
///
/// # Errors
/// `Kind::Cpuset` if the kernel allows none of them.
pub fn may_have(cpus: &CpuSet) -> Result<(), Error> {
    let cpus = cpus.clone();
    try_in_thread(move || pin_to(&cpus))
}

/// Calls a function in a separate thread, so that its effects on the thread end with it.
fn try_in_thread(
    what: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> Result<(), Error> {
    let tried = std::thread::spawn(what).join();
    tried.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn bind(parent: u32, file_bytes_max: Option<u64>) -> io::Result<()> {
    end_with(parent, libc::SIGKILL)?;
    // In a process group of its own, it would be stopped when it writes to a terminal with
    // `stty tostop`.
    // SAFETY: takes numbers only, and no handler is given.
    unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
    if let Some(most) = file_bytes_max {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(Resource::Fsize, limit)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    /// Check that a process is killed when the thread that started it ends.
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

    /// Check that SIGTTOU is ignored, so that writing to a terminal does not stop a process.
    #[test]
    fn writes_to_any_terminal() {
        let mut grep = Command::new("grep");
        tether(grep.args(["SigIgn", "/proc/self/status"]), None);
        let output = String::from_utf8(grep.output().unwrap().stdout).unwrap();
        let ignored = output.split_whitespace().nth(1).unwrap();
        let ignored = u64::from_str_radix(ignored, 16).unwrap();
        assert!(ignored >> (libc::SIGTTOU - 1) & 1 == 1, "{output}");
    }

    /// Check that the process with ordered threads has its CPU and policy, and its child does not
    /// have the policy.
    #[test]
    fn orders_threads() {
        if let Err(why) = may_order_threads() {
            println!("skipped: orders_threads: {why}");
            return;
        }
        let facts = facts::Facts::read(&facts::Root::live());
        let cpu = facts.cpus.allowed.get().unwrap().iter().last().unwrap();
        // The policy is the 41st field of stat(5); the name in parentheses is one word here.
        let script = "cut -d' ' -f41 /proc/$$/stat; cut -d' ' -f41 /proc/self/stat; \
                      sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status";
        let mut shell = Command::new("sh");
        order_threads(shell.args(["-c", script]), cpu);
        let output = String::from_utf8(shell.output().unwrap().stdout).unwrap();
        let words: Vec<&str> = output.lines().collect();
        assert_eq!(words, ["1", "0", &cpu.to_string()]);
    }

    /// Check that a process that writes too much is ended, with its file at the maximum size.
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
