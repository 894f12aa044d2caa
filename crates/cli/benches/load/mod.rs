//! A load of many context switches, hackbench (rt-tests), and the CPU time of processes.

use std::error::Error;
use std::process::Command;
use std::time::Duration;

/// The work: groups of 40 threads that send each other messages.
pub(crate) const WORK: [&str; 6] = ["--pipe", "-g", "2", "-l", "1500", "-T"];

/// Whether hackbench is installed.
pub(crate) fn is_installed() -> bool {
    Command::new("hackbench").arg("-h").output().is_ok()
}

/// Works once; the CPU time in seconds.
pub(crate) fn work() -> Result<f64, Box<dyn Error>> {
    let before = seconds_of_children();
    if !Command::new("hackbench").args(WORK).output()?.status.success() {
        return Err("hackbench failed".into());
    }
    Ok(seconds_of_children() - before)
}

/// The CPU time of the children that have ended, and of theirs.
pub(crate) fn seconds_of_children() -> f64 {
    // SAFETY: plain numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: it writes to the structure only.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|time| time.tv_sec as f64 + time.tv_usec as f64 / 1e6)
        .sum()
}

/// The CPU time of a running process (`/proc/PID/task/TID/schedstat`).
pub(crate) fn own_seconds(pid: u32) -> Result<f64, Box<dyn Error>> {
    let mut ns = 0_u64;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let counts = std::fs::read_to_string(task?.path().join("schedstat"))?;
        ns += counts.split(' ').next().unwrap_or("0").parse::<u64>()?;
    }
    Ok(Duration::from_nanos(ns).as_secs_f64())
}
