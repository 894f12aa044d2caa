//! The cells of an experiment, each with the label of its kernel.

use recording::{Cell, MadeWith};
use summary::{BesideSimulation, Trim, TrimSeries, ViolatedLimit};

/// The cells of an experiment, with violated limits.
#[derive(Debug, Clone, Copy)]
pub struct Cells<'a> {
    /// The name of the experiment, or its file.
    pub experiment: &'a str,
    /// The description of the experiment; may be empty.
    pub about: &'a str,
    /// The cells, in the order of the experiment.
    pub cells: &'a [Cell],
    /// The number of cells of the experiment; more than `cells` if the run was ended early.
    pub planned: usize,
    /// Agent, counter and QEMU; `None` if unknown.
    pub made_with: Option<&'a MadeWith>,
    /// The violated limits; `None` if cells were not compared with limits.
    pub violations: Option<&'a [ViolatedLimit]>,
    /// The number of idle guests that the savings of less frequent ticks are computed for.
    pub guests: u64,
    /// The series of kernels that the steps of the experiment make; none without steps.
    pub series: &'a [TrimSeries],
    /// The simulation of each of the cells; none if they were not simulated.
    pub beside: &'a [BesideSimulation],
}

impl Cells<'_> {
    /// What the steps of each series change, as far as the cells tell.
    pub(crate) fn trims(&self) -> Vec<Trim> {
        self.series.iter().filter_map(|series| Trim::of(series, self.cells)).collect()
    }
}

/// A cell with the label of its kernel, and all cells of the experiment.
pub(crate) struct LabelledCell<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) kernel: String,
    pub(crate) all: &'a [Cell],
    /// Its simulation; `None` if cells were not simulated.
    pub(crate) beside: Option<&'a BesideSimulation>,
}

impl LabelledCell<'_> {
    pub(crate) fn full(&self) -> String {
        let Cell { name, repeat, .. } = self.cell;
        let repeat = if *repeat > 1 { format!(" #{repeat}") } else { String::new() };
        format!("{name}{repeat} on {}", self.kernel)
    }
}

/// Whether the cell adds neither boot parameters nor settings nor services.
pub(crate) fn is_unmodified(cell: &Cell) -> bool {
    cell.params.is_empty() && cell.settings.is_empty() && cell.services.is_empty()
}
