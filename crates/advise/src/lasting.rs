//! What makes a setting last beyond the next boot, by its name (`isolate::Tuning` defines the names).
//!
//! `sysctl.d(5)`, `tmpfiles.d(5)`; `Documentation/admin-guide/kernel-parameters.txt`: `preempt=` (5.12),
//! `cpufreq.default_governor=` (5.9), `transparent_hugepage=`, `workqueue.unbound_cpus=` (6.6),
//! `irqaffinity=`, `isolcpus=`; `tuned-profiles(7)`: `force_latency`.

use units::CpuSet;

/// One way to make a setting last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lasting {
    /// A line of a file in `/etc/sysctl.d`.
    Sysctl(String),
    /// A line of a file in `/etc/tmpfiles.d`, which systemd writes at boot.
    Tmpfile(String),
    /// A parameter of the kernel's command line.
    KernelParameter(String),
    /// A line of section `[cpu]` in a profile of tuned.
    TunedCpu(String),
}

/// The files that a setting has at run time, and what is written to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunTime {
    /// Each file whose path matches; a path has at most `*` for names of CPUs.
    Files {
        /// The path.
        path: String,
        /// What is written.
        value: String,
    },
    /// The affinity of all interrupts that can be moved, and of new ones.
    Irqs(CpuSet),
    /// The idle states with a longer exit latency, in microseconds, which are disabled.
    IdleLatency(u32),
    /// An isolated cpuset partition.
    Partition(CpuSet),
}

/// Where sysctls are.
const SYSCTLS: &str = "/proc/sys/";
const DEBUG: &str = "/sys/kernel/debug/sched";

/// The files of `name=value`; `None` if the value is not one that it can have.
pub(crate) fn run_time(name: &str, value: &str) -> Option<RunTime> {
    let files = |path: &str| RunTime::Files { path: path.into(), value: value.into() };
    Some(match name {
        "governor" => files("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"),
        "thp" => files("/sys/kernel/mm/transparent_hugepage/enabled"),
        "workqueues" => RunTime::Files {
            path: "/sys/devices/virtual/workqueue/cpumask".into(),
            value: mask(&value.parse().ok()?),
        },
        "irqs" => RunTime::Irqs(value.parse().ok()?),
        "partition" => RunTime::Partition(value.parse().ok()?),
        "idle_latency_us" => RunTime::IdleLatency(value.parse().ok()?),
        path if path.starts_with('/') => files(path),
        sysctl if sysctl.contains('.') => {
            files(&format!("{SYSCTLS}{}", sysctl.replace('.', "/")))
        }
        feature if is_feature(feature) => {
            let sign = if value == "on" { "" } else { "NO_" };
            RunTime::Files {
                path: format!("{DEBUG}/features"),
                value: format!("{sign}{feature}"),
            }
        }
        tunable => files(&format!("{DEBUG}/{tunable}")),
    })
}

/// Whether it is the name of a feature of the scheduler.
pub(crate) fn is_feature(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
}

/// A mask as the kernel parses it (`bitmap_parse`), of any number of CPUs.
pub(crate) fn mask(cpus: &CpuSet) -> String {
    let mut words = vec!["0"];
    let highest = cpus.iter().last().map_or(0, units::Cpu::get);
    words.resize(highest as usize / 32 + 1, "00000000");
    cpus.to_mask(&words.join(","))
}

/// What makes `name=value` last, the simplest first.
pub fn lasting(name: &str, value: &str) -> Vec<Lasting> {
    use Lasting::{KernelParameter, TunedCpu};
    let mut ways = match name {
        "preempt" => vec![KernelParameter(format!("preempt={value}"))],
        "governor" => vec![
            KernelParameter(format!("cpufreq.default_governor={value}")),
            TunedCpu(format!("governor={value}")),
        ],
        "idle_latency_us" => vec![TunedCpu(format!("force_latency={value}"))],
        "thp" => vec![KernelParameter(format!("transparent_hugepage={value}"))],
        "workqueues" => vec![KernelParameter(format!("workqueue.unbound_cpus={value}"))],
        "irqs" => vec![KernelParameter(format!("irqaffinity={value}"))],
        "partition" => vec![KernelParameter(format!("isolcpus=domain,{value}"))],
        _ => Vec::new(),
    };
    if let Some(RunTime::Files { path, value }) = run_time(name, value) {
        ways.push(line(name, &path, &value));
    }
    ways
}

/// The line of the file that has a setting's value. In `tmpfiles.d`, `%` begins a specifier and `\` an escape
/// sequence.
fn line(name: &str, path: &str, value: &str) -> Lasting {
    match path.strip_prefix(SYSCTLS) {
        // Names with slashes may have dots.
        Some(key) if name.starts_with('/') => Lasting::Sysctl(format!("{key} = {value}")),
        Some(_) => Lasting::Sysctl(format!("{name} = {value}")),
        None => {
            let value = value.replace('\\', r"\\").replace('%', "%%");
            Lasting::Tmpfile(format!("w {path} - - - - {value}"))
        }
    }
}

/// The commands that add a boot parameter with the program that the distribution has for it; none if
/// that is not known.
pub fn boot_commands(tool: &str, parameter: &str) -> Vec<String> {
    match tool {
        "rpm-ostree" => vec![format!("sudo rpm-ostree kargs --append={parameter}")],
        "grubby" => vec![format!("sudo grubby --update-kernel=ALL --args={parameter}")],
        "kernelstub" => vec![format!("sudo kernelstub --add-options {parameter}")],
        "update-grub" => vec![
            // The value is in quotes of either kind.
            format!(
                "sudo sed -i 's/^GRUB_CMDLINE_LINUX=./&{parameter} /' /etc/default/grub"
            ),
            "sudo update-grub".to_owned(),
        ],
        _ => Vec::new(),
    }
}

/// The commands that remove the boot parameters of a name, as [`boot_commands`].
pub(crate) fn unboot_commands(tool: &str, name: &str) -> Vec<String> {
    match tool {
        "rpm-ostree" => {
            vec![format!("sudo rpm-ostree kargs --delete-if-present={name}")]
        }
        "grubby" => {
            vec![format!("sudo grubby --update-kernel=ALL --remove-args={name}")]
        }
        "kernelstub" => vec![format!("sudo kernelstub --delete-options {name}")],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that each kind of setting has the line of the file that sets it at boot.
    #[test]
    fn lines() {
        use Lasting::{KernelParameter, Sysctl, Tmpfile};
        for (name, value, expected) in [
            ("vm.stat_interval", "10", Sysctl("vm.stat_interval = 10".into())),
            ("/proc/sys/vm/swappiness", "1", Sysctl("vm/swappiness = 1".into())),
            ("preempt", "full", KernelParameter("preempt=full".into())),
            ("irqs", "0,2", KernelParameter("irqaffinity=0,2".into())),
            (
                "/sys/kernel/mm/ksm/run",
                "0",
                Tmpfile("w /sys/kernel/mm/ksm/run - - - - 0".into()),
            ),
            (
                "HRTICK",
                "off",
                Tmpfile("w /sys/kernel/debug/sched/features - - - - NO_HRTICK".into()),
            ),
            ("HRTICK", "on", {
                Tmpfile("w /sys/kernel/debug/sched/features - - - - HRTICK".into())
            }),
            ("/sys/a", r"5% \d", Tmpfile(r"w /sys/a - - - - 5%% \\d".into())),
            (
                "base_slice_ns",
                "3000000",
                Tmpfile("w /sys/kernel/debug/sched/base_slice_ns - - - - 3000000".into()),
            ),
        ] {
            assert_eq!(lasting(name, value).first(), Some(&expected), "{name}");
        }
    }

    /// Check that masks have as many words as their highest CPU needs.
    #[test]
    fn masks() {
        for (cpus, expected) in [("0-1", "3"), ("0,32", "1,00000001"), ("", "0")] {
            assert_eq!(mask(&cpus.parse().unwrap()), expected, "{cpus}");
        }
        assert_eq!(run_time("irqs", "a"), None);
    }
}
