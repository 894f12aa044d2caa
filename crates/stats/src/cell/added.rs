//! What being watched adds to what the kernel does: a watched cell beside the same cell that
//! nobody watched, event by event.
//!
//! Of ticks the cheapest frequent kind of both cells is compared, where kinds are known: the
//! same way through the kernel, watched and not. Of other events it is the median.

use recording::{Cell, Mode};
use serde::Serialize;
use units::Instructions;

use crate::{CallCosts, CellSummary, TickCost};

/// The event of a noise cell.
const TICK: &str = "tick";
/// The call whose repeat is several events of its name: there, and back.
const SWITCH: (&str, u32) = ("switch", 2);

/// What being watched adds to one event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Added {
    /// `tick`, or the call's name.
    pub event: String,
    /// How many events the next two are of: a repeat of `switch` is two switches.
    pub events: u32,
    /// What they cost without tracing.
    pub unwatched_instructions: Instructions,
    /// What they cost with tracing.
    pub watched_instructions: Instructions,
    /// The difference, of one event; less than zero where the watched ones cost less.
    pub added_instructions: f64,
}

impl Added {
    /// What being watched adds to each event of an exact cell; nothing where no cell of `all` is
    /// the same but for that.
    pub fn of_cell(cell: &Cell, all: &[Cell]) -> Vec<Self> {
        let is_watched = cell.watch.is_some() && cell.mode == Mode::Exact;
        let is_unwatched = |other: &&Cell| is_watched && is_same_unwatched(other, cell);
        let unwatched = all.iter().find(is_unwatched).and_then(CellSummary::of);
        let summaries = unwatched.zip(CellSummary::of(cell));
        summaries
            .map_or(Vec::new(), |(unwatched, watched)| Self::of(&unwatched, &watched))
    }

    /// What is known of both cells.
    fn of(unwatched: &CellSummary, watched: &CellSummary) -> Vec<Self> {
        match (unwatched, watched) {
            (CellSummary::TickCost(unwatched), CellSummary::TickCost(watched)) => {
                let [unwatched, watched] = [unwatched, watched].map(tick);
                Self::event(TICK, unwatched, watched).into_iter().collect()
            }
            (CellSummary::CallCosts(unwatched), CellSummary::CallCosts(watched)) => {
                let names = watched.calls.iter().map(|call| call.name.as_str());
                let added =
                    |name| Self::event(name, call(unwatched, name), call(watched, name));
                names.filter_map(added).collect()
            }
            (CellSummary::TickCost(_) | CellSummary::CallCosts(_), _)
            | (CellSummary::IdleCost(_) | CellSummary::NohzCost(_), _)
            | (CellSummary::SlicesCost(_) | CellSummary::Measured(_), _) => Vec::new(),
        }
    }

    fn event(
        name: &str,
        unwatched: Option<Instructions>,
        watched: Option<Instructions>,
    ) -> Option<Self> {
        let (unwatched, watched) = (unwatched?, watched?);
        let events = if name == SWITCH.0 { SWITCH.1 } else { 1 };
        let difference = watched.get() as f64 - unwatched.get() as f64;
        Some(Self {
            event: name.to_owned(),
            events,
            unwatched_instructions: unwatched,
            watched_instructions: watched,
            added_instructions: difference / f64::from(events),
        })
    }
}

/// As the counter counts it, or else as the guest's loop sees it.
fn is_same_unwatched(other: &Cell, cell: &Cell) -> bool {
    let what = |cell: &Cell| {
        let Cell { asked, kernel, machine, params, workload, .. } = cell.clone();
        (asked, kernel, machine, params, cell.settings.clone(), workload)
    };
    other.watch.is_none() && other.mode == cell.mode && what(other) == what(cell)
}

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
    use units::Cpu;

    use super::*;
    use crate::{CallCost, Spread};

    fn calls(costs: &[(&str, u64)]) -> CellSummary {
        let cost = |&(name, cost): &(&str, u64)| {
            let counts = CpuCounts {
                cpu: Cpu::new(0),
                user: Instructions::new(0),
                kernel: Instructions::new(0),
                steps: vec![(Instructions::new(cost), 9)],
                interruptions: Vec::new(),
            };
            CallCost::of(name, &[&counts])
        };
        CellSummary::CallCosts(CallCosts { calls: costs.iter().map(cost).collect() })
    }

    fn ticks(cost: u64) -> CellSummary {
        CellSummary::TickCost(TickCost {
            gap_instructions: Some(Spread::of([Instructions::new(cost)])),
            kernel_instructions: None,
            kinds: None,
            culprits: Vec::new(),
        })
    }

    /// Check the keys and the form of every value, and that a repeat of `switch` is two.
    #[test]
    fn contract() {
        let added = Added::of(&calls(&[("switch", 3_527)]), &calls(&[("switch", 5_008)]));
        let expected = serde_json::json!([{
            "event": "switch", "events": 2, "unwatched_instructions": 3_527,
            "watched_instructions": 5_008, "added_instructions": 740.5,
        }]);
        assert_eq!(serde_json::to_value(added).unwrap(), expected);
    }

    /// Check that only what both cells know is compared, and may have become less.
    #[test]
    fn only_what_both_know() {
        let told = |a: &CellSummary, b: &CellSummary| -> Vec<(String, f64)> {
            let all = Added::of(a, b).into_iter();
            all.map(|added| (added.event, added.added_instructions)).collect()
        };
        assert_eq!(told(&ticks(2_330), &ticks(2_300)), [("tick".to_owned(), -30.0)]);
        let (one, both) = (calls(&[("pipe", 9)]), calls(&[("fork", 7), ("pipe", 11)]));
        assert_eq!(told(&one, &both), [("pipe".to_owned(), 2.0)]);
        assert_eq!(told(&one, &ticks(1)), []);
    }
}
