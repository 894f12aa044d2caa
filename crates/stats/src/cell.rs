//! The summary of one guest run of the lab.
//!
//! In exact mode the numbers are instructions, from two sources side by side: the
//! guest's own clock, which shows each instruction as one of its ticks, and the lab's
//! counter, which sees which CPU executed what. In timed mode a cell's summary is the
//! measurement's ordinary one.
//!
//! Cannot see how long anything takes: instructions are not time.

use recording::{Answer, Body, Cell, Ending, Mode};
use serde::Serialize;

use crate::{SlicesCost, Summary};

pub(crate) mod added;
mod call_costs;
#[cfg(test)]
pub(crate) mod example;
mod idle_cost;
mod nohz_cost;
mod tick_cost;
mod tick_paths;

pub use call_costs::{CallCost, CallCosts};
#[cfg(test)]
pub(crate) use idle_cost::Idle;
pub use idle_cost::{CpuIdleCost, IdleCost};
pub use nohz_cost::NohzCost;
pub use tick_cost::TickCost;

/// What one cell found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CellSummary {
    /// What a tick costs a spinning CPU, exactly.
    TickCost(TickCost),
    /// What idle CPUs still execute, exactly.
    IdleCost(IdleCost),
    /// What single requests cost, exactly.
    CallCosts(CallCosts),
    /// Whether a tick stopped, and what was executed meanwhile, exactly.
    NohzCost(NohzCost),
    /// How long processes ran at a time, and what was executed meanwhile, exactly.
    SlicesCost(SlicesCost),
    /// What was measured, as anywhere else.
    Measured(Summary),
}

impl CellSummary {
    /// Summarises a cell; `None` for a lost one.
    ///
    /// An exact cell is summarised from the guest's clock and from the counter side by side.
    /// Several CPUs share one instruction clock, so there only the counter knows which of them
    /// executed what. Where nothing was counted, the summary is the measurement's own.
    pub fn of(cell: &Cell) -> Option<Self> {
        let answer = answer(cell)?;
        let exact = match cell.mode {
            Mode::Exact => Self::exact(answer),
            Mode::Timed => None,
        };
        exact.or_else(|| Some(Self::Measured(Summary::of(&answer.recording))))
    }

    fn exact(answer: &Answer) -> Option<Self> {
        let counts = answer.counts.as_ref();
        match &answer.recording.body {
            Body::Noise { series, .. } => {
                Some(Self::TickCost(TickCost::of(answer, series)))
            }
            Body::Ticks { series, .. } => {
                IdleCost::of(answer, series, counts?).map(Self::IdleCost)
            }
            Body::Calls { spec, series } => {
                CallCosts::of(spec, series, counts?).map(Self::CallCosts)
            }
            Body::NohzTest { spec, series } => {
                Some(Self::NohzCost(NohzCost::of(spec, series, counts?)))
            }
            Body::Slices { .. } => {
                let Summary::Slices(found) = Summary::of(&answer.recording) else {
                    return None;
                };
                Some(Self::SlicesCost(SlicesCost::of(found, counts?)))
            }
            Body::Check { .. }
            | Body::Latency { .. }
            | Body::Run { .. }
            | Body::Wakers { .. }
            | Body::NohzStress { .. }
            | Body::Jitter { .. } => None,
        }
    }
}

/// What a cell's guest answered; `None` for a lost one.
pub fn answer(cell: &Cell) -> Option<&Answer> {
    match &cell.ending {
        Ending::Done(answer) => Some(answer),
        Ending::Lost { .. } => None,
    }
}
