//! Recording a tree: the files that facts are read from, without private data.
//!
//! Stored are the values of boot parameters that are known not to be secret; those kernel messages,
//! mounts and lines of `/proc/self` that facts use; and no names of the user and host that built
//! the kernel. Other files are stored completely: they are the kernel's own, except for
//! `/etc/os-release`. A tree also has the counters that the measurements read, as examples, and the
//! names and process IDs of those processes that limit the CPU latency.

use std::cell::Cell;
use std::os::fd::AsFd;
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
use crate::near;
use crate::parameters;
use crate::tree::root::Root;
use crate::{Facts, group::preempt};

/// The kernel messages that facts use, in addition to those about boot parameters.
const MESSAGES: &[&str] = &[
    preempt::MODEL_MESSAGE,
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

/// Records the files that facts are read from in an open folder, which must be empty; `dir` is its
/// path, for messages. Returns the number of files.
///
/// # Errors
/// `Kind::Record` if a file cannot be written.
pub fn record(root: &Root, dir: &Path, folder: impl AsFd) -> Result<usize, Error> {
    let _ = Facts::read(root);
    for file in [Interrupts::FILE, Softirqs::FILE, CpuTimes::FILE] {
        // If it cannot be read, the tree has the reason.
        let _ = root.bytes(file);
    }
    near::read_all(root);
    let files = Cell::new(0);
    root.record(dir, folder, |path, bytes| {
        files.set(files.get() + 1);
        redact(path, bytes)
    })?;
    Ok(files.get())
}

/// The contents of a file without private data.
fn redact(path: &str, bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let text: String = match path {
        command_line::FILE => {
            let line = CommandLine::parse(&text);
            let parameters: Vec<String> =
                line.parameters().map(parameters::redact).collect();
            parameters.join(" ") + "\n"
        }
        kernel_log::FILE => text.lines().filter_map(redact_record).collect(),
        "/proc/self/status" => {
            lines(&text, |line| STATUS.iter().any(|name| line.starts_with(name)))
        }
        "/proc/self/cgroup" => lines(&text, is_used_cgroup),
        "/proc/version" => without_builder(&text),
        // The tasks of each CPU follow, with their names.
        path if sched_debug::FILES.contains(&path) => {
            text.split("\ncpu#").next().unwrap_or_default().to_owned()
        }
        mounts::FILE => mounts::redact(&text),
        cpuinfo::FILE => cpuinfo::redact(&text),
        _ => return bytes.to_vec(),
    };
    text.into_bytes()
}

fn lines(text: &str, used: impl Fn(&str) -> bool) -> String {
    text.lines().filter(|line| used(line)).flat_map(|line| [line, "\n"]).collect()
}

/// Whether a line of `/proc/self/cgroup` belongs to the v2 hierarchy, which lists no controllers
/// there, or to a v1 hierarchy with the controller of cpusets or of CPU time.
fn is_used_cgroup(line: &str) -> bool {
    let mut controllers = line.split(':').nth(1).unwrap_or_default().split(',');
    controllers.any(|name| ["", "cpuset", "cpu"].contains(&name))
}

/// `/proc/version` without the user and host that built the kernel.
fn without_builder(text: &str) -> String {
    let builder = text.split_once(" (").and_then(|(before, rest)| {
        let (builder, after) = rest.split_once(')')?;
        builder.contains('@').then(|| format!("{before} (...){after}"))
    });
    builder.unwrap_or_else(|| text.to_owned())
}

/// A kernel message without private data. The first message, which shows that none is missing, is
/// stored without its text unless facts use it.
fn redact_record(line: &str) -> Option<String> {
    let record = kernel_log::record(line)?;
    let head = line.strip_suffix(record.message)?;
    if let Some(message) = redact_unknown_parameters(record.message) {
        return Some(format!("{head}{message}\n"));
    }
    let whole_line = record.message.contains("ommand line: ");
    if !whole_line && MESSAGES.iter().any(|used| record.message.contains(used)) {
        return Some(format!("{line}\n"));
    }
    (record.sequence == 0).then(|| format!("{head}(not recorded)\n"))
}

/// The message with the parameters that the kernel does not know, without values that may be
/// secret.
fn redact_unknown_parameters(message: &str) -> Option<String> {
    let list = message.strip_prefix(kernel_log::UNKNOWN_PARAMETERS)?;
    let (list, after) = match list.rsplit_once('"') {
        Some((list, after)) => (list, format!("\"{after}")),
        None => (list, String::new()),
    };
    let parameters: Vec<String> =
        CommandLine::parse(list).parameters().map(parameters::redact).collect();
    Some(format!("{}{}{after}", kernel_log::UNKNOWN_PARAMETERS, parameters.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(path: &str, text: &str) -> String {
        String::from_utf8(redact(path, text.as_bytes())).unwrap()
    }

    /// Check that values of unknown parameters, and arguments of init, are not recorded.
    #[test]
    fn secrets_of_the_command_line() {
        let line = recorded("/proc/cmdline", "nohz_full=1 key=secret -- token=secret\n");
        assert_eq!(line, "nohz_full=1 key=...\n");
    }

    /// Check that only messages that facts use are recorded, and not the command line.
    #[test]
    fn secrets_of_messages() {
        let log = "5,0,0,-;Linux version 6.1 (me@home)\n6,1,0,-;Command line: key=secret\n \
                   DEVICE=+pci\n6,2,0,-;tsc: Detected 2596 MHz processor\n5,3,0,-;Unknown \
                   kernel command line parameters \"key=secret\", will be passed to user \
                   space.\n";
        let expected = "5,0,0,-;(not recorded)\n6,2,0,-;tsc: Detected 2596 MHz processor\n\
                        5,3,0,-;Unknown kernel command line parameters \"key=...\", will \
                        be passed to user space.\n";
        assert_eq!(recorded("/dev/kmsg", log), expected);
    }

    /// Check that neither the builder of the kernel nor unused cgroups are recorded.
    #[test]
    fn names_are_not_recorded() {
        let version = "Linux version 6.1.0 (me@home) (gcc (GCC) 12) #1 SMP\n";
        let expected = "Linux version 6.1.0 (...) (gcc (GCC) 12) #1 SMP\n";
        assert_eq!(recorded("/proc/version", version), expected);
        assert_eq!(recorded("/proc/version", expected), expected);
        let groups = "9:memory:/customer\n3:cpu,cpuacct:/a\n2:cpuset:/c\n0::/b\n";
        let expected = "3:cpu,cpuacct:/a\n2:cpuset:/c\n0::/b\n";
        assert_eq!(recorded("/proc/self/cgroup", groups), expected);
    }

    /// Check that only used lines of the process's status are recorded.
    #[test]
    fn lines_of_status() {
        let text = "Name:\tnoisefloor\nUid:\t0\t0\t0\t0\nCpus_allowed_list:\t0-1\n";
        let expected = "Uid:\t0\t0\t0\t0\nCpus_allowed_list:\t0-1\n";
        assert_eq!(recorded("/proc/self/status", text), expected);
        assert_eq!(recorded("/proc/stat", "whole\n"), "whole\n");
    }
}
