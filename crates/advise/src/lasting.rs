//! What makes a setting last beyond the next boot, by its name (`isolate::Tuning` defines the names).
//!
//! `sysctl.d(5)`, `tmpfiles.d(5)`; `Documentation/admin-guide/kernel-parameters.txt`: `preempt=` (5.12),
//! `cpufreq.default_governor=` (5.9), `transparent_hugepage=`, `workqueue.unbound_cpus=` (6.6),
//! `irqaffinity=`, `isolcpus=`; `tuned-profiles(7)`: `force_latency`.

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

/// What makes `name=value` last, the simplest first.
pub fn lasting(name: &str, value: &str) -> Vec<Lasting> {
    use Lasting::{KernelParameter, Sysctl, Tmpfile, TunedCpu};
    let tmpfile = |path: &str| Tmpfile(format!("w {path} - - - - {value}"));
    match name {
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
        path if path.starts_with("/proc/sys/") => {
            vec![Sysctl(format!("{} = {value}", &path["/proc/sys/".len()..]))]
        }
        path if path.starts_with('/') => vec![tmpfile(path)],
        sysctl if sysctl.contains('.') => vec![Sysctl(format!("{sysctl} = {value}"))],
        feature if feature.starts_with(|c: char| c.is_ascii_uppercase()) => {
            let sign = if value == "on" { "" } else { "NO_" };
            let file = "/sys/kernel/debug/sched/features";
            vec![Tmpfile(format!("w {file} - - - - {sign}{feature}"))]
        }
        tunable => vec![tmpfile(&format!("/sys/kernel/debug/sched/{tunable}"))],
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
            (
                "base_slice_ns",
                "3000000",
                Tmpfile("w /sys/kernel/debug/sched/base_slice_ns - - - - 3000000".into()),
            ),
        ] {
            assert_eq!(lasting(name, value).first(), Some(&expected), "{name}");
        }
    }
}
