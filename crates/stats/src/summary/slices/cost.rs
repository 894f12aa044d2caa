//! What `slices` costs in a guest of the lab: what each CPU executed, and what sleepers take from
//! the spinners beside them.
//!
//! Work is counted in passes of the spinners' loops, which are the same few instructions with
//! sleepers and without. Cannot see what a switch costs in caches: instructions are not time.

use recording::{Body, Cell, Counts, SlicesSpec};
use serde::Serialize;
use units::{Instructions, Nanos, Ppm};

use super::{SlicesSummary, StepSlices};
use crate::{CellSummary, CpuWork, Summary, answer};

/// How long processes ran in a guest, and what each CPU executed meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlicesCost {
    /// What the guest saw; in exact mode a nanosecond of it is an instruction of any CPU.
    #[serde(flatten)]
    pub found: SlicesSummary,
    /// What each CPU executed.
    pub cpus: Vec<CpuWork>,
}

impl SlicesCost {
    /// Each turn is a phase.
    pub(crate) fn of(found: SlicesSummary, counts: &Counts) -> Self {
        let cpus = CpuWork::of(&counts.phases, Some(found.found.wall_ns));
        Self { cpus, found }
    }

    /// What all CPUs executed of programs, and of the kernel.
    pub fn instructions(&self) -> [Instructions; 2] {
        let kernel = self.cpus.iter().map(|work| work.kernel_instructions);
        let kernel: Instructions = kernel.sum();
        let all = self.cpus.iter().map(|work| work.instructions.get()).sum::<u64>();
        [Instructions::new(all.saturating_sub(kernel.get())), kernel]
    }
}

/// What sleepers cost the spinners beside them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SleepersCost {
    /// Passes of the spinners' loops that were not made, by those that were made without the
    /// sleepers: work lost.
    pub work_ppm: Ppm,
    /// The same for each time that a sleeper woke up, in the guest's nanoseconds: in exact mode
    /// instructions, switches there and back included.
    pub each_wakeup_ns: Option<Nanos>,
}

impl SleepersCost {
    /// What the sleepers of a cell cost; `None` where there are none, or no cell of `all` is the
    /// same but for them.
    pub fn of_cell(cell: &Cell, all: &[Cell]) -> Option<Self> {
        let spec = spec(cell).filter(|spec| spec.sleepers > 0)?;
        let without = all.iter().find(|other| is_same_without(other, cell, spec))?;
        Self::of(&StepSlices::of_cell(cell)?, &StepSlices::of_cell(without)?)
    }

    /// What the sleepers of one run cost, by one that differs from it in nothing else than that
    /// it has none; `None` where nothing was done in that.
    pub(crate) fn of(with: &StepSlices, without: &StepSlices) -> Option<Self> {
        let all = u128::from(without.passes) * u128::from(with.wall_ns.get());
        // As many as there would have been in the same time.
        let all = all.checked_div(without.wall_ns.get().into())?;
        let done = u128::from(with.passes);
        let lost = all.saturating_sub(done);
        // A pass takes as much CPU time with sleepers as without them.
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
    /// What a cell found with its settings; `None` where it did not measure slices.
    pub fn of_cell(cell: &Cell) -> Option<Self> {
        match CellSummary::of(cell)? {
            CellSummary::SlicesCost(cost) => Some(cost.found.found),
            CellSummary::Measured(Summary::Slices(summary)) => Some(summary.found),
            _ => None,
        }
    }
}

fn spec(cell: &Cell) -> Option<&SlicesSpec> {
    match &answer(cell)?.recording.body {
        Body::Slices { spec, .. } => Some(spec),
        _ => None,
    }
}

fn is_same_without(other: &Cell, cell: &Cell, asked: &SlicesSpec) -> bool {
    let what = |cell: &Cell| {
        let Cell { asked, kernel, machine, params, settings, mode, .. } = cell.clone();
        (asked, kernel, machine, params, settings, mode)
    };
    let without = SlicesSpec { sleepers: 0, ..asked.clone() };
    spec(other) == Some(&without) && what(other) == what(cell)
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
            turns_off: None,
            passes,
            passes_hz: None,
            wakeups,
            wakeups_hz: None,
            seen: None,
            enders: Vec::new(),
        }
    }

    /// Check the cost by hand: of twice the time, as much work lost as there would have been
    /// more; and each wake-up's part of it.
    #[test]
    fn by_hand() {
        let without = step(1_000, 300_000_000, 0);
        let cost = SleepersCost::of(&step(2_000, 594_000_000, 1_000), &without).unwrap();
        assert!((cost.work_ppm.get() - 10_000.0).abs() < 1e-6, "{cost:?}");
        // Six million passes are 20 ms: a thousand times 20 us.
        assert_eq!(cost.each_wakeup_ns, Some(Nanos::from_micros(20)));
        let none = SleepersCost::of(&step(1_000, 300_000_000, 0), &without).unwrap();
        assert_eq!((none.work_ppm.get(), none.each_wakeup_ns), (0.0, None));
        assert_eq!(SleepersCost::of(&without, &step(1_000, 0, 0)), None);
    }
}
