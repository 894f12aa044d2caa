//! What single requests to the kernel cost, in instructions.

use recording::{CallsSeries, CallsSpec, Counts, CpuCounts};
use serde::Serialize;
use units::Instructions;

use crate::Spread;
use crate::counts::{on_cpu, phases_each};

/// What single requests to the kernel cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallCosts {
    /// Call by call, in the order asked.
    pub calls: Vec<CallCost>,
}

/// What one request costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallCost {
    /// The call: `getpid`.
    pub name: String,
    /// How many repeats were counted.
    pub repeats: u64,
    /// Instructions, the program's and the kernel's, from one repeat to the next.
    pub instructions: Spread,
    /// Instructions that programs executed in all of the call's phases.
    pub user_instructions: Instructions,
    /// Instructions that the kernel executed in all of the call's phases.
    pub kernel_instructions: Instructions,
}

impl CallCosts {
    /// Each call has phases of its own, one after the other. `None` where there are fewer.
    pub(super) fn of(
        spec: &CallsSpec,
        series: &CallsSeries,
        counts: &Counts,
    ) -> Option<Self> {
        let each = phases_each(spec);
        let phases = counts.phases.get(..series.calls.len().checked_mul(each)?)?;
        let calls =
            series.calls.iter().zip(phases.chunks_exact(each)).map(|(seen, phases)| {
                let counts = phases.iter().map(|phase| on_cpu(phase, spec.cpu));
                let counts = counts.collect::<Option<Vec<_>>>()?;
                Some(CallCost::of(seen.call.name(), &counts))
            });
        Some(Self { calls: calls.collect::<Option<_>>()? })
    }
}

impl CallCost {
    /// Of what was counted in the call's phases.
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
    use crate::CellSummary;
    use crate::cell::example::{counts, values};

    /// Check the keys, and that a call's repeats are those that were counted.
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
