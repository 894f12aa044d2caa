//! The cost of single requests to the kernel: parameters and measured values.

use serde::{Deserialize, Serialize};
use units::{Cpu, Nanos, TscHz};

use crate::phases::Phases;

/// A request to the kernel, which is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// `getpid(2)`: only entry to the kernel and exit.
    Getpid,
    /// `clock_gettime(2)` as a system call, without the vDSO.
    ClockGettime,
    /// A `futex(2)` wakes a thread on the same CPU that waits in one, and then waits
    /// for that thread's own wake-up: two wake-ups.
    Futex,
    /// A byte through a `pipe(2)` to a thread on the same CPU, and one back.
    Pipe,
    /// `sched_yield(2)` to another thread of the same CPU, and back: two switches.
    Switch,
    /// First touch of a fresh page of anonymous memory.
    PageFault,
    /// `fork(2)`, the child's `_exit(2)`, and the parent's wait for it.
    Fork,
    /// A `timerfd` set to expire in 100 us, and the read that sleeps until it expires.
    Timer,
}

impl Call {
    /// All calls.
    pub const ALL: [Self; 8] = [
        Self::Getpid,
        Self::ClockGettime,
        Self::Futex,
        Self::Pipe,
        Self::Switch,
        Self::PageFault,
        Self::Fork,
        Self::Timer,
    ];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Getpid => "getpid",
            Self::ClockGettime => "clock_gettime",
            Self::Futex => "futex",
            Self::Pipe => "pipe",
            Self::Switch => "switch",
            Self::PageFault => "page_fault",
            Self::Fork => "fork",
            Self::Timer => "timer",
        }
    }
}

/// The parameters of `calls`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallsSpec {
    /// The CPU on which all calls are made.
    pub cpu: Cpu,
    /// The calls, in order.
    pub calls: Vec<Call>,
    /// The number of repeats of each call.
    pub repeats: u32,
    /// Parts into which the repeats of each call are divided; `None`: one part, which
    /// begins at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
}

/// The measured values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallsSeries {
    /// The clock that was read: `tsc`, `cntvct` or `monotonic_raw`.
    pub clock: String,
    /// The clock's frequency, calibrated over the whole run.
    pub clock_hz: TscHz,
    /// The times, in the order of `CallsSpec::calls`.
    pub calls: Vec<CallTimes>,
}

/// How long each repeat of one call took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTimes {
    /// The call.
    pub call: Call,
    /// From one repeat's start to the next one's, in order.
    pub step_ns: Vec<Nanos>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the name of a call is its name in files.
    #[test]
    fn names() {
        for call in Call::ALL {
            assert_eq!(serde_json::to_value(call).unwrap(), call.name());
        }
    }
}
