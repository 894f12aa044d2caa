//! The cost of sleepers for the spinners of `slices`.
//!
//! Work is counted in iterations of the spinners' loops, the same few instructions with sleepers
//! and without. Cannot see the cost of a switch in caches: instructions are not time.

use recording::{Body, Cell, SlicesSpec};
use serde::Serialize;
use units::{Nanos, Ppm};

use crate::cell::{CellSummary, answer, is_same_guest};
use crate::slices::StepSlices;
use crate::summary::Summary;

/// The cost of sleepers for the spinners.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SleepersCost {
    /// Lost iterations of the spinners' loops, as a share of those without sleepers.
    pub work_ppm: Ppm,
    /// The cost of each wake-up including two switches, in nanoseconds of the guest: in exact mode
    /// instructions.
    pub each_wakeup_ns: Option<Nanos>,
}

impl SleepersCost {
    /// The cost in a cell; `None` without sleepers, or if `all` does not contain the same cell without
    /// them.
    pub fn of_cell(cell: &Cell, all: &[Cell]) -> Option<Self> {
        let spec = spec(cell).filter(|spec| spec.sleepers > 0)?;
        let without = all.iter().find(|other| is_same_without(other, cell, spec))?;
        Self::of(&StepSlices::of_cell(cell)?, &StepSlices::of_cell(without)?)
    }

    /// The cost in a run, compared with the same run without sleepers; `None` if that did no work.
    pub(crate) fn of(with: &StepSlices, without: &StepSlices) -> Option<Self> {
        let all = u128::from(without.passes) * u128::from(with.wall_ns.get());
        // The iterations in the same time without sleepers.
        let all = all.checked_div(without.wall_ns.get().into())?;
        let done = u128::from(with.passes);
        let lost = all.saturating_sub(done);
        // An iteration needs as much CPU time with sleepers as without them.
        let lost_ns = lost * u128::from(without.spinners_cpu_ns.get());
        let each = lost_ns
            .checked_div(u128::from(without.passes))?
            .checked_div(with.wakeups.into());
        let each = each.and_then(|each| u64::try_from(each).ok());
        Some(Self {
            work_ppm: Ppm::new((all as f64 - done as f64) / all as f64 * 1e6),
            each_wakeup_ns: each.map(Nanos::from_nanos),
        })
    }
}

impl StepSlices {
    /// The results of a cell; `None` if it did not measure slices.
    pub fn of_cell(cell: &Cell) -> Option<Self> {
        let summary = CellSummary::of(cell)?;
        if let CellSummary::SlicesCost(cost) = summary {
            return Some(cost.summary.results);
        }
        let CellSummary::Measured(Summary::Slices(summary)) = summary else {
            return None;
        };
        Some(summary.results)
    }
}

fn spec(cell: &Cell) -> Option<&SlicesSpec> {
    let Body::Slices { spec, .. } = &answer(cell)?.recording.body else { return None };
    Some(spec)
}

fn is_same_without(other: &Cell, cell: &Cell, with: &SlicesSpec) -> bool {
    let without = SlicesSpec { sleepers: 0, ..with.clone() };
    spec(other) == Some(&without) && is_same_guest(other, cell)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(wall_ms: u64, passes: u64, wakeups: u64) -> StepSlices {
        let wall_ns = Nanos::from_millis(wall_ms);
        StepSlices {
            wall_ns,
            cpu_ns: wall_ns,
            busy_ppm: None,
            spinners_cpu_ns: wall_ns,
            switches: 0,
            switches_hz: None,
            slice_ns: Default::default(),
            turns_slice_ns: Vec::new(),
            turns_deviation: None,
            passes,
            passes_hz: None,
            wakeups,
            wakeups_hz: None,
            traced_slices: None,
            ends: Vec::new(),
            placements: None,
        }
    }

    /// Check the lost work, and the cost of a wake-up, by hand, for runs of different durations.
    #[test]
    fn by_hand() {
        let without = step(1_000, 300_000_000, 0);
        let cost = SleepersCost::of(&step(2_000, 594_000_000, 1_000), &without).unwrap();
        assert!((cost.work_ppm.get() - 10_000.0).abs() < 1e-6, "{cost:?}");
        // Six million iterations are 20 ms: a thousand times 20 us.
        assert_eq!(cost.each_wakeup_ns, Some(Nanos::from_micros(20)));
        let none = SleepersCost::of(&step(1_000, 300_000_000, 0), &without).unwrap();
        assert_eq!((none.work_ppm.get(), none.each_wakeup_ns), (0.0, None));
        assert_eq!(SleepersCost::of(&without, &step(1_000, 0, 0)), None);
    }
}
