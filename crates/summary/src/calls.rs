//! The summary of `calls`: the duration of one repeat of each call.
//!
//! A repeat lasts until the next one starts. Its time therefore includes the loop around the call
//! and interruptions: the minimum is the call itself, the maximum an interrupted one.

use recording::{CallTimes, CallsSeries, CallsSpec};
use serde::Serialize;
use stats::{Distribution, Repeats};
use units::Cpu;

/// The cost of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallSummary {
    /// The name: `getpid`.
    pub name: String,
    /// The number of repeats.
    pub repeats: u64,
    /// The durations of the repeats.
    pub step_ns: Distribution<Repeats>,
}

/// The cost of single calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallsSummary {
    /// The measured CPU.
    pub cpu: Cpu,
    /// Each call, in the order of the parameters.
    pub calls: Vec<CallSummary>,
}

impl CallsSummary {
    /// Summarizes each call.
    pub fn of(spec: &CallsSpec, series: &CallsSeries) -> Self {
        Self { cpu: spec.cpu, calls: series.calls.iter().map(CallSummary::of).collect() }
    }
}

impl CallSummary {
    fn of(times: &CallTimes) -> Self {
        Self {
            name: times.call.name().to_owned(),
            repeats: times.step_ns.len() as u64,
            step_ns: Distribution::of(times.step_ns.iter().copied()),
        }
    }
}

#[cfg(test)]
mod tests {
    use recording::Call;
    use units::{Nanos, TscHz};

    use super::*;

    fn summary(call: Call, steps: &[u64]) -> CallsSummary {
        let step_ns = steps.iter().map(|&step| Nanos::from_nanos(step)).collect();
        let (cpu, calls) = (Cpu::new(3), vec![call]);
        let spec = CallsSpec { cpu, calls, repeats: 4, phases: None };
        let series = CallsSeries {
            clock: "tsc".to_owned(),
            clock_hz: TscHz::new(2_000_000_000).unwrap(),
            calls: vec![CallTimes { call, step_ns }],
        };
        CallsSummary::of(&spec, &series)
    }

    /// Check the keys and values of the JSON contract.
    #[test]
    fn contract() {
        let found = summary(Call::Getpid, &[70, 60, 9_000, 61]);
        let expected = serde_json::json!({"cpu": 3, "calls": [{
            "name": "getpid", "repeats": 4,
            "step_ns": {"p50": 61, "p99": 9_000, "max": 9_000, "min": 60},
        }]});
        assert_eq!(serde_json::to_value(&found).unwrap(), expected);
    }

    /// Check that a call without repeats has no statistics.
    #[test]
    fn no_repeats() {
        let found = summary(Call::Fork, &[]).calls[0].clone();
        assert_eq!(found.repeats, 0);
        assert_eq!((found.step_ns.p50, found.step_ns.max), (None, None));
        assert_eq!((found.step_ns.p99, found.step_ns.min), (None, None));
    }
}
