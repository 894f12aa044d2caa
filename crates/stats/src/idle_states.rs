//! The idle states of a CPU: which of them it might enter, and what they were used for.

use recording::IdleUse;
use serde::{Deserialize, Serialize};
use units::Nanos;

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
