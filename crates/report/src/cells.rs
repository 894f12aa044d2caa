//! An experiment's cells, as they come to be told: what was asked, what there is, and
//! what it was held to.

use recording::{Cell, MadeWith};
use serde::Serialize;

/// An experiment's cells, and what they were held to.
#[derive(Debug, Clone, Copy)]
pub struct Cells<'a> {
    /// The experiment's name, or its file.
    pub experiment: &'a str,
    /// What it asks, in a sentence; may be empty.
    pub about: &'a str,
    /// The cells, in the order in which the experiment has them.
    pub cells: &'a [Cell],
    /// How many cells were asked for; more than there are where somebody ended it early.
    pub planned: usize,
    /// What they were made with besides their kernels; `None` where that is not known.
    pub made_with: Option<&'a MadeWith>,
    /// The cells that do not keep a limit; `None` where there was nothing to keep.
    pub breaches: Option<&'a [Exceeded]>,
}

/// A cell that does not keep a limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exceeded {
    /// The kernel as it was asked for: `debian:6.1-cloud`.
    pub kernel: String,
    /// The cell's name.
    pub cell: String,
    /// The metric, with its unit in the name: `tick_instructions`.
    pub metric: String,
    /// What it is.
    pub seen: f64,
    /// What it should be: `<= 2600`, `== 2584`.
    pub limit: String,
    /// Where the limit stands: `tick.toml:12:1`.
    pub place: String,
}
