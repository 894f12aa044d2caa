//! The use of idle states by all CPUs together.

use std::collections::BTreeSet;

use units::{Nanos, Ppm};

use crate::latency::LatencySummary;
use crate::latency::idle_states::IdleStateSummary;

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
