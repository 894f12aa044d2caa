//! The summary of a cell of the lab.
//!
//! In exact mode the numbers are instructions, from two sources: the guest's clock, of which each
//! instruction is a nanosecond, and the counter, which counts per CPU. In timed mode the summary is
//! the ordinary one of the measurement.
//!
//! Cannot see durations in exact mode: instructions are not time.

use recording::{Answer, Body, Cell, Ending, Mode};
use serde::Serialize;

use crate::cell::call_costs::CallCosts;
use crate::cell::idle_cost::IdleCost;
use crate::cell::nohz_cost::NohzCost;
use crate::cell::program_cost::ProgramCost;
use crate::cell::slices_cost::SlicesCost;
use crate::cell::tick_cost::TickCost;
use crate::summary::Summary;

pub(crate) mod added;
pub(crate) mod beside;
pub(crate) mod call_costs;
pub(crate) mod chart;
pub(crate) mod counts;
#[cfg(test)]
#[path = "../tests/example/counts.rs"]
pub(crate) mod example;
pub(crate) mod idle_by_hz;
pub(crate) mod idle_cost;
pub(crate) mod idle_stretches;
pub(crate) mod nohz_cost;
pub(crate) mod program_cost;
pub(crate) mod sleepers_cost;
pub(crate) mod slices_cost;
pub(crate) mod tick_cost;
pub(crate) mod trim;
pub(crate) mod variation;

/// The answer of the guest; `None` for a lost cell.
pub fn answer(cell: &Cell) -> Option<&Answer> {
    match &cell.ending {
        Ending::Done(answer) => Some(answer),
        Ending::Lost { .. } => None,
    }
}

/// The answers of a cell's variations; none for a lost cell.
pub(crate) fn answers(cell: &Cell) -> impl Iterator<Item = &Answer> {
    let others = cell.variations.iter().map(|one| &one.ending);
    std::iter::once(&cell.ending).chain(others).filter_map(|ending| match ending {
        Ending::Done(answer) => Some(answer.as_ref()),
        Ending::Lost { .. } => None,
    })
}

/// Whether two cells have the same kernel, machine and parameters.
pub(crate) fn is_same_guest(one: &Cell, other: &Cell) -> bool {
    (&one.asked, &one.kernel, &one.machine)
        == (&other.asked, &other.kernel, &other.machine)
        && (&one.params, &one.settings, &one.services, one.mode)
            == (&other.params, &other.settings, &other.services, other.mode)
}

/// The summary of a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CellSummary {
    /// The exact cost of a tick on a busy CPU.
    TickCost(TickCost),
    /// The exact instructions of idle CPUs.
    IdleCost(IdleCost),
    /// The exact cost of single calls.
    CallCosts(CallCosts),
    /// Whether a tick stopped, and the exact instructions until then.
    NohzCost(NohzCost),
    /// Time slices, and the exact instructions of each CPU.
    SlicesCost(SlicesCost),
    /// The run of a program, and its exact instructions.
    ProgramCost(ProgramCost),
    /// The ordinary summary of the measurement.
    Measured(Summary),
}

impl CellSummary {
    /// Summarizes a cell; `None` for a lost one. The numbers of a program are the means of all
    /// variations, others are those of the first one.
    pub fn of(cell: &Cell) -> Option<Self> {
        let mut runs = answers(cell).map(|answer| Self::of_answer(answer, cell.mode));
        let first = runs.next()?;
        let Self::ProgramCost(cost) = first else { return Some(first) };
        let others: Vec<ProgramCost> = runs.filter_map(Self::program_cost).collect();
        Some(Self::ProgramCost(cost.averaged_with(&others)))
    }

    fn program_cost(self) -> Option<ProgramCost> {
        if let Self::ProgramCost(cost) = self { Some(cost) } else { None }
    }

    /// Summarizes the answer of one guest.
    ///
    /// CPUs share the clock of exact mode, so with several of them only the counter has the
    /// instructions of each. Without counts, the summary is the ordinary one of the measurement.
    pub(crate) fn of_answer(answer: &Answer, mode: Mode) -> Self {
        let exact = match mode {
            Mode::Exact => Self::exact(answer),
            Mode::Timed => None,
        };
        exact.unwrap_or_else(|| Self::Measured(Summary::of(&answer.recording)))
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a kind without an exact summary has its ordinary one"
    )]
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
            Body::Program { spec, series } => {
                ProgramCost::of(spec, series, answer).map(Self::ProgramCost)
            }
            _ => None,
        }
    }
}
