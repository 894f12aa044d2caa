//! The cost of single system calls, in instructions.

use recording::{CallsSeries, CallsSpec, Counts, CpuCounts};
use serde::Serialize;
use stats::Spread;
use units::Instructions;

use crate::cell::counts::{on_cpu, phases_each};

/// The cost of single system calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallCosts {
    /// Each call, in the order of the parameters.
    pub calls: Vec<CallCost>,
}

/// The cost of one call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallCost {
    /// The name: `getpid`.
    pub name: String,
    /// The number of repeats.
    pub repeats: u64,
    /// Instructions of the program and the kernel, from one repeat to the next.
    pub instructions: Spread,
    /// Instructions that programs executed in all of the call's phases.
    pub user_instructions: Instructions,
    /// Instructions that the kernel executed in all of the call's phases.
    pub kernel_instructions: Instructions,
}

impl CallCosts {
    /// Each call has its own phases, one after the other. `None` if there are fewer.
    pub(super) fn of(
        spec: &CallsSpec,
        series: &CallsSeries,
        counts: &Counts,
    ) -> Option<Self> {
        let each = phases_each(spec);
        let phases = counts.phases.get(..series.calls.len().checked_mul(each)?)?;
        let calls =
            series.calls.iter().zip(phases.chunks_exact(each)).map(|(times, phases)| {
                let counts = phases.iter().map(|phase| on_cpu(phase, spec.cpu));
                let counts = counts.collect::<Option<Vec<_>>>()?;
                Some(CallCost::of(times.call.name(), &counts))
            });
        Some(Self { calls: calls.collect::<Option<_>>()? })
    }
}

impl CallCost {
    /// From the counts of the call's phases.
    pub(crate) fn of(name: &str, phases: &[&CpuCounts]) -> Self {
        let steps = phases.iter().map(|counts| counts.steps.iter().copied());
        let instructions = Spread::phased(steps);
        Self {
            name: name.to_owned(),
            repeats: instructions.count(),
            instructions,
            user_instructions: phases.iter().map(|counts| counts.user).sum(),
            kernel_instructions: phases.iter().map(|counts| counts.kernel).sum(),
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::cell::CellSummary;
    use crate::cell::example::{counts, values};

    /// Check the keys, and that the repeats are those of the counter.
    #[test]
    fn call_costs() {
        let steps = values(&[(412, 99), (2996, 1)]);
        let counts = counts(0, &[], &steps);
        let found = CallCosts { calls: vec![CallCost::of("getpid", &[&counts])] };
        let expected = serde_json::json!({"calls": [{
            "name": "getpid", "repeats": 100,
            "instructions": {
                "agreed": 412, "mean": 437.84, "mean_deviation": null, "p50": 412,
                "p50_deviation": null, "p99": 412, "values": [[412, 99], [2996, 1]],
            },
            "user_instructions": 40, "kernel_instructions": 5000,
        }]});
        assert_eq!(
            serde_json::to_value(CellSummary::CallCosts(found)).unwrap(),
            expected
        );
    }
}
