//! The idle states of a CPU: which of them it was allowed to enter, and their use.

use std::collections::BTreeSet;

use recording::IdleUse;
use serde::{Deserialize, Serialize};
use units::{Nanos, Ppm};

use crate::latency::LatencySummary;

/// The kernel's CPU latency limit if there is none (`PM_QOS_CPU_LATENCY_DEFAULT_VALUE` in
/// `include/linux/pm_qos.h`), in microseconds.
pub const NO_WAKE_LIMIT: u32 = 2_000_000_000;

/// An idle state of a CPU, and its use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleStateSummary {
    /// The name: `C6`.
    pub name: String,
    /// The exit latency in microseconds.
    pub latency_us: u64,
    /// Whether the CPU was allowed to enter it: not disabled, and with a latency within the limit; null
    /// if the limit is unknown.
    pub allowed: Option<bool>,
    /// How often the CPU entered it.
    pub entered: u64,
    /// The time in it.
    pub time_ns: Nanos,
}

impl IdleStateSummary {
    /// Summarizes a state under this latency limit.
    pub(crate) fn of(state: &IdleUse, wake_limit_us: Option<u32>) -> Self {
        let shallow = wake_limit_us.map(|limit| state.latency_us <= u64::from(limit));
        Self {
            name: state.name.clone(),
            latency_us: state.latency_us,
            allowed: if state.disabled { Some(false) } else { shallow },
            entered: state.entered,
            time_ns: state.time_ns,
        }
    }
}

/// An idle state of all CPUs together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdleStateUse<'a> {
    /// The name: `C6`.
    pub name: &'a str,
    /// The exit latency in microseconds.
    pub latency_us: u64,
    /// Whether any CPU was allowed to enter it; `None` if unknown.
    pub allowed: Option<bool>,
    /// The share of the CPUs' time in it; `None` if no time passed.
    pub share: Option<Ppm>,
}

impl LatencySummary {
    /// The states of all CPUs, the shallowest first.
    pub fn idle_states(&self) -> Vec<IdleStateUse<'_>> {
        let all = || self.cpus.iter().flat_map(|cpu| &cpu.idle_states);
        let names: BTreeSet<(u64, &str)> =
            all().map(|state| (state.latency_us, state.name.as_str())).collect();
        let whole: Nanos = self.cpus.iter().map(|cpu| cpu.elapsed_ns).sum();
        let together = |(latency_us, name)| {
            let same = |state: &&IdleStateSummary| {
                (state.latency_us, state.name.as_str()) == (latency_us, name)
            };
            let time: Nanos = all().filter(same).map(|state| state.time_ns).sum();
            let known = |allowed: &Option<bool>| allowed.map_or(1, |is| 2 * u8::from(is));
            let allowed = all().filter(same).map(|state| state.allowed);
            IdleStateUse {
                name,
                latency_us,
                allowed: allowed.max_by_key(known).flatten(),
                share: Ppm::of(time.min(whole), whole),
            }
        };
        names.into_iter().map(together).collect()
    }
}
