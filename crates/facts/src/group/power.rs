//! Power management: frequency governor and idle states.
//!
//! From `/sys/devices/system/cpu/cpufreq` (one directory for CPUs that share a frequency, since
//! 4.3; before that `cpuN/cpufreq`) and `.../cpuidle` (since 2.6.24). Idle states are those of CPU
//! 0. Most guests have no frequency driver: the hypervisor controls the frequency. Changes by
//! firmware are not visible.

use std::collections::BTreeSet;

use units::Cpu;

use crate::absence::Needs;
use crate::fact::{Fact, Unknown, Why, group};
use crate::format::idle::{IdleState, folder, idle_states};
use crate::sources::Sources;

const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";
/// The CPU of which idle states are read.
const BOOT: Cpu = Cpu::new(0);
const FIRST: &str = "/sys/devices/system/cpu/cpu0/cpufreq";
const IDLE: &str = "/sys/devices/system/cpu/cpuidle";

group! {
    /// Power.
    "power" Power {
        /// The frequency driver.
        driver: String,
        /// The frequency governor; a comma-separated list if CPUs differ.
        governor: String,
        /// The idle driver.
        idle_driver: String,
        /// The idle governor.
        idle_governor: String,
        /// The idle states.
        idle_states: Vec<IdleState>,
    }
}

impl Power {
    pub(crate) fn read(sources: &Sources) -> Self {
        let idle = Needs::since("2.6.24").with(&["CPU_IDLE"]);
        let states = idle_states(sources.root, BOOT)
            .map_err(|unknown| sources.why(&unknown, &idle));
        Self {
            driver: driver(sources),
            governor: governor(sources),
            idle_driver: sources
                .explain(&sources.word(&format!("{IDLE}/current_driver")), &idle),
            idle_governor: sources.explain(&idle_governor(sources), &idle),
            idle_states: Fact::of(states, format!("{}/state*", folder(BOOT))),
        }
    }
}

fn driver(sources: &Sources) -> Fact<String> {
    frequency(sources, sources.word(&format!("{FIRST}/scaling_driver")))
}

/// The governors of all CPUs, without duplicates.
fn governor(sources: &Sources) -> Fact<String> {
    let first = sources.word(&format!("{FIRST}/scaling_governor"));
    if first.get().is_none() {
        return frequency(sources, first);
    }
    let names = sources.root.list(POLICIES).unwrap_or_default();
    let policies = names.iter().filter(|name| name.starts_with("policy"));
    let governors: BTreeSet<String> = policies
        .filter_map(|policy| {
            let file = format!("{POLICIES}/{policy}/scaling_governor");
            sources.word(&file).get().cloned()
        })
        .collect();
    if governors.len() < 2 {
        return first;
    }
    let governors = governors.into_iter().collect::<Vec<_>>().join(",");
    Fact::known(governors, format!("{POLICIES}/policy*/scaling_governor"))
}

/// Replaces the reason if there is no frequency driver.
fn frequency(sources: &Sources, fact: Fact<String>) -> Fact<String> {
    let fact = sources.explain(&fact, &Needs::options(&["CPU_FREQ"]));
    match fact.value() {
        Err(unknown) if unknown.code == Why::Absent => {
            let text =
                "no frequency driver is loaded; in a guest, the host sets the frequency";
            Fact::unknown(Unknown::new(Why::Absent, text), fact.source())
        }
        _ => fact,
    }
}

/// Until 5.7, the governor could be changed only with a boot parameter, and was otherwise in
/// another file.
fn idle_governor(sources: &Sources) -> Fact<String> {
    let current = sources.word(&format!("{IDLE}/current_governor"));
    if current.get().is_some() {
        return current;
    }
    let fixed = sources.word(&format!("{IDLE}/current_governor_ro"));
    if fixed.get().is_some() { fixed } else { current }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::{Tree, tree};

    fn files(pairs: &[(String, &str)]) -> Tree {
        let pairs: Vec<_> =
            pairs.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        tree(&pairs)
    }

    /// Check the idle driver, its governor and CPU 0's states.
    #[test]
    fn idle() {
        let tree = files(&[
            (format!("{}/state0/name", folder(BOOT)), "POLL\n"),
            (format!("{}/state0/latency", folder(BOOT)), "0\n"),
            (format!("{IDLE}/current_driver"), "haltpoll\n"),
            (format!("{IDLE}/current_governor_ro"), "menu\n"),
        ]);
        let power = Power::read(&tree.sources());
        assert_eq!(power.idle_states.get().unwrap().len(), 1);
        assert_eq!(power.idle_driver.get().unwrap(), "haltpoll");
        assert_eq!(power.idle_governor.get().unwrap(), "menu");
        assert!(power.idle_governor.source().ends_with("current_governor_ro"));
    }

    /// Check that different governors are listed without duplicates.
    #[test]
    fn governors() {
        let policy = |number: u32| format!("{POLICIES}/policy{number}/scaling_governor");
        let governor = |last: &str| {
            let tree = files(&[
                (format!("{FIRST}/scaling_driver"), "intel_pstate\n"),
                (format!("{FIRST}/scaling_governor"), "powersave\n"),
                (policy(0), "powersave\n"),
                (policy(1), last),
            ]);
            let power = Power::read(&tree.sources());
            assert_eq!(power.driver.get().unwrap(), "intel_pstate");
            power.governor.get().cloned().unwrap()
        };
        assert_eq!(governor("powersave\n"), "powersave");
        assert_eq!(governor("performance\n"), "performance,powersave");
    }

    /// Check that a missing driver and a kernel without the option are distinguished.
    #[test]
    fn no_frequency_driver() {
        let driver = |config| {
            let release = ("/proc/sys/kernel/osrelease", "6.1.0");
            let tree = tree(&[release, ("/boot/config-6.1.0", config)]);
            Power::read(&tree.sources()).driver.value().unwrap_err().clone()
        };
        assert_eq!(driver("CONFIG_HZ=250\n").code, Why::NotConfigured);
        let loaded = driver("CONFIG_CPU_FREQ=y\n");
        assert_eq!(loaded.code, Why::Absent);
        assert!(loaded.text.contains("no frequency driver"));
    }
}
