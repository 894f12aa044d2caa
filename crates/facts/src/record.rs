//! Recording a tree: every file facts are read from, without what is nobody's business.
//!
//! Values of boot parameters are kept where they are known to be no secret; messages of
//! the kernel, mounts and lines of `/proc/self` where facts use them; and nothing that
//! says who built the kernel. Other files are kept whole. A tree also holds the counters
//! the measurements read, as examples.
//!
//! Cannot see a secret in a file that is kept whole; all of those are the kernel's own,
//! beside `/etc/os-release`.

use std::cell::Cell;
use std::path::Path;

use crate::error::Error;
use crate::format::command_line::{self, CommandLine};
use crate::format::cpu_times::CpuTimes;
use crate::format::cpuinfo;
use crate::format::interrupts::Interrupts;
use crate::format::kernel_log;
use crate::format::mounts;
use crate::format::softirqs::Softirqs;
use crate::group::sched_debug;
use crate::parameters;
use crate::tree::root::Root;
use crate::{Facts, group::preempt};

/// What facts look for in the kernel's messages, beside boot parameters.
const MESSAGES: &[&str] = &[
    preempt::SAID,
    "Housekeeping: ",
    "tsc: ",
    "Refined TSC clocksource calibration",
    "MHz processor",
    "timer(s) running at",
    "Hypervisor detected",
    "stealtime: cpu 0",
    "using stolen time PV",
    "Kernel is locked down",
];

/// The lines of `/proc/self/status` that facts use.
const STATUS: &[&str] =
    &["Uid:", "CapEff:", "CapPrm:", "CapBnd:", "Cpus_allowed:", "Cpus_allowed_list:"];

/// Writes the tree of files facts are read from below `dir`, which must not exist yet or
/// be empty. Gives the number of files.
///
/// # Errors
/// `Kind::Record` where a file cannot be written.
pub fn record(root: &Root, dir: &Path) -> Result<usize, Error> {
    let _ = Facts::read(root);
    for file in [Interrupts::FILE, Softirqs::FILE, CpuTimes::FILE] {
        // Where it cannot be read, the tree says so too.
        let _ = root.bytes(file);
    }
    let files = Cell::new(0);
    root.record(dir, |path, bytes| {
        files.set(files.get() + 1);
        redacted(path, bytes)
    })?;
    Ok(files.get())
}

/// A file's bytes as they may be kept.
fn redacted(path: &str, bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let kept: String = match path {
        command_line::FILE => {
            let line = CommandLine::parse(&text);
            let shown: Vec<String> = line.parameters().map(parameters::shown).collect();
            shown.join(" ") + "\n"
        }
        kernel_log::FILE => text.lines().filter_map(kept_record).collect(),
        "/proc/self/status" => {
            lines(&text, |line| STATUS.iter().any(|name| line.starts_with(name)))
        }
        "/proc/self/cgroup" => lines(&text, is_cpuset),
        "/proc/version" => without_builder(&text),
        // What follows are the tasks on each CPU, by name.
        path if sched_debug::FILES.contains(&path) => {
            text.split("\ncpu#").next().unwrap_or_default().to_owned()
        }
        mounts::FILE => mounts::kept(&text),
        cpuinfo::FILE => cpuinfo::kept(&text),
        _ => return bytes.to_vec(),
    };
    kept.into_bytes()
}

fn lines(text: &str, used: impl Fn(&str) -> bool) -> String {
    text.lines().filter(|line| used(line)).flat_map(|line| [line, "\n"]).collect()
}

/// Whether a line of `/proc/self/cgroup` is of the hierarchy cpusets may be in: v2, whose
/// controllers have no name there, or v1's own.
fn is_cpuset(line: &str) -> bool {
    let mut controllers = line.split(':').nth(1).unwrap_or_default().split(',');
    controllers.any(|name| name.is_empty() || name == "cpuset")
}

/// `/proc/version` without the user and the host the kernel was built by.
fn without_builder(text: &str) -> String {
    let builder = text.split_once(" (").and_then(|(before, rest)| {
        let (builder, after) = rest.split_once(')')?;
        builder.contains('@').then(|| format!("{before} (...){after}"))
    });
    builder.unwrap_or_else(|| text.to_owned())
}

/// One of the kernel's messages as it may be kept. Of the first one, which shows that
/// none is missing, only that it was there.
fn kept_record(line: &str) -> Option<String> {
    let record = kernel_log::record(line)?;
    let head = line.strip_suffix(record.message)?;
    if let Some(message) = disowned(record.message) {
        return Some(format!("{head}{message}\n"));
    }
    let whole_line = record.message.contains("ommand line: ");
    if !whole_line && MESSAGES.iter().any(|used| record.message.contains(used)) {
        return Some(format!("{line}\n"));
    }
    (record.sequence == 0).then(|| format!("{head}(not kept)\n"))
}

/// The message that lists the parameters the kernel does not know, without values that
/// may be secrets.
fn disowned(message: &str) -> Option<String> {
    let list = message.strip_prefix(kernel_log::DISOWNED)?;
    let (list, after) = match list.rsplit_once('"') {
        Some((list, after)) => (list, format!("\"{after}")),
        None => (list, String::new()),
    };
    let shown: Vec<String> =
        CommandLine::parse(list).parameters().map(parameters::shown).collect();
    Some(format!("{}{}{after}", kernel_log::DISOWNED, shown.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(path: &str, text: &str) -> String {
        String::from_utf8(redacted(path, text.as_bytes())).unwrap()
    }

    /// Check that no value of an unknown parameter and nothing meant for the first
    /// process is kept.
    #[test]
    fn the_command_line_keeps_no_secret() {
        let line = kept("/proc/cmdline", "nohz_full=1 key=secret -- token=secret\n");
        assert_eq!(line, "nohz_full=1 key=...\n");
    }

    /// Check that only messages that facts use are kept, and no command line in them.
    #[test]
    fn messages_keep_no_secret() {
        let log = "5,0,0,-;Linux version 6.1 (me@home)\n6,1,0,-;Command line: key=secret\n \
                   DEVICE=+pci\n6,2,0,-;tsc: Detected 2596 MHz processor\n5,3,0,-;Unknown \
                   kernel command line parameters \"key=secret\", will be passed to user \
                   space.\n";
        let expected = "5,0,0,-;(not kept)\n6,2,0,-;tsc: Detected 2596 MHz processor\n\
                        5,3,0,-;Unknown kernel command line parameters \"key=...\", will \
                        be passed to user space.\n";
        assert_eq!(kept("/dev/kmsg", log), expected);
    }

    /// Check that neither who built the kernel nor groups facts do not use are kept.
    #[test]
    fn names_are_not_kept() {
        let version = "Linux version 6.1.0 (me@home) (gcc (GCC) 12) #1 SMP\n";
        let expected = "Linux version 6.1.0 (...) (gcc (GCC) 12) #1 SMP\n";
        assert_eq!(kept("/proc/version", version), expected);
        assert_eq!(kept("/proc/version", expected), expected);
        let groups = "9:memory:/customer\n3:cpu,cpuset:/a\n0::/b\n";
        assert_eq!(kept("/proc/self/cgroup", groups), "3:cpu,cpuset:/a\n0::/b\n");
    }

    /// Check that of the process's state only what facts use is kept.
    #[test]
    fn status_keeps_what_is_used() {
        let text = "Name:\tnoisefloor\nUid:\t0\t0\t0\t0\nCpus_allowed_list:\t0-1\n";
        let expected = "Uid:\t0\t0\t0\t0\nCpus_allowed_list:\t0-1\n";
        assert_eq!(kept("/proc/self/status", text), expected);
        assert_eq!(kept("/proc/stat", "whole\n"), "whole\n");
    }
}
