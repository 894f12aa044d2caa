//! The guests of this host: processes of virtual machine monitors, found by the names of their
//! threads and programs, with the counters of each thread.
//!
//! From `/proc/PID/comm`, `/proc/PID/cmdline` and `/proc/PID/task/TID/{comm,stat,schedstat,status}`,
//! which all users may read, unless `/proc` is mounted with `hidepid=`.
//!
//! A QEMU is found by its program's name, too, as it names its threads only on request: of its
//! threads, those with guest time (field 43 of `stat`) are vCPUs of KVM; under TCG they are
//! unknown. Cannot see: processes outside of this PID namespace, monitors with other names, and
//! work that the host's kernel does for a guest in threads of its own (`vhost-PID` before Linux
//! 6.4).

mod arguments;
mod vcpu;

use std::fmt;

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::fact::{Unknown, Why};
use crate::format::context_switches::ContextSwitches;
use crate::format::mounts::Mounts;
use crate::format::schedstat::SchedStat;
use crate::format::task_stat::TaskStat;
use crate::guest::arguments::Arguments;
use crate::guest::vcpu::{Style, VcpuName};
use crate::tree::root::Root;

/// The length of `/proc/PID/stat`'s unit of CPU time (`USER_HZ` is 100).
const CLOCK_TICK: Nanos = Nanos::from_millis(10);
/// The numbers of fields of `stat`.
const UTIME: usize = 14;
const STIME: usize = 15;
const START: usize = 22;
const GUEST_TIME: usize = 43;

/// The kind of a virtual machine monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Monitor {
    /// QEMU.
    Qemu,
    /// Firecracker, or a monitor whose threads have the same names.
    Firecracker,
    /// cloud-hypervisor.
    CloudHypervisor,
    /// A monitor whose threads have the names of cloud-hypervisor's (`vcpu0`).
    Other,
}

impl fmt::Display for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Qemu => "QEMU",
            Self::Firecracker => "Firecracker",
            Self::CloudHypervisor => "cloud-hypervisor",
            Self::Other => "other",
        })
    }
}

/// A guest: one process of a virtual machine monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// The PID.
    pub pid: u32,
    /// When the process started, in clock ticks since boot: with the PID it identifies the process.
    pub start: u64,
    /// The guest's name; `None` if the monitor was not given one.
    pub name: Option<String>,
    /// The name of the process.
    pub process: String,
    /// The monitor.
    pub monitor: Monitor,
    /// What executes the vCPUs, as QEMU names it (`KVM`, `TCG`); `None` if that is unknown.
    pub accelerator: Option<String>,
    /// The number of vCPUs; `None` if it is unknown.
    pub vcpus: Option<u32>,
    /// All threads.
    pub threads: Vec<GuestThread>,
}

/// A thread of a virtual machine monitor. Times and counts are those since its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestThread {
    /// The TID.
    pub tid: u32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
    /// Its vCPU; `None` if it is another thread, or not known to be a vCPU.
    pub vcpu: Option<Vcpu>,
    /// CPU time of the thread and of its vCPU.
    pub cpu: Nanos,
    /// Whether the CPU time is in steps of 10 ms, for the lack of `schedstat`.
    pub is_coarse: bool,
    /// Time ready to run, but not running; `None` without `schedstat`.
    pub waited: Option<Nanos>,
    /// Context switches.
    pub switches: ContextSwitches,
}

/// The vCPUs that a thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vcpu {
    /// The vCPU of this number.
    Number(u32),
    /// All vCPUs of the guest.
    All,
    /// One whose number is unknown: the thread has no name, but guest time.
    Unnamed,
}

impl Guest {
    /// The PIDs of all processes that are listed.
    ///
    /// # Errors
    /// Why `/proc` cannot be listed.
    pub fn processes(root: &Root) -> Result<Vec<u32>, Unknown> {
        numbers(root, "/proc")
    }

    /// The guest of a process; `None` if it is no guest, or has ended.
    ///
    /// # Errors
    /// The process may not be examined: `/proc` is mounted with `hidepid=`.
    pub fn read(root: &Root, pid: u32) -> Result<Option<Self>, Unknown> {
        let read = |file: &str| present(root.text(&format!("/proc/{pid}/{file}")));
        let Some(tids) = present(numbers(root, &format!("/proc/{pid}/task")))? else {
            return Ok(None);
        };
        let Some(process) = read("comm")? else { return Ok(None) };
        let process = process.trim_end_matches('\n').to_owned();
        let names = names(root, pid, &tids)?;
        // No monitor has a single thread.
        if tids.len() < 2 && names.iter().all(Option::is_none) {
            return Ok(None);
        }
        // Only a process that is ending has none, besides the kernel's threads.
        let cmdline = read("cmdline")?.filter(|text| !text.is_empty());
        let Some(cmdline) = cmdline else { return Ok(None) };
        let arguments = Arguments::parse(&cmdline);
        let vcpu = names.iter().flatten().next();
        let Some(monitor) = monitor(vcpu, &process, &arguments) else { return Ok(None) };
        let threads: Vec<_> = tids
            .iter()
            .zip(&names)
            .filter_map(|(tid, name)| GuestThread::read(root, pid, *tid, monitor, name))
            .collect();
        let stat = read("stat")?.unwrap_or_default();
        let start = TaskStat::parse(&stat).and_then(|stat| stat.number(START));
        Ok(start.map(|start| Self {
            pid,
            start,
            name: name(monitor, &arguments),
            process,
            monitor,
            accelerator: accelerator(vcpu, &threads),
            vcpus: vcpus(&threads, monitor, &arguments),
            threads,
        }))
    }

    /// Why some processes may not be listed: the option `hidepid=` of `/proc`, as in
    /// `/proc/self/mounts`; `None` without it. It does not apply to `CAP_SYS_PTRACE`, nor to the
    /// group of the option `gid=`.
    pub fn hidepid(root: &Root) -> Option<String> {
        let mounts = Mounts::read(root).ok()?;
        // The last mount covers earlier ones.
        let proc = mounts.of_kind("proc").filter(|mount| mount.directory == "/proc");
        let proc = proc.last()?;
        let off = ["hidepid=0", "hidepid=off"];
        let option = proc.options().find(|option| option.starts_with("hidepid="))?;
        (!off.contains(&option)).then(|| option.to_owned())
    }
}

/// The vCPUs in the names of threads.
fn names(root: &Root, pid: u32, tids: &[u32]) -> Result<Vec<Option<VcpuName>>, Unknown> {
    let of = |tid: &u32| {
        let name = present(root.text(&format!("/proc/{pid}/task/{tid}/comm")))?;
        Ok(VcpuName::parse(name.unwrap_or_default().trim_end_matches('\n')))
    };
    tids.iter().map(of).collect()
}

/// The name that the monitor was given for the guest.
fn name(monitor: Monitor, arguments: &Arguments) -> Option<String> {
    match monitor {
        Monitor::Qemu => arguments.qemu_name(),
        Monitor::Firecracker => arguments.firecracker_id(),
        Monitor::CloudHypervisor | Monitor::Other => None,
    }
}

impl GuestThread {
    /// Reads a thread; `None` if it has ended.
    fn read(
        root: &Root,
        pid: u32,
        tid: u32,
        monitor: Monitor,
        name: &Option<VcpuName>,
    ) -> Option<Self> {
        let read = |file: &str| root.text(&format!("/proc/{pid}/task/{tid}/{file}")).ok();
        let stat = read("stat")?;
        let stat = TaskStat::parse(&stat)?;
        let switches = ContextSwitches::parse(&read("status")?)?;
        let times = read("schedstat").and_then(|text| SchedStat::parse(&text));
        let ticks = |field| stat.number::<u64>(field);
        let coarse =
            CLOCK_TICK.saturating_mul(ticks(UTIME)?.saturating_add(ticks(STIME)?));
        let is_kvm = monitor == Monitor::Qemu && ticks(GUEST_TIME) > Some(0);
        let vcpu = match name {
            Some(VcpuName { index: Some(number), .. }) => Some(Vcpu::Number(*number)),
            Some(VcpuName { index: None, .. }) => Some(Vcpu::All),
            None => is_kvm.then_some(Vcpu::Unnamed),
        };
        Some(Self {
            tid,
            start: stat.number(START)?,
            vcpu,
            cpu: times.map_or(coarse, |times| times.ran),
            is_coarse: times.is_none(),
            waited: times.map(|times| times.waited),
            switches,
        })
    }
}

/// The kind of monitor; `None` if the process is none.
fn monitor(
    vcpu: Option<&VcpuName>,
    process: &str,
    arguments: &Arguments,
) -> Option<Monitor> {
    let names = [process, arguments.program()];
    let is = |begin: &str| names.iter().any(|name| name.starts_with(begin));
    let is_qemu =
        is("qemu-system-") || names.iter().any(|name| ["qemu-kvm", "kvm"].contains(name));
    match vcpu.map(|vcpu| &vcpu.style) {
        Some(Style::Qemu(_)) => Some(Monitor::Qemu),
        Some(Style::Firecracker) => Some(Monitor::Firecracker),
        Some(Style::CloudHypervisor) if is("cloud-hyperv") => {
            Some(Monitor::CloudHypervisor)
        }
        Some(Style::CloudHypervisor) => Some(Monitor::Other),
        None => is_qemu.then_some(Monitor::Qemu),
    }
}

fn accelerator(vcpu: Option<&VcpuName>, threads: &[GuestThread]) -> Option<String> {
    let has_guest_time = threads.iter().any(|thread| thread.vcpu == Some(Vcpu::Unnamed));
    match vcpu.map(|vcpu| &vcpu.style) {
        Some(Style::Qemu(accelerator)) => Some(accelerator.clone()),
        Some(Style::Firecracker | Style::CloudHypervisor) => None,
        None => has_guest_time.then(|| "KVM".to_owned()),
    }
}

/// The number of vCPUs: of named threads, or of QEMU's option.
fn vcpus(
    threads: &[GuestThread],
    monitor: Monitor,
    arguments: &Arguments,
) -> Option<u32> {
    let named = threads.iter().filter(|one| matches!(one.vcpu, Some(Vcpu::Number(_))));
    let named = u32::try_from(named.count()).ok()?;
    match monitor {
        _ if named > 0 => Some(named),
        Monitor::Qemu => arguments.qemu_vcpus().filter(|&count| count > 0),
        Monitor::Firecracker | Monitor::CloudHypervisor | Monitor::Other => None,
    }
}

/// The directories with numbers for names, in ascending order.
fn numbers(root: &Root, directory: &str) -> Result<Vec<u32>, Unknown> {
    let mut found: Vec<u32> =
        root.list(directory)?.iter().filter_map(|name| name.parse().ok()).collect();
    found.sort_unstable();
    Ok(found)
}

/// `None` for what is not there, or not any more.
fn present<T>(found: Result<T, Unknown>) -> Result<Option<T>, Unknown> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(unknown) if unknown.code == Why::Absent => Ok(None),
        Err(unknown) => Err(unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::{tree, tree_refusing};

    /// The files of a thread.
    fn thread(pid: u32, tid: u32, name: &str, guest_time: u32) -> Vec<(String, String)> {
        let fields: Vec<String> = (4..=52)
            .map(|field| match field {
                UTIME | STIME => "7".to_owned(),
                START => tid.to_string(),
                GUEST_TIME => guest_time.to_string(),
                _ => "0".to_owned(),
            })
            .collect();
        let file = |file: &str| format!("/proc/{pid}/task/{tid}/{file}");
        let switches = "voluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        vec![
            (file("comm"), format!("{name}\n")),
            (file("stat"), format!("{tid} ({name}) S {}\n", fields.join(" "))),
            (file("schedstat"), "5000 600 15\n".to_owned()),
            (file("status"), format!("Name:\t{name}\n{switches}")),
        ]
    }

    /// The files of a process; its first thread has the PID.
    fn process(
        pid: u32,
        cmdline: &str,
        threads: &[(u32, &str, u32)],
    ) -> Vec<(String, String)> {
        let mut files = vec![(format!("/proc/{pid}/cmdline"), cmdline.to_owned())];
        for &(tid, name, guest_time) in threads {
            files.extend(thread(pid, tid, name, guest_time));
        }
        for file in ["comm", "stat"] {
            let of_task = format!("/proc/{pid}/task/{pid}/{file}");
            let text = files.iter().find(|(path, _)| *path == of_task).unwrap().1.clone();
            files.push((format!("/proc/{pid}/{file}"), text));
        }
        files
    }

    fn read(files: &[(String, String)], pid: u32) -> Option<Guest> {
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        Guest::read(&tree(&files).root, pid).unwrap()
    }

    /// Check a QEMU with named threads: name, accelerator, vCPUs, counters.
    #[test]
    fn qemu_with_names() {
        let files = process(
            40,
            "/usr/bin/qemu-system-x86_64\0-name\0guest=web,debug-threads=on\0",
            &[
                (40, "qemu-system-x86", 0),
                (41, "call_rcu", 0),
                (42, "CPU 0/KVM", 9),
                (43, "CPU 1/KVM", 9),
            ],
        );
        let guest = read(&files, 40).unwrap();
        assert_eq!((guest.pid, guest.start), (40, 40));
        assert_eq!((guest.name.as_deref(), guest.vcpus), (Some("web"), Some(2)));
        assert_eq!(guest.accelerator.as_deref(), Some("KVM"));
        assert_eq!((guest.monitor, guest.threads.len()), (Monitor::Qemu, 4));
        let vcpu = &guest.threads[3];
        assert_eq!((vcpu.tid, vcpu.vcpu), (43, Some(Vcpu::Number(1))));
        assert_eq!((vcpu.cpu, vcpu.is_coarse), (Nanos::from_nanos(5_000), false));
        assert_eq!((vcpu.switches.voluntary, vcpu.switches.involuntary), (12, 3));
    }

    /// Check QEMUs without named threads: vCPUs of KVM have guest time, those of TCG are unknown;
    /// the process may be renamed.
    #[test]
    fn qemu_without_names() {
        let start = |comm, guest_time| {
            process(
                7,
                "/usr/bin/qemu-system-x86_64\0-smp\0cpus=2\0",
                &[(7, comm, 0), (8, comm, guest_time), (9, comm, guest_time)],
            )
        };
        let kvm = read(&start("web", 5), 7).unwrap();
        assert_eq!((kvm.vcpus, kvm.process.as_str()), (Some(2), "web"));
        let vcpus: Vec<_> = kvm.threads.iter().map(|thread| thread.vcpu).collect();
        assert_eq!(vcpus, [None, Some(Vcpu::Unnamed), Some(Vcpu::Unnamed)]);
        assert_eq!(kvm.accelerator.as_deref(), Some("KVM"));
        let tcg = read(&start("qemu-system-x86", 0), 7).unwrap();
        assert!(tcg.threads.iter().all(|thread| thread.vcpu.is_none()));
        assert_eq!((tcg.vcpus, tcg.accelerator, tcg.name), (Some(2), None, None));
    }

    /// Check the other monitors, one thread for all vCPUs, and processes that are no guests.
    #[test]
    fn other_monitors() {
        let start = |cmdline: &str, comm, vcpu| {
            read(&process(7, cmdline, &[(7, comm, 0), (8, vcpu, 1)]), 7)
        };
        let fire = start("/firecracker\0--id\0vm-1\0", "firecracker", "fc_vcpu 0");
        let fire = fire.unwrap();
        assert_eq!(
            (fire.monitor, fire.name.as_deref()),
            (Monitor::Firecracker, Some("vm-1"))
        );
        let cloud = start("cloud-hypervisor\0", "cloud-hyperviso", "vcpu0").unwrap();
        assert_eq!((cloud.monitor, cloud.vcpus), (Monitor::CloudHypervisor, Some(1)));
        assert_eq!(start("x", "x", "vcpu0").unwrap().monitor, Monitor::Other);
        let all = start("qemu-system-arm\0-smp\0cpus=4\0", "x", "ALL CPUs/TCG").unwrap();
        assert_eq!((all.vcpus, all.threads[1].vcpu), (Some(4), Some(Vcpu::All)));
        assert_eq!(start("bash\0qemu-system-x86_64\0", "bash", "worker"), None);
        assert_eq!(start("qemu-img\0convert\0", "qemu-img", "worker"), None);
        assert_eq!(start("", "x", "vcpu0"), None);
    }

    /// Check hundreds of vCPUs, a thread that ends while it is read, and a kernel without
    /// `schedstat`.
    #[test]
    fn many_and_few() {
        let names: Vec<String> = (0..300).map(|at| format!("CPU {at}/KVM")).collect();
        let threads: Vec<(u32, &str, u32)> =
            (1_000..).zip(&names).map(|(tid, name)| (tid, name.as_str(), 1)).collect();
        let many = [&[(7, "qemu-kvm", 0)], &threads[..]].concat();
        let mut files = process(7, "qemu-kvm\0", &many);
        assert_eq!(read(&files, 7).unwrap().vcpus, Some(300));
        files.retain(|(path, _)| path != "/proc/7/task/1005/stat");
        files.retain(|(path, _)| path != "/proc/7/task/1006/schedstat");
        let guest = read(&files, 7).unwrap();
        assert_eq!((guest.vcpus, guest.threads.len()), (Some(299), 300));
        let coarse: Vec<_> =
            guest.threads.iter().filter(|thread| thread.is_coarse).collect();
        assert_eq!((coarse.len(), coarse[0].tid), (1, 1006));
        assert_eq!((coarse[0].cpu, coarse[0].waited), (Nanos::from_millis(140), None));
    }

    /// Check which options of `/proc` hide processes.
    #[test]
    fn hidden_by_options() {
        for (options, hides) in [
            ("rw,relatime", None),
            ("rw,hidepid=0", None),
            ("rw,hidepid=off", None),
            ("rw,hidepid=2", Some("hidepid=2")),
            ("rw,gid=4,hidepid=invisible", Some("hidepid=invisible")),
        ] {
            let covered = "proc /proc proc rw,hidepid=1 0 0\nproc /a/proc proc rw 0 0\n";
            let text = format!("{covered}proc /proc proc {options} 0 0\n");
            let tree = tree(&[("/proc/self/mounts", &text)]);
            assert_eq!(Guest::hidepid(&tree.root).as_deref(), hides, "{options}");
        }
        assert_eq!(Guest::hidepid(&tree(&[]).root), None);
    }

    /// Check that a process that ended is no guest, and that one that may not be read is an error.
    #[test]
    fn ended_and_hidden() {
        let hidden = [("/proc/9/comm", Why::NeedsRoot)];
        let files = [("/proc/9/task/9/comm", "x"), ("/proc/8/comm", "x")];
        let tree = tree_refusing(&files, &hidden);
        assert_eq!(Guest::processes(&tree.root).unwrap(), [8, 9]);
        assert_eq!(Guest::read(&tree.root, 8), Ok(None));
        assert_eq!(Guest::read(&tree.root, 9).unwrap_err().code, Why::NeedsRoot);
    }
}
