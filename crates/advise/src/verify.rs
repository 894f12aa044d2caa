//! Whether emitted settings are in force: the manifest compared with the machine.
//!
//! Files are given by a function, so that recorded trees can be judged, too. The kernel does not say who wrote a
//! value: a service is named if it runs and is known to change such settings, and a file of sysctls if it has
//! another value. It is not known either whether the files were ever installed.

mod same;

use serde::Serialize;
use units::CpuSet;

use crate::emit::manifest::{BANNED, Entry, KUBELET, Manifest};
use crate::lasting::{RunTime, run_time};
use crate::machine::Machine;
use crate::verify::same::{same, same_parameter};

/// The contents of the files that match a path with `*`: the path, and the text if it can be read.
pub type Read<'a> = &'a dyn Fn(&str) -> Vec<(String, Option<String>)>;

/// Where sysctls are set at boot, in the order of `sysctl.d(5)`, as far as administrators change it.
const SYSCTL_FILES: [&str; 2] = ["/etc/sysctl.d/*", "/etc/sysctl.conf"];

/// Whether a setting is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// It is.
    InForce,
    /// It is a boot parameter, and the machine was not booted since the files were made.
    NeedsReboot,
    /// It has another value.
    Differs {
        /// The value; null: none.
        now: Option<String>,
        /// Services that run, and files, that could have changed it.
        by: Vec<String>,
    },
    /// That is not known.
    Unknown {
        /// Why.
        why: String,
    },
}

/// A setting of the manifest, and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// The setting.
    #[serde(flatten)]
    pub entry: Entry,
    /// Its state.
    #[serde(flatten)]
    pub state: State,
}

/// The states of all settings of a manifest.
pub fn verify(
    manifest: &Manifest,
    machine: &Machine<'_>,
    read: Read<'_>,
) -> Vec<Verified> {
    let check = Check { machine, read, is_booted: is_booted_since(manifest, read) };
    let all = manifest.settings.iter();
    all.map(|entry| Verified { entry: entry.clone(), state: check.of(entry) }).collect()
}

/// Whether the machine was booted after the files were made (`btime` of `/proc/stat`).
fn is_booted_since(manifest: &Manifest, read: Read<'_>) -> bool {
    let stat = one(read, "/proc/stat").unwrap_or_default();
    let booted = stat.lines().find_map(|line| line.strip_prefix("btime "));
    let booted = booted.and_then(|text| text.trim().parse::<u64>().ok());
    booted.is_some_and(|booted| booted > manifest.taken_s)
}

fn one(read: Read<'_>, path: &str) -> Option<String> {
    read(path).into_iter().next().and_then(|(_, text)| text)
}

struct Check<'a> {
    machine: &'a Machine<'a>,
    read: Read<'a>,
    is_booted: bool,
}

impl Check<'_> {
    fn of(&self, entry: &Entry) -> State {
        if let Some(name) = &entry.unboot {
            return self.removed(name);
        }
        if let Some(parameter) = &entry.boot {
            let state = self.parameter(parameter);
            if state != State::InForce {
                return state;
            }
        }
        match (entry.name.as_deref(), entry.value.as_deref()) {
            (Some(BANNED), Some(cpus)) => self.banned(cpus),
            (Some(KUBELET), Some(cpus)) => self.kubelet(cpus),
            // Whether it is isolated is what the boot parameter says.
            (Some("partition"), _) => State::InForce,
            (Some(name), Some(value)) => self.setting(name, value),
            (_, None) | (None, _) if entry.boot.is_some() => State::InForce,
            (_, None) | (None, _) => unknown("the manifest names no setting"),
        }
    }

    /// The values of the given parameters of that name.
    fn given(&self, name: &str) -> Option<Vec<&str>> {
        self.machine.facts().boot.given(name)
    }

    fn parameter(&self, parameter: &str) -> State {
        let (name, wanted) = parameter.split_once('=').unwrap_or((parameter, ""));
        let Some(given) = self.given(name) else {
            return unknown("the boot parameters are not known");
        };
        let online = self.machine.facts().cpus.online.get();
        match given.last() {
            Some(_) if given.iter().any(|now| same_parameter(now, wanted, online)) => {
                self.without_effect(name).unwrap_or(State::InForce)
            }
            Some(&"...") => unknown("its value is not recorded"),
            last => self.after_boot(last.map(|now| (*now).to_owned())),
        }
    }

    /// That a given parameter has no effect on this kernel, if that is known.
    fn without_effect(&self, name: &str) -> Option<State> {
        let inert = self.machine.facts().boot.inert.get()?;
        let is_it = |one: &&facts::Inert| one.parameter.split('=').next() == Some(name);
        let found = inert.iter().find(is_it)?;
        let now = Some(format!("given, but without effect: {}", found.text));
        Some(State::Differs { now, by: Vec::new() })
    }

    fn removed(&self, name: &str) -> State {
        match self.given(name) {
            None => unknown("the boot parameters are not known"),
            Some(given) => match given.last() {
                None => State::InForce,
                Some(now) => self.after_boot(Some((*now).to_owned())),
            },
        }
    }

    /// The state of a boot parameter that is not as it is wanted.
    fn after_boot(&self, now: Option<String>) -> State {
        match self.is_booted {
            true => {
                let mut by = self.services(|service| service == "tuned");
                by.extend(self.booting_hypervisor());
                State::Differs { now, by }
            }
            false => State::NeedsReboot,
        }
    }

    /// The hypervisor, if it loads the kernel itself, and so gives the parameters: a boot loader in the guest adds its
    /// own (`BOOT_IMAGE=` of GRUB and syslinux, `initrd=` of EFI stubs).
    fn booting_hypervisor(&self) -> Option<String> {
        let hypervisor = self.machine.facts().virt.hypervisor.get()?.as_deref()?;
        let is_absent = |name| self.given(name).is_some_and(|given| given.is_empty());
        let is_direct = ["BOOT_IMAGE", "initrd"].into_iter().all(is_absent);
        is_direct.then(|| format!("the hypervisor ({hypervisor})"))
    }

    fn setting(&self, name: &str, value: &str) -> State {
        match run_time(name, value) {
            None => unknown("no setting has such a value"),
            Some(RunTime::Files { path, value }) => self.files(name, &path, &value),
            Some(RunTime::Irqs(cpus)) => self.irqs(&cpus),
            Some(RunTime::IdleLatency(limit)) => self.idle(limit),
            Some(RunTime::Partition(_)) => unknown("partitions are not compared"),
        }
    }

    fn files(&self, name: &str, path: &str, value: &str) -> State {
        // A manifest could name any file.
        let is_setting = ["/proc/sys/", "/sys/"].iter().any(|it| path.starts_with(it));
        if !is_setting || path.contains("/../") {
            return unknown("the manifest names a file that is no setting");
        }
        let files = (self.read)(path);
        if files.is_empty() {
            return unknown(&format!("{path} does not exist"));
        }
        for (file, text) in files {
            let Some(now) = text else {
                return unknown(&format!("{file} cannot be read"));
            };
            if !same(path, &now, value) {
                let mut by = self.services(|service| could_change(service, name, path));
                by.extend(self.sysctl_files(path, value));
                return State::Differs { now: Some(same::chosen(&now).to_owned()), by };
            }
        }
        State::InForce
    }

    /// All interrupts but those that the kernel does not move.
    fn irqs(&self, wanted: &CpuSet) -> State {
        let fixed = self.machine.facts().irq.fixed.get().cloned().unwrap_or_default();
        let (mut known, mut elsewhere) = (false, Vec::new());
        for (file, text) in (self.read)("/proc/irq/*/smp_affinity_list") {
            let number = file.rsplit('/').nth(1).unwrap_or_default();
            let is_fixed = number.parse().is_ok_and(|number| fixed.contains(&number));
            let cpus = text.and_then(|text| text.parse::<CpuSet>().ok());
            let Some(cpus) = cpus.filter(|_| !is_fixed) else { continue };
            known = true;
            if !cpus.without(wanted).is_empty() {
                elsewhere.push(format!("IRQ {number}: {cpus}"));
            }
        }
        match (known, elsewhere.is_empty()) {
            (false, _) => unknown("no affinity of an interrupt can be read"),
            (true, true) => State::InForce,
            (true, false) => {
                let by = self.services(|it| ["irqbalance", "tuned"].contains(&it));
                State::Differs { now: Some(elsewhere.join("; ")), by }
            }
        }
    }

    /// The idle states with a longer exit latency are disabled, or a program holds `/dev/cpu_dma_latency`.
    fn idle(&self, limit: u32) -> State {
        let number = |path: &str| -> Option<u32> {
            one(self.read, path).and_then(|text| text.trim().parse().ok())
        };
        let files = (self.read)("/sys/devices/system/cpu/cpu*/cpuidle/state*/latency");
        if files.is_empty() {
            return unknown("no CPU has idle states");
        }
        for (file, text) in files {
            let latency = text.and_then(|text| text.trim().parse::<u32>().ok());
            let Some(folder) = file.strip_suffix("latency") else { continue };
            if latency.is_some_and(|latency| latency > limit)
                && number(&format!("{folder}disable")).is_none_or(|it| it == 0)
            {
                let by =
                    self.services(|it| ["tuned", "power-profiles-daemon"].contains(&it));
                let now = format!("{folder} is not disabled");
                return match by.iter().any(|it| it == "tuned") {
                    true => unknown("tuned limits idle states without disabling them"),
                    false => State::Differs { now: Some(now), by },
                };
            }
        }
        State::InForce
    }

    /// The environment of the process of irqbalance.
    fn banned(&self, wanted: &str) -> State {
        let slices = "/sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs";
        let Some(process) = one(self.read, slices).and_then(|text| {
            text.lines().next().and_then(|line| line.trim().parse::<u32>().ok())
        }) else {
            return unknown("irqbalance does not run");
        };
        let Some(environment) = one(self.read, &format!("/proc/{process}/environ"))
        else {
            return unknown("the environment of irqbalance can be read by root only");
        };
        let name = "IRQBALANCE_BANNED_CPULIST=";
        let now = environment.split('\0').find_map(|entry| entry.strip_prefix(name));
        match now.is_some_and(|now| same::same_cpus(now, wanted)) {
            true => State::InForce,
            false => {
                let by = match now {
                    Some(_) => vec![
                        "/etc/default/irqbalance or /etc/sysconfig/irqbalance".to_owned(),
                    ],
                    None => Vec::new(),
                };
                State::Differs { now: now.map(str::to_owned), by }
            }
        }
    }

    /// The state of the kubelet's CPU manager: reserved CPUs are always part of the shared ones.
    fn kubelet(&self, reserved: &str) -> State {
        let file = "/var/lib/kubelet/cpu_manager_state";
        let state = one(self.read, file);
        let state =
            state.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
        let Some(state) = state else {
            return unknown(&format!("{file} cannot be read: no kubelet runs here"));
        };
        let text = |key: &str| state[key].as_str().unwrap_or_default().to_owned();
        let (policy, shared) = (text("policyName"), text("defaultCpuSet"));
        let shared_cpus: CpuSet = shared.parse().unwrap_or_default();
        let is_shared = reserved
            .parse()
            .is_ok_and(|reserved: CpuSet| reserved.without(&shared_cpus).is_empty());
        match policy == "static" && is_shared {
            true => State::InForce,
            false => {
                let now = Some(format!("policy {policy}, shared CPUs {shared}"));
                State::Differs { now, by: self.services(|it| it == "kubelet") }
            }
        }
    }

    /// Those that run and could have changed something.
    fn services(&self, could: impl Fn(&str) -> bool) -> Vec<String> {
        let services = self.machine.facts().settings.services.get().into_iter().flatten();
        services.filter(|service| could(service)).cloned().collect()
    }

    /// The files that set this sysctl to another value at boot.
    fn sysctl_files(&self, path: &str, wanted: &str) -> Vec<String> {
        let Some(key) = path.strip_prefix("/proc/sys/") else { return Vec::new() };
        let key = key.replace('/', ".");
        let files = SYSCTL_FILES.iter().flat_map(|files| (self.read)(files));
        let sets = |(file, text): (String, Option<String>)| {
            let text = text?;
            let sets_other = facts::sysctl_assignments(&text)
                .any(|(name, value)| name == key && !same(path, value, wanted));
            sets_other.then_some(file)
        };
        files.filter_map(sets).collect()
    }
}

fn unknown(why: &str) -> State {
    State::Unknown { why: why.to_owned() }
}

/// Whether a service is known to write such a file. `tuned-profiles(7)`; the drivers of power-profiles-daemon;
/// `thermald(8)`; the kubelet sets the sysctls of `--protect-kernel-defaults`, runtimes of containers those of the
/// network.
fn could_change(service: &str, name: &str, path: &str) -> bool {
    let has = |parts: &[&str]| parts.iter().any(|part| path.contains(part));
    match service {
        "tuned" => true,
        "irqbalance" => path.starts_with("/proc/irq/"),
        "power-profiles-daemon" => {
            name == "governor"
                || has(&[
                    "/platform_profile",
                    "energy_",
                    "/boost",
                    "no_turbo",
                    "amd_pstate",
                ])
        }
        "thermald" => has(&["intel_pstate", "/cpufreq/"]),
        "ksmtuned" => has(&["/mm/ksm/"]),
        "containerd" | "crio" | "docker" => has(&["/proc/sys/net/"]),
        "kubelet" => has(&[
            "/proc/sys/net/",
            "/vm/overcommit_memory",
            "/vm/panic_on_oom",
            "/kernel/panic",
            "/kernel/keys/",
        ]),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
