//! `lab run --beside sim`: each cell beside its simulation.

use experiments::{CellPlan, Experiment};
use recording::{BackgroundLoad, Cell, Mode, Spec};
use sim::cells::SimulatedCell;
use summary::{BesideSimulation, SimulatedSlices};

use crate::outcome::Failure;

/// Refuses an experiment of which no cell can be simulated, before anything boots.
pub(crate) fn refuse_impossible(experiment: &Experiment) -> Result<(), Failure> {
    let name = experiment.name();
    let measures = |plan: &&CellPlan| matches!(plan.spec, Spec::Slices(_));
    let mut plans = experiment.cells().iter().filter(measures).peekable();
    if plans.peek().is_none() {
        return Err(Failure::usage(format!(
            "--beside sim simulates time slices, and no cell of {name} measures them; \
             hint: lab run slices --beside sim"
        )));
    }
    if plans.all(|plan| plan.mode == Mode::Timed) {
        return Err(Failure::usage(format!(
            "--beside sim simulates exact mode, and the mode of {name} is timed; \
             hint: omit --mode and --set mode"
        )));
    }
    Ok(())
}

/// The simulation of each cell, in their order.
pub(crate) fn simulations(cells: &[Cell], plans: &[CellPlan]) -> Vec<BesideSimulation> {
    cells.iter().map(|cell| simulation(cell, background(cell, plans))).collect()
}

fn simulation(cell: &Cell, background: &[BackgroundLoad]) -> BesideSimulation {
    let none = |why: String| BesideSimulation::NotSimulated { not_simulated: why };
    match SimulatedCell::of(cell, background) {
        Ok(SimulatedCell { rules, remarks, recordings }) => {
            SimulatedSlices::of(cell, &recordings, rules, remarks).map_or_else(
                || none("its simulation has no time slices".to_owned()),
                |slices| BesideSimulation::Simulated(Box::new(slices)),
            )
        }
        Err(error) => none(error.to_string()),
    }
}

/// The background load that a cell had, which only its plan has.
fn background<'a>(cell: &Cell, plans: &'a [CellPlan]) -> &'a [BackgroundLoad] {
    let is_own = |plan: &&CellPlan| plan.name == cell.name && plan.kernel == cell.asked;
    plans.iter().find(is_own).map_or(&[], |plan| &plan.background)
}
