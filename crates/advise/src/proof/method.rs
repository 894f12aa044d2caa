//! The measurement that shows the effect of a change: by what the rule acts on, or else by the goal.
//!
//! A measurement cannot see what its machine does not do in the meantime: compaction without free huge pages, an
//! interrupt without packets.

use serde::Serialize;

use crate::rule::Goal;

/// The kernel instructions of all timer interrupts of a busy loop in a guest: zero without a tick.
pub const TICKS_INSTRUCTIONS: &str = "ticks_instructions_sum";

/// A measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The share of its time that a busy loop loses.
    Noise,
    /// The delays of timer wake-ups.
    Latency,
    /// The timer interrupts of a CPU that is left alone.
    Ticks,
    /// The run time of a program.
    Program,
}

impl Method {
    /// The measurement for a rule that acts on that source of noise, if any.
    pub fn of(goal: Goal, acts_on: Option<&str>) -> Self {
        match (acts_on, goal) {
            (Some("wake-up"), _) => Self::Latency,
            (Some("idle"), _) => Self::Ticks,
            (Some(_), _) => Self::Noise,
            (None, Goal::Latency | Goal::Realtime) => Self::Latency,
            (None, Goal::Idle) => Self::Ticks,
            (
                None,
                Goal::Throughput
                | Goal::Hpc
                | Goal::Benchmark
                | Goal::VmGuest
                | Goal::VmHost
                | Goal::ContainerHost,
            ) => Self::Noise,
        }
    }

    /// The metric that is compared.
    pub fn metric(self) -> &'static str {
        match self {
            Self::Noise => "noise_ppm",
            Self::Latency => "late_ns_p99",
            Self::Ticks => "timer_hz",
            Self::Program => "run_ns",
        }
    }

    /// The metric that is compared in guests; `None`: [`TICKS_INSTRUCTIONS`], which is no metric of cells. A program of this
    /// machine is not run in guests.
    pub(crate) fn guest_metric(self) -> Option<&'static str> {
        match self {
            Self::Noise | Self::Program => None,
            Self::Latency => Some("late_ns_p99"),
            Self::Ticks => Some("idle_instructions_hz"),
        }
    }

    /// An experiment of the lab that shows it of kernels.
    pub fn experiment(self) -> &'static str {
        match self {
            Self::Noise | Self::Program => "tick-cost",
            Self::Latency => "wake-delay",
            Self::Ticks => "idle-cost",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that what a rule acts on decides before the goal does, and that every metric exists.
    #[test]
    fn methods() {
        for (goal, acts_on, expected) in [
            (Goal::Hpc, Some("wake-up"), Method::Latency),
            (Goal::Latency, Some("timer"), Method::Noise),
            (Goal::Latency, Some("thread:ksmd"), Method::Noise),
            (Goal::Benchmark, Some("idle"), Method::Ticks),
            (Goal::Realtime, None, Method::Latency),
            (Goal::Idle, None, Method::Ticks),
            (Goal::VmHost, None, Method::Noise),
        ] {
            assert_eq!(Method::of(goal, acts_on), expected, "{goal} {acts_on:?}");
        }
        // Its name in reports is not that of a metric of cells.
        assert!(summary::definition(TICKS_INSTRUCTIONS).is_none());
        for method in [Method::Noise, Method::Latency, Method::Ticks, Method::Program] {
            for metric in method.guest_metric().into_iter().chain([method.metric()]) {
                assert!(summary::definition(metric).is_some(), "{metric}");
            }
        }
    }
}
