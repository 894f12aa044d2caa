//! The idle states of a CPU and their usage.
//!
//! From `/sys/devices/system/cpu/cpuN/cpuidle/stateM` (since 2.6.24;
//! `Documentation/admin-guide/pm/cpuidle.rst`). `entered` and `time_us` are updated when the CPU
//! leaves the state. The state that the hardware or hypervisor actually used is unknown.

use serde::{Deserialize, Serialize};
use units::Cpu;

use crate::fact::{Unknown, Why};
use crate::tree::root::Root;

/// The kernel supports ten (`CPUIDLE_STATE_MAX`).
const STATES_MAX: usize = 10;

/// An idle state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleState {
    /// The name: `C6`.
    pub name: String,
    /// The exit latency in microseconds.
    pub latency_us: u64,
    /// Whether the state is disabled.
    pub disabled: bool,
}

/// The usage of an idle state since boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleCount {
    /// The state.
    pub state: IdleState,
    /// How often the CPU entered the state.
    pub entered: u64,
    /// The total time in the state, in microseconds.
    pub time_us: u64,
}

/// The directory of a CPU's idle states.
pub(crate) fn folder(cpu: Cpu) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle")
}

/// The idle states of a CPU, the shallowest first.
pub(crate) fn idle_states(root: &Root, cpu: Cpu) -> Result<Vec<IdleState>, Unknown> {
    each(|number| state(root, cpu, number))
}

/// The usage of a CPU's idle states since boot, the shallowest first.
///
/// # Errors
/// `Why::Absent` if no idle driver is loaded, or it has no states; otherwise why a file cannot be
/// read.
pub fn idle_counts(root: &Root, cpu: Cpu) -> Result<Vec<IdleCount>, Unknown> {
    let folder = folder(cpu);
    each(|number| {
        let count = |name: &str| {
            root.parsed::<u64>(&format!("{folder}/state{number}/{name}"), "a number")
        };
        let state = state(root, cpu, number)?;
        Ok(IdleCount { state, entered: count("usage")?, time_us: count("time")? })
    })
}

/// The limit on the exit latency of a CPU in microseconds, if one is set for this CPU
/// (`pm_qos_resume_latency_us`, since 4.16: 0 is no limit, `n/a` is a limit of zero).
pub fn resume_limit_us(root: &Root, cpu: Cpu) -> Option<u32> {
    let file = format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us");
    match root.line(&file).ok()?.as_str() {
        "n/a" => Some(0),
        text => text.parse().ok().filter(|&limit| limit > 0),
    }
}

fn each<T>(read: impl Fn(usize) -> Result<T, Unknown>) -> Result<Vec<T>, Unknown> {
    let mut states = Vec::new();
    for number in 0..STATES_MAX {
        match read(number) {
            Ok(state) => states.push(state),
            Err(unknown) if unknown.code == Why::Absent && number > 0 => break,
            Err(unknown) if unknown.code == Why::Absent => {
                let text = "no idle driver is loaded, or it has no states";
                return Err(Unknown::new(Why::Absent, text));
            }
            Err(unknown) => return Err(unknown),
        }
    }
    Ok(states)
}

fn state(root: &Root, cpu: Cpu, number: usize) -> Result<IdleState, Unknown> {
    let folder = folder(cpu);
    let file = |name: &str| format!("{folder}/state{number}/{name}");
    let name = root.line(&file("name"))?;
    let latency_us = root.parsed(&file("latency"), "a number")?;
    // A number with one bit for each source that disabled the state, or 0; before 3.4, the file
    // did not exist, and states could not be disabled.
    let disabled = match root.parsed::<u64>(&file("disable"), "a number") {
        Ok(sources) => sources != 0,
        Err(unknown) if unknown.code == Why::Absent => false,
        Err(unknown) => return Err(unknown),
    };
    Ok(IdleState { name, latency_us, disabled })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    const FOLDER: &str = "/sys/devices/system/cpu/cpu1/cpuidle";

    /// Check the idle states of a machine, of which one is disabled, and their usage.
    #[test]
    fn states_and_counts() {
        let files = [
            ("state0/name", "POLL\n"),
            ("state0/latency", "0\n"),
            ("state0/disable", "0\n"),
            ("state0/usage", "7\n"),
            ("state0/time", "70\n"),
            ("state1/name", "haltpoll idle\n"),
            ("state1/latency", "1\n"),
            ("state1/disable", "1\n"),
            ("state1/usage", "8\n"),
            ("state1/time", "80\n"),
            ("state2/name", "C6\n"),
            ("state2/latency", "133\n"),
            ("state2/usage", "0\n"),
            ("state2/time", "0\n"),
        ];
        let files = files.map(|(name, text)| (format!("{FOLDER}/{name}"), text));
        let pairs: Vec<_> =
            files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let tree = tree(&pairs);
        let root = tree.sources().root;
        let count = |name: &str, latency_us, disabled, entered, time_us| IdleCount {
            state: IdleState { name: name.to_owned(), latency_us, disabled },
            entered,
            time_us,
        };
        let expected = [
            count("POLL", 0, false, 7, 70),
            count("haltpoll idle", 1, true, 8, 80),
            count("C6", 133, false, 0, 0),
        ];
        assert_eq!(idle_counts(root, Cpu::new(1)).unwrap(), expected);
        let states = expected.map(|count| count.state);
        assert_eq!(idle_states(root, Cpu::new(1)).unwrap(), states);
        let none = idle_counts(root, Cpu::new(0)).unwrap_err();
        assert_eq!(none.code, Why::Absent);
    }

    /// Check that an invalid state is an error.
    #[test]
    fn invalid_state() {
        let path = |name: &str| format!("{FOLDER}/{name}");
        let tree = tree(&[
            (&path("state0/name"), "POLL\n"),
            (&path("state0/latency"), "0\n"),
            (&path("state1/name"), "C1\n"),
            (&path("state1/latency"), "long\n"),
        ]);
        let states = idle_states(tree.sources().root, Cpu::new(1));
        assert_eq!(states.unwrap_err().code, Why::Garbage);
    }

    /// Check that `0` (no limit) and `n/a` (a limit of zero) are distinguished.
    #[test]
    fn resume_limits() {
        let limit = |text: &str| {
            let file = "/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us";
            resume_limit_us(tree(&[(file, text)]).sources().root, Cpu::new(1))
        };
        assert_eq!(
            [limit("0\n"), limit("n/a\n"), limit("20\n")],
            [None, Some(0), Some(20)]
        );
    }
}
