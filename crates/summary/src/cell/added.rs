//! The cost of tracing: each event of a traced cell, compared with the same cell without tracing.
//!
//! Ticks are compared by the cheapest frequent kind of both cells, if kinds are known: the same path
//! through the kernel with and without tracing. Other events are compared by the median.

use recording::{Cell, Mode};
use serde::Serialize;
use units::Instructions;

use crate::cell::call_costs::CallCosts;
use crate::cell::tick_cost::TickCost;
use crate::cell::{CellSummary, is_same_guest};

/// The event of a noise cell.
const TICK: &str = "tick";
/// The call whose repeat is several events of its name: a switch to another task, and back.
const SWITCH: (&str, u32) = ("switch", 2);

/// The cost of tracing for one event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Added {
    /// `tick`, or the call's name.
    pub event: String,
    /// The number of events in the next two: a repeat of `switch` is two switches.
    pub events: u32,
    /// Their cost without tracing.
    pub untraced_instructions: Instructions,
    /// Their cost with tracing.
    pub traced_instructions: Instructions,
    /// The difference per event; negative if traced ones cost less.
    pub added_instructions: f64,
}

impl Added {
    /// The cost of tracing for each event of an exact cell; empty if `all` does not contain the same
    /// cell without tracing.
    pub fn of_cell(cell: &Cell, all: &[Cell]) -> Vec<Self> {
        let is_traced = cell.watch.is_some() && cell.mode == Mode::Exact;
        let is_untraced = |other: &&Cell| is_traced && is_same_untraced(other, cell);
        let untraced = all.iter().find(is_untraced).and_then(CellSummary::of);
        let summaries = untraced.zip(CellSummary::of(cell));
        summaries.map_or(Vec::new(), |(untraced, traced)| Self::of(&untraced, &traced))
    }

    /// The events that both cells have.
    fn of(untraced: &CellSummary, traced: &CellSummary) -> Vec<Self> {
        match (untraced, traced) {
            (CellSummary::TickCost(untraced), CellSummary::TickCost(traced)) => {
                let [untraced, traced] = [untraced, traced].map(tick);
                Self::event(TICK, untraced, traced).into_iter().collect()
            }
            (CellSummary::CallCosts(untraced), CellSummary::CallCosts(traced)) => {
                let names = traced.calls.iter().map(|call| call.name.as_str());
                let added =
                    |name| Self::event(name, call(untraced, name), call(traced, name));
                names.filter_map(added).collect()
            }
            _ => Vec::new(),
        }
    }

    fn event(
        name: &str,
        untraced: Option<Instructions>,
        traced: Option<Instructions>,
    ) -> Option<Self> {
        let (untraced, traced) = (untraced?, traced?);
        let events = if name == SWITCH.0 { SWITCH.1 } else { 1 };
        let difference = traced.get() as f64 - untraced.get() as f64;
        Some(Self {
            event: name.to_owned(),
            events,
            untraced_instructions: untraced,
            traced_instructions: traced,
            added_instructions: difference / f64::from(events),
        })
    }
}

fn is_same_untraced(other: &Cell, cell: &Cell) -> bool {
    other.watch.is_none() && other.workload == cell.workload && is_same_guest(other, cell)
}

/// As counted by the counter, or else as measured by the guest's loop.
fn tick(cost: &TickCost) -> Option<Instructions> {
    let spread = cost.kernel_instructions.as_ref().or(cost.gap_instructions.as_ref());
    let kind = cost.kinds.as_ref().and_then(|kinds| kinds.frequent_min);
    kind.or(spread?.p50)
}

fn call(costs: &CallCosts, name: &str) -> Option<Instructions> {
    let call = costs.calls.iter().find(|call| call.name == name)?;
    call.instructions.p50
}

#[cfg(test)]
mod tests {
    use recording::CpuCounts;
    use stats::Spread;
    use units::Cpu;

    use super::*;
    use crate::cell::call_costs::CallCost;

    fn calls(costs: &[(&str, u64)]) -> CellSummary {
        let cost = |&(name, cost): &(&str, u64)| {
            let counts = CpuCounts {
                cpu: Cpu::new(0),
                user: Instructions::new(0),
                kernel: Instructions::new(0),
                steps: vec![(Instructions::new(cost), 9)],
                interruptions: Vec::new(),
                groups: Vec::new(),
                idle_ns: None,
            };
            CallCost::of(name, &[&counts])
        };
        CellSummary::CallCosts(CallCosts { calls: costs.iter().map(cost).collect() })
    }

    fn ticks(cost: u64) -> CellSummary {
        CellSummary::TickCost(TickCost {
            gap_instructions: Some(Spread::phased([[(Instructions::new(cost), 1)]])),
            kernel_instructions: None,
            kinds: None,
            culprits: Vec::new(),
        })
    }

    /// Check the keys and values of the JSON contract, and that a repeat of `switch` is two events.
    #[test]
    fn contract() {
        let added = Added::of(&calls(&[("switch", 3_527)]), &calls(&[("switch", 5_008)]));
        let expected = serde_json::json!([{
            "event": "switch", "events": 2, "untraced_instructions": 3_527,
            "traced_instructions": 5_008, "added_instructions": 740.5,
        }]);
        assert_eq!(serde_json::to_value(added).unwrap(), expected);
    }

    /// Check that only events of both cells are compared, and that the difference may be negative.
    #[test]
    fn events_of_both() {
        let added = |a: &CellSummary, b: &CellSummary| -> Vec<(String, f64)> {
            let all = Added::of(a, b).into_iter();
            all.map(|added| (added.event, added.added_instructions)).collect()
        };
        assert_eq!(added(&ticks(2_330), &ticks(2_300)), [("tick".to_owned(), -30.0)]);
        let (one, both) = (calls(&[("pipe", 9)]), calls(&[("fork", 7), ("pipe", 11)]));
        assert_eq!(added(&one, &both), [("pipe".to_owned(), 2.0)]);
        assert_eq!(added(&one, &ticks(1)), []);
    }
}
