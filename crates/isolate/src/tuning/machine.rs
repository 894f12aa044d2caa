//! The settings of the machine besides the scheduler's: sysctls, files of sysfs, and groups of files with
//! a name of their own.
//!
//! | name | files |
//! |---|---|
//! | `vm.stat_interval` | a sysctl: `/proc/sys/vm/stat_interval` (`sysctl(8)`) |
//! | `/sys/...`, `/proc/...` | that file |
//! | `governor` | `cpufreq/scaling_governor` of each CPU (`admin-guide/pm/cpufreq.rst`) |
//! | `idle_latency_us` | `disable` of each idle state with a longer exit latency (`admin-guide/pm/cpuidle.rst`) |
//! | `thp` | `/sys/kernel/mm/transparent_hugepage/enabled` (`admin-guide/mm/transhuge.rst`) |
//! | `workqueues` | the CPUs of unbound workqueues (`core-api/workqueue.rst`) |
//! | `irqs` | the CPUs of all device interrupts (`core-api/irq/irq-affinity.rst`) |
//! | `partition` | an isolated cpuset partition (`admin-guide/cgroup-v2.rst`) |
//!
//! Which files can be changed is determined by [`crate::settings::paths`]: what names a program, or cannot be
//! undone, is never changed.

use facts::{Facts, Root, Unknown, Why};
use units::{Cause, CpuSet};

use crate::error::{Error, Kind};
use crate::isolation::partition;
use crate::settings::change::Change;
use crate::settings::paths;
use crate::settings::setting::{Setting, choices};
use crate::tuning::{Group, Tuning};

const CPUS: &str = "/sys/devices/system/cpu";
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const WORKQUEUES: &str = "/sys/devices/virtual/workqueue/cpumask";
const IRQS: &str = "/proc/irq";

/// Limits of which the kernel uses one of two, in bytes or in percent: a change of one sets the other to 0
/// (`mm/page-writeback.c`, `mm/util.c`), which the journal does not restore.
const ONE_OF_TWO: [&str; 6] = [
    "/proc/sys/vm/dirty_background_bytes",
    "/proc/sys/vm/dirty_background_ratio",
    "/proc/sys/vm/dirty_bytes",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/overcommit_kbytes",
    "/proc/sys/vm/overcommit_ratio",
];

/// The machine whose settings are changed.
pub(crate) struct Machine<'a> {
    pub(crate) root: &'a Root,
    pub(crate) facts: &'a Facts,
}

impl Machine<'_> {
    /// The changes of a group of files.
    ///
    /// # Errors
    /// `Kind::NoSetting` if this machine has none of them, and those of the partition.
    pub(crate) fn of_group(
        &self,
        tuning: &Tuning,
        group: Group,
    ) -> Result<Vec<Change>, Error> {
        let changes = match group {
            Group::Thp => vec![self.of_file(tuning, THP)?],
            Group::Governor => self.governors(tuning)?,
            Group::IdleLatency => self.idle_states(tuning)?,
            Group::Workqueues => vec![self.workqueues(tuning)?],
            Group::Irqs => self.irqs(tuning)?,
            Group::Partition => partition::of(&cpus(tuning)?, self.facts)
                .into_iter()
                .collect::<Result<_, _>>()?,
        };
        match changes.is_empty() {
            true => {
                let text = format!("{tuning}: {}", group.missing());
                Err(Error::new(Kind::NoSetting, text))
            }
            false => Ok(changes),
        }
    }

    /// The change of a file.
    ///
    /// # Errors
    /// `Kind::NoSetting` if it does not exist, `Kind::Unsafe` if noisefloor never changes it, or it
    /// would reset another setting, `Kind::Tuning` if it has other values only.
    pub(crate) fn of_file(&self, tuning: &Tuning, path: &str) -> Result<Change, Error> {
        let never = |why: Cause| Error::new(Kind::Unsafe, format!("{tuning}: {why}"));
        paths::any_file(path.as_ref()).map_err(|why| never(why.into()))?;
        let now = self.root.text(path).map_err(|why| unknown(tuning, &why))?;
        if ONE_OF_TWO.contains(&path) && now.trim() == "0" {
            let text =
                "its counterpart is in use (in percent or bytes), and would be reset";
            return Err(never(text.into()));
        }
        let words: Vec<&str> = choices(&now).map(|(word, _)| word).collect();
        if !choices(&now).any(|(_, is_chosen)| is_chosen) {
            let value = like(&now, tuning.value());
            return Ok(Change::new(Setting::File(path.into()), value));
        }
        if !words.contains(&tuning.value()) {
            let text = format!("{tuning}: the values are {}", words.join(", "));
            return Err(Error::new(Kind::Tuning, text));
        }
        Ok(Change::new(Setting::Choice(path.into()), tuning.value()))
    }

    /// The governor of each CPU.
    fn governors(&self, tuning: &Tuning) -> Result<Vec<Change>, Error> {
        let mut changes = Vec::new();
        for cpu in self.cpus() {
            let folder = format!("{CPUS}/{cpu}/cpufreq");
            let Ok(all) =
                self.root.text(&format!("{folder}/scaling_available_governors"))
            else {
                continue;
            };
            if !all.split_whitespace().any(|name| name == tuning.value()) {
                let text = format!("{tuning}: the governors of {cpu} are {}", all.trim());
                return Err(Error::new(Kind::Tuning, text));
            }
            changes.push(self.of_file(tuning, &format!("{folder}/scaling_governor"))?);
        }
        Ok(changes)
    }

    /// The idle states with a longer exit latency, which are disabled.
    fn idle_states(&self, tuning: &Tuning) -> Result<Vec<Change>, Error> {
        let limit: u64 = tuning.value().parse().unwrap_or(u64::MAX);
        let mut changes = Vec::new();
        for cpu in self.cpus() {
            let states = format!("{CPUS}/{cpu}/cpuidle");
            for state in self.root.list(&states).unwrap_or_default() {
                let latency = self.root.text(&format!("{states}/{state}/latency"));
                let latency = latency.ok().and_then(|text| text.trim().parse().ok());
                if latency.is_some_and(|latency: u64| latency > limit) {
                    let path = format!("{states}/{state}/disable");
                    paths::file(path.as_ref())
                        .map_err(|why| Error::new(Kind::Unsafe, why.to_string()))?;
                    changes.push(Change::of_file(path.into(), "1"));
                }
            }
        }
        Ok(changes)
    }

    fn workqueues(&self, tuning: &Tuning) -> Result<Change, Error> {
        let now = self.root.text(WORKQUEUES).map_err(|why| unknown(tuning, &why))?;
        let mask = cpus(tuning)?.to_mask(now.trim());
        Ok(Change::of_file(WORKQUEUES.into(), mask))
    }

    /// The lists of all interrupts, and the mask of new ones.
    fn irqs(&self, tuning: &Tuning) -> Result<Vec<Change>, Error> {
        let (cpus, mut changes) = (cpus(tuning)?, Vec::new());
        for irq in self.root.list(IRQS).map_err(|why| unknown(tuning, &why))? {
            let path = format!("{IRQS}/{irq}/smp_affinity_list");
            let Ok(now) = self.root.text(&path) else { continue };
            let value = like_list(&now, &cpus);
            changes.push(Change::of_file(path.into(), value));
        }
        let default = format!("{IRQS}/default_smp_affinity");
        if let Ok(now) = self.root.text(&default) {
            let mask = cpus.to_mask(now.trim());
            changes.push(Change::of_file(default.into(), mask));
        }
        Ok(changes)
    }

    /// The names of the CPUs' directories: `cpu0`, `cpu1`.
    fn cpus(&self) -> impl Iterator<Item = String> {
        let cpus = self.facts.cpus.online.get().cloned().unwrap_or_default();
        cpus.iter().map(|cpu| format!("cpu{cpu}")).collect::<Vec<_>>().into_iter()
    }
}

/// A list of CPUs as value; in the kernel's own form if that is the same set.
fn like_list(now: &str, cpus: &CpuSet) -> String {
    let is_same = now.trim().parse().is_ok_and(|now: CpuSet| now == *cpus);
    if is_same { now.trim().to_owned() } else { cpus.to_list() }
}

/// A value with tabs between its words if the kernel prints them so.
fn like(now: &str, value: &str) -> String {
    match now.trim().contains('\t') {
        true => value.split_whitespace().collect::<Vec<_>>().join("\t"),
        false => value.to_owned(),
    }
}

fn cpus(tuning: &Tuning) -> Result<CpuSet, Error> {
    let text = || format!("{tuning}: not a list of CPUs");
    tuning.value().parse().map_err(|why: units::CpuListError| {
        Error::new(Kind::Tuning, text()).caused_by(why)
    })
}

/// The error for a file that cannot be read.
fn unknown(tuning: &Tuning, why: &Unknown) -> Error {
    let kind = match why.code {
        Why::NeedsRoot | Why::Lockdown => Kind::Privilege,
        Why::Absent
        | Why::NotMounted
        | Why::TooOld
        | Why::TooNew
        | Why::NotConfigured
        | Why::NotExported
        | Why::NotApplicable
        | Why::Garbage
        | Why::NotRecorded => Kind::NoSetting,
    };
    Error::new(kind, format!("{tuning}: {why}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::settings::change::To;
    use crate::tuning::Sort;

    const FILES: [(&str, &str); 18] = [
        ("/proc/version", "Linux version"),
        ("/proc/sys/vm/stat_interval", "1\n"),
        ("/proc/sys/vm/dirty_bytes", "0\n"),
        ("/proc/sys/vm/dirty_ratio", "20\n"),
        ("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
        ("/proc/irq/9/smp_affinity_list", "0-3\n"),
        ("/proc/irq/17/smp_affinity_list", "0\n"),
        ("/proc/irq/default_smp_affinity", "f\n"),
        ("/sys/devices/virtual/workqueue/cpumask", "f\n"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("/sys/devices/system/cpu/online", "0-1\n"),
        ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
        (
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors",
            "performance powersave \n",
        ),
        ("/sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "0\n"),
        ("/sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "2\n"),
        ("/sys/devices/system/cpu/cpu0/cpuidle/state2/latency", "90\n"),
        ("/sys/devices/system/cpu/cpu1/cpuidle/state1/latency", "2\n"),
        ("/sys/devices/system/cpu/cpu1/cpuidle/state2/latency", "90\n"),
    ];

    /// The changes on a machine with these files: `path=value`.
    fn changes(text: &str) -> Result<Vec<String>, Error> {
        let tree = tempfile::tempdir().unwrap();
        for (path, text) in FILES {
            let place = tree.path().join(&path[1..]);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        let root = Root::tree(tree.path()).unwrap();
        let facts = Facts::read(&root);
        let machine = Machine { root: &root, facts: &facts };
        let tuning: Tuning = text.parse().unwrap();
        let changes = match tuning.sort() {
            Sort::File(path) => vec![machine.of_file(&tuning, path)?],
            Sort::Group(group) => machine.of_group(&tuning, *group)?,
            Sort::Feature | Sort::Tunable | Sort::Preempt => panic!("of the scheduler"),
        };
        let shown = |change: &Change| {
            let To::Value(value) = &change.to else { panic!("{change:?}") };
            format!("{}={value}", change.setting)
        };
        Ok(changes.iter().map(shown).collect())
    }

    fn kind(text: &str) -> Kind {
        changes(text).unwrap_err().kind()
    }

    /// Check the files and values of each kind of setting.
    #[test]
    fn files() {
        let cpu = "/sys/devices/system/cpu";
        let of = |text| changes(text).unwrap();
        assert_eq!(of("vm.stat_interval=10"), ["/proc/sys/vm/stat_interval=10"]);
        assert_eq!(of("vm.dirty_ratio=5"), ["/proc/sys/vm/dirty_ratio=5"]);
        let tabs = "/proc/sys/net/ipv4/tcp_rmem=4096\t1\t2";
        assert_eq!(of("net.ipv4.tcp_rmem=4096 1 2"), [tabs]);
        let thp = "/sys/kernel/mm/transparent_hugepage/enabled=never";
        assert_eq!(of("thp=never"), [thp]);
        let governor = format!("{cpu}/cpu0/cpufreq/scaling_governor=performance");
        assert_eq!(of("governor=performance"), [governor]);
        let deep = [0, 1].map(|n| format!("{cpu}/cpu{n}/cpuidle/state2/disable=1"));
        assert_eq!(of("idle_latency_us=2"), deep);
        assert_eq!(of("workqueues=0,2"), ["/sys/devices/virtual/workqueue/cpumask=5"]);
        let mut irqs = of("irqs=0-3");
        irqs.sort();
        let expected = ["17/smp_affinity_list=0-3", "9/smp_affinity_list=0-3"];
        let expected = expected.map(|end| format!("/proc/irq/{end}"));
        assert!(of("irqs=0-1").contains(&"/proc/irq/9/smp_affinity_list=0-1".to_owned()));
        let default = "/proc/irq/default_smp_affinity=f".to_owned();
        assert_eq!(irqs, [&expected[..], &[default]].concat());
    }

    /// Check what is refused: values that the machine does not have, missing files, and files that
    /// are never changed.
    #[test]
    fn refusals() {
        assert_eq!(kind("governor=schedutil"), Kind::Tuning);
        assert_eq!(kind("thp=sometimes"), Kind::Tuning);
        assert_eq!(kind("idle_latency_us=90"), Kind::NoSetting);
        assert_eq!(kind("vm.no_such_sysctl=1"), Kind::NoSetting);
        for text in [
            "kernel.core_pattern=|/bin/sh",
            "vm.drop_caches=3",
            "vm.dirty_bytes=67108864",
            "net.ipv4.conf.all.forwarding=1",
            "/sys/power/state=mem",
        ] {
            assert_eq!(kind(text), Kind::Unsafe, "{text}");
        }
    }
}
