//! Cells run by Slurm instead of this process: an array for those in instruction-counted time, and one
//! for those in real time.

use std::sync::atomic::Ordering;

use recording::{Cell, Mode};

use crate::cells::lab::Lab;
use crate::cells::prepare::{Engines, Prepared};
use crate::cells::results::unavailable;
use crate::cells::run::{CellObserver, Run};
use crate::cells::scheduler::{Results, Workers, order};
use crate::error::Error;
use crate::slurm::Slurm;
use crate::slurm::array::{Array, SlurmCell};

/// Slurm's nodes.
pub(crate) struct SlurmWorkers<'a> {
    pub(crate) slurm: &'a Slurm,
    /// The names of the arrays of both modes.
    pub(crate) exact: String,
    pub(crate) timed: String,
}

impl Workers for SlurmWorkers<'_> {
    fn engines(&self) -> Engines {
        Engines::Elsewhere
    }

    fn work(
        &self,
        lab: &Lab,
        prepared: &[Prepared],
        run: Run<'_>,
        observer: &mut dyn CellObserver,
    ) -> Result<Vec<Option<Cell>>, Error> {
        let mut results = Results::new(prepared.len(), 0);
        for (index, cell) in prepared.iter().enumerate() {
            if let Err(error) = &cell.ready {
                let cell = unavailable(&cell.plan, error);
                results.ended(index, Ok(Some(cell)), observer);
            }
        }
        for (mode, name) in [(Mode::Exact, &self.exact), (Mode::Timed, &self.timed)] {
            let cells = of_mode(prepared, mode);
            if !cells.is_empty() && !run.stop.load(Ordering::Relaxed) {
                let Self { slurm, .. } = self;
                let array = Array::new(lab, slurm, run, name, mode, cells);
                array.run(&mut results, observer)?;
            }
        }
        results.cells()
    }
}

/// The cells of a mode that can run, in the order in which they are run.
fn of_mode(prepared: &[Prepared], mode: Mode) -> Vec<SlurmCell<'_>> {
    let cell = |index: usize| {
        let prepared = prepared.get(index).filter(|cell| cell.plan.mode == mode)?;
        let ready = prepared.ready.as_ref().ok()?;
        Some(SlurmCell { index, plan: &prepared.plan, ready, file: ready.key() })
    };
    order(prepared).into_iter().filter_map(cell).collect()
}
