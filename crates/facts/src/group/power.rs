//! Power management: frequency governor, idle states and the limit of their exit latency.
//!
//! From `/sys/devices/system/cpu/cpufreq` (one directory for CPUs that share a frequency, since
//! 4.3; before that `cpuN/cpufreq`) and `.../cpuidle` (since 2.6.24). Idle states are those of CPU
//! 0. Most guests have no frequency driver: the hypervisor controls the frequency. Changes by
//! firmware are not visible.
//!
//! The limit is that of all processes and drivers (PM QoS, `kernel/power/qos.c`): 32 bits in the
//! machine's byte order, read from `/dev/cpu_dma_latency` (since 2.6.39; until 2.6.38 it could only
//! be written). Opening this file adds a request with the default value, which changes nothing.
//! Limits of single CPUs (`pm_qos_resume_latency_us`) are not included.

use std::collections::BTreeSet;

use units::Cpu;

use crate::absence::Needs;
use crate::fact::{Fact, Unknown, Why, group};
use crate::format::idle::{IdleState, folder, idle_states};
use crate::sources::Sources;
use crate::tree::holders::FOLDERS;

const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";
/// The CPU of which idle states are read.
const BOOT: Cpu = Cpu::new(0);
const FIRST: &str = "/sys/devices/system/cpu/cpu0/cpufreq";
const IDLE: &str = "/sys/devices/system/cpu/cpuidle";
const DMA_LATENCY: &str = "/dev/cpu_dma_latency";
/// The value without a limit (`PM_QOS_CPU_LATENCY_DEFAULT_VALUE`).
const NO_LIMIT: i32 = 2_000_000_000;

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
        /// The limit of the idle states' exit latency in microseconds; `None` if there is none.
        dma_latency_us: Option<i32>,
        /// The processes that have the file of the limit open, as `NAME (PID)`; empty without a
        /// limit.
        dma_latency_holders: Vec<String>,
    }
}

impl Power {
    pub(crate) fn read(sources: &Sources) -> Self {
        let idle = Needs::since("2.6.24").with(&["CPU_IDLE"]);
        let states = idle_states(sources.root, BOOT)
            .map_err(|unknown| sources.why(&unknown, &idle));
        let limit = dma_latency(sources);
        Self {
            driver: driver(sources),
            governor: governor(sources),
            idle_driver: sources
                .explain(&sources.word(&format!("{IDLE}/current_driver")), &idle),
            idle_governor: sources.explain(&idle_governor(sources), &idle),
            idle_states: Fact::of(states, format!("{}/state*", folder(BOOT))),
            dma_latency_holders: Fact::of(dma_latency_holders(sources, &limit), FOLDERS),
            dma_latency_us: Fact::of(limit, DMA_LATENCY),
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

/// Since 5.7, kernels without idle states have no limit.
fn dma_latency(sources: &Sources) -> Result<Option<i32>, Unknown> {
    let options: &[_] =
        if sources.at_least(5, 7) == Some(true) { &["CPU_IDLE"] } else { &[] };
    let needs = Needs::since("2.6.39").with(options);
    let bytes =
        sources.root.bytes(DMA_LATENCY).map_err(|why| sources.why(&why, &needs))?;
    let bytes = bytes.as_slice().try_into().map_err(|_| {
        let text = format!("{DMA_LATENCY} has {} bytes instead of 4", bytes.len());
        Unknown::new(Why::Garbage, text)
    })?;
    Ok(Some(i32::from_ne_bytes(bytes)).filter(|&limit| limit < NO_LIMIT))
}

/// Only with a limit: to find them, the open files of all processes are read, which takes many
/// milliseconds.
fn dma_latency_holders(
    sources: &Sources,
    limit: &Result<Option<i32>, Unknown>,
) -> Result<Vec<String>, Unknown> {
    match limit {
        Ok(Some(_)) => sources.root.holders(DMA_LATENCY),
        Ok(None) => Ok(Vec::new()),
        Err(unknown) => Err(unknown.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::{Tree, tree, tree_refusing};
    use crate::tree::root::Root;

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

    /// Check a limit, the value without one, and that the processes that hold it are not recorded in
    /// an older tree.
    #[test]
    fn dma_latency() {
        let read = |file: &[(&str, &str)]| Power::read(&tree(file).sources());
        let of = |limit: i32| {
            let bytes = limit.to_ne_bytes();
            read(&[(DMA_LATENCY, std::str::from_utf8(&bytes).unwrap())])
        };
        let held = of(20);
        assert_eq!(held.dma_latency_us, Fact::known(Some(20), DMA_LATENCY));
        let holders = held.dma_latency_holders;
        assert_eq!(holders.value().unwrap_err().code, Why::NotRecorded);
        assert_eq!(of(0).dma_latency_us.get(), Some(&Some(0)));
        let garbage = read(&[(DMA_LATENCY, "20\n")]).dma_latency_us;
        let text = &garbage.value().unwrap_err().text;
        assert_eq!(text, "/dev/cpu_dma_latency has 3 bytes instead of 4");
    }

    /// Check that without a limit no process holds one.
    #[test]
    fn no_dma_latency() {
        let root = Root::files([(DMA_LATENCY.to_owned(), NO_LIMIT.to_ne_bytes().into())]);
        let power = Power::read(&Sources::read(&root));
        assert_eq!(power.dma_latency_us.get(), Some(&None));
        assert_eq!(power.dma_latency_holders.get(), Some(&Vec::new()));
    }

    /// Check the reasons for an unknown limit, which are those of its holders as well: privileges, and
    /// kernels without it.
    #[test]
    fn unknown_dma_latency() {
        let refused = tree_refusing(&[], &[(DMA_LATENCY, Why::NeedsRoot)]);
        let power = Power::read(&refused.sources());
        let why = power.dma_latency_us.value().unwrap_err();
        assert_eq!(why.code, Why::NeedsRoot);
        assert_eq!(power.dma_latency_holders.value().unwrap_err(), why);
        let why = |release, config| {
            let config_file = format!("/boot/config-{release}");
            let files = [("/proc/sys/kernel/osrelease", release), (&config_file, config)];
            let limit = Power::read(&tree(&files).sources()).dma_latency_us;
            limit.value().unwrap_err().code
        };
        assert_eq!(why("2.6.18", "CONFIG_HZ=250\n"), Why::TooOld);
        assert_eq!(why("4.19.0", "CONFIG_HZ=250\n"), Why::Absent);
        assert_eq!(why("6.1.0", "CONFIG_HZ=250\n"), Why::NotConfigured);
        assert_eq!(why("6.1.0", "CONFIG_CPU_IDLE=y\n"), Why::Absent);
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
