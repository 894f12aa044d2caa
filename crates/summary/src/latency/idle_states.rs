//! The idle states of a CPU: which of them it was allowed to enter, and their use.

use recording::IdleUse;
use serde::Serialize;
use units::Nanos;

/// The kernel's CPU latency limit if there is none (`PM_QOS_CPU_LATENCY_DEFAULT_VALUE` in
/// `include/linux/pm_qos.h`), in microseconds.
pub const NO_WAKE_LIMIT: u32 = 2_000_000_000;

/// An idle state of a CPU, and its use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
