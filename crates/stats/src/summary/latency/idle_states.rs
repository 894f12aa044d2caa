//! The idle states of a CPU: which of them it might enter, and what they were used for.

use recording::IdleUse;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use units::{Nanos, Ppm};

use crate::LatencySummary;

/// What the kernel has where waking a CPU may take as long as it takes
/// (`PM_QOS_CPU_LATENCY_DEFAULT_VALUE` in `include/linux/pm_qos.h`), in microseconds.
pub const NO_WAKE_LIMIT: u32 = 2_000_000_000;

/// An idle state of a CPU, and what it was used for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleStateSummary {
    /// The state's name: `C6`.
    pub name: String,
    /// How long waking up from it takes, in microseconds.
    pub latency_us: u64,
    /// Whether the CPU might enter it: not switched off, and not too deep for the limit; null where
    /// the limit is not known.
    pub allowed: Option<bool>,
    /// How often the CPU entered it.
    pub entered: u64,
    /// How long the CPU was in it.
    pub time_ns: Nanos,
}

impl IdleStateSummary {
    /// The summary of a state where waking might take so many microseconds.
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
    /// The state's name: `C6`.
    pub name: &'a str,
    /// How long waking up from it takes, in microseconds.
    pub latency_us: u64,
    /// Whether some CPU might enter it; `None` where that is not known.
    pub allowed: Option<bool>,
    /// For which part of the time CPUs were in it; `None` where no time passed.
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
