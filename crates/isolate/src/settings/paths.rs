//! The list of all files that are ever written: settings are named in the journal, which is read
//! with root's privileges.
//!
//! A path is compared with patterns, component by component: `N` is a number, `NAME` a name of
//! lowercase letters, digits and `_`, `WORD` a name that may have uppercase letters, `-`, `:` and `.`,
//! too, and `noisefloor-CPUS` that prefix and a list of CPUs. The files are documented in
//! `throttling.rs`, `irqs.rs`, `workqueues.rs`, `tunables.rs`, `machine.rs` and `partition.rs`.
//!
//! Files that name a program or a file that the kernel uses with root's privileges, and those whose
//! change cannot be undone, are excluded.

use std::io::{self, ErrorKind};
use std::path::{Component, Path};

use crate::thread::partition_entry::MOUNTS;

/// Files that contain only their value.
const FILES: &[&str] = &[
    "/proc/irq/N/smp_affinity_list",
    "/proc/irq/default_smp_affinity",
    "/proc/sys/fs/NAME",
    "/proc/sys/kernel/NAME",
    "/proc/sys/net/NAME/NAME",
    "/proc/sys/net/NAME/conf/WORD/NAME",
    "/proc/sys/vm/NAME",
    "/sys/block/WORD/queue/NAME",
    "/sys/class/net/WORD/NAME",
    "/sys/class/net/WORD/queues/WORD/NAME",
    "/sys/devices/system/clocksource/clocksourceN/current_clocksource",
    "/sys/devices/system/cpu/cpuN/cpufreq/NAME",
    "/sys/devices/system/cpu/cpuN/cpuidle/stateN/disable",
    "/sys/devices/system/cpu/cpuN/power/pm_qos_resume_latency_us",
    "/sys/devices/system/cpu/cpufreq/NAME",
    "/sys/devices/system/cpu/cpufreq/policyN/NAME",
    "/sys/devices/system/cpu/cpuidle/current_governor",
    "/sys/devices/system/cpu/intel_pstate/NAME",
    "/sys/devices/system/machinecheck/machinecheckN/check_interval",
    "/sys/devices/virtual/workqueue/WORD/cpumask",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/fs/cgroup/noisefloor-CPUS/cgroup.type",
    "/sys/fs/cgroup/noisefloor-CPUS/cpuset.cpus",
    "/sys/fs/cgroup/noisefloor-CPUS/cpuset.cpus.partition",
    "/sys/fs/cgroup/unified/noisefloor-CPUS/cgroup.type",
    "/sys/fs/cgroup/unified/noisefloor-CPUS/cpuset.cpus",
    "/sys/fs/cgroup/unified/noisefloor-CPUS/cpuset.cpus.partition",
    "/sys/kernel/debug/sched/NAME",
    "/sys/kernel/debug/sched/ext_server/cpuN/runtime",
    "/sys/kernel/debug/sched/fair_server/cpuN/runtime",
    "/sys/kernel/mm/ksm/NAME",
    "/sys/kernel/mm/lru_gen/NAME",
    "/sys/kernel/mm/transparent_hugepage/NAME",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/NAME",
    "/sys/kernel/rcu_expedited",
    "/sys/kernel/rcu_normal",
    "/sys/module/NAME/parameters/NAME",
];
/// Files that match these patterns, and are never written: the kernel executes or loads what they name,
/// or the change cannot be undone before a reboot, or they are commands, or they change other files
/// (`all` and `default` those of interfaces).
const NEVER: &[&str] = &[
    "/proc/sys/fs/suid_dumpable",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/hotplug",
    "/proc/sys/kernel/kexec_load_disabled",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/modules_disabled",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/kernel/poweroff_cmd",
    "/proc/sys/kernel/unprivileged_bpf_disabled",
    "/proc/sys/net/NAME/conf/WORD/disable_ipv6",
    "/proc/sys/net/NAME/conf/all/NAME",
    "/proc/sys/net/NAME/conf/default/NAME",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/vm/compact_memory",
    "/proc/sys/vm/drop_caches",
    "/sys/module/firmware_class/parameters/path",
];
const CHOICES: &[&str] = &[
    "/sys/block/WORD/queue/NAME",
    "/sys/kernel/debug/sched/preempt",
    "/sys/kernel/mm/transparent_hugepage/NAME",
    "/sys/module/NAME/parameters/NAME",
];
const FEATURES: &[&str] =
    &["/sys/kernel/debug/sched/features", "/sys/kernel/debug/sched_features"];
/// Cgroups that may be created.
const GROUPS: &[&str] =
    &["/sys/fs/cgroup/noisefloor-CPUS", "/sys/fs/cgroup/unified/noisefloor-CPUS"];

/// Checks that the path is of a file that contains only its value.
pub(crate) fn file(path: &Path) -> io::Result<&Path> {
    one_of(FILES, path)
}

/// Checks that the path is of a file of either kind.
pub(crate) fn any_file(path: &Path) -> io::Result<&Path> {
    file(path).or_else(|_| choice(path))
}

/// Checks that the path is of a file that lists all possible values.
pub(crate) fn choice(path: &Path) -> io::Result<&Path> {
    one_of(CHOICES, path)
}

/// Checks that the path is of the scheduler's features.
pub(crate) fn features(path: &Path) -> io::Result<&Path> {
    one_of(FEATURES, path)
}

/// Checks that the path is of a cgroup of noisefloor.
pub(crate) fn group(path: &Path) -> io::Result<&Path> {
    one_of(GROUPS, path)
}

/// Checks that the path is a possible mount point of the v2 hierarchy.
pub(crate) fn mount(path: &Path) -> io::Result<&Path> {
    one_of(&MOUNTS, path)
}

/// Checks that the path is of any cgroup: one that a process was in.
pub(crate) fn any_group(path: &Path) -> io::Result<&Path> {
    let is_plain = path.components().all(|part| part != Component::ParentDir);
    let is_below = MOUNTS.iter().any(|mount| path.starts_with(mount));
    if is_plain && is_below { Ok(path) } else { Err(refused(path)) }
}

fn one_of<'a>(patterns: &[&str], path: &'a Path) -> io::Result<&'a Path> {
    let is_one_of = |patterns: &[&str]| patterns.iter().any(|it| matches(it, path));
    match is_one_of(patterns) && !is_one_of(NEVER) {
        true => Ok(path),
        false => Err(refused(path)),
    }
}

fn refused(path: &Path) -> io::Error {
    let text = format!("{} is not a setting that noisefloor changes", path.display());
    io::Error::new(ErrorKind::InvalidData, text)
}

/// Compares the bytes: a path with other components, such as `a/./b`, does not match.
fn matches(pattern: &str, path: &Path) -> bool {
    let Some(path) = path.to_str() else { return false };
    let (mut patterns, mut names) = (pattern.split('/'), path.split('/'));
    loop {
        match (patterns.next(), names.next()) {
            (None, None) => return true,
            (Some(pattern), Some(name)) if is_like(pattern, name) => {}
            _ => return false,
        }
    }
}

fn is_like(pattern: &str, name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if pattern == "NAME" {
        return !name.is_empty() && name.chars().all(plain);
    }
    if pattern == "WORD" {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-:.".contains(c);
        return !name.is_empty() && !name.starts_with('.') && name.chars().all(plain);
    }
    let rest_of = |end: &str| name.strip_prefix(pattern.strip_suffix(end)?);
    match (rest_of("CPUS"), rest_of("N")) {
        (Some(list), _) => is_list(list),
        (None, Some(number)) => is_number(number),
        (None, None) => pattern == name,
    }
}

/// Whether the text is a list of CPUs in the kernel's format: `2-5,8`.
fn is_list(text: &str) -> bool {
    text.split([',', '-']).all(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that patterns match the intended paths, and no variations of them.
    #[test]
    fn patterns() {
        let is_file = |path: &str| file(Path::new(path)).is_ok();
        for path in [
            "/proc/irq/17/smp_affinity_list",
            "/proc/sys/kernel/sched_rt_runtime_us",
            "/sys/fs/cgroup/noisefloor-3/cpuset.cpus",
            "/sys/fs/cgroup/noisefloor-2-5,8/cpuset.cpus",
            "/sys/kernel/debug/sched/base_slice_ns",
            "/sys/kernel/debug/sched/fair_server/cpu12/runtime",
            "/proc/sys/vm/stat_interval",
            "/proc/sys/net/core/rmem_max",
            "/proc/sys/net/ipv4/conf/eth0/rp_filter",
            "/sys/class/net/eth0.1/queues/rx-0/rps_cpus",
            "/sys/devices/system/cpu/cpu3/cpuidle/state2/disable",
            "/sys/devices/virtual/workqueue/writeback/cpumask",
        ] {
            assert!(is_file(path), "{path}");
        }
        for path in [
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/modprobe",
            "/proc/sys/kernel/usermodehelper/bset",
            "/proc/sys/kernel/modules_disabled",
            "/proc/sys/net/ipv4/conf/all/forwarding",
            "/proc/sys/net/ipv6/conf/eth0/disable_ipv6",
            "/proc/sys/net/ipv4/ip_forward",
            "/proc/sys/vm/drop_caches",
            "/proc/sys/fs/binfmt_misc/register",
            "/sys/module/firmware_class/parameters/path",
            "/sys/class/net/../net/eth0/mtu",
            "/sys/kernel/mm/transparent_hugepage/../ksm/run",
            "/proc/sys/kernel/sched_rt_runtime_us/",
            "/proc/irq//smp_affinity_list",
            "/proc/irq/1a/smp_affinity_list",
            "/proc/irq/../irq/1/smp_affinity_list",
            "proc/irq/1/smp_affinity_list",
            "/sys/kernel/debug/sched/..",
            "/sys/kernel/debug/sched/fair_server/cpu/runtime",
            "/sys/kernel/debug/sched/fair_server/cpu1/../runtime",
            "/sys/fs/cgroup/system.slice/cpuset.cpus",
            "/sys/fs/cgroup/noisefloor-/cpuset.cpus",
            "/sys/fs/cgroup/noisefloor-1-/cpuset.cpus",
            "",
        ] {
            assert!(!is_file(path), "{path}");
        }
    }

    /// Check that only cgroups of noisefloor are created or removed, and that a process can be
    /// moved to any cgroup, but to no other directory.
    #[test]
    fn groups() {
        let is_group = |path: &str| group(Path::new(path)).is_ok();
        assert!(is_group("/sys/fs/cgroup/noisefloor-1"));
        assert!(!is_group("/sys/fs/cgroup/system.slice") && !is_group("/sys/fs/cgroup"));
        let is_any = |path: &str| any_group(Path::new(path)).is_ok();
        assert!(is_any("/sys/fs/cgroup/user.slice/a b") && is_any("/sys/fs/cgroup"));
        assert!(!is_any("/sys/fs/cgroup/../../etc") && !is_any("/proc/sys/kernel"));
    }
}
