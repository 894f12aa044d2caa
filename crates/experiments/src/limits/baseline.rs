//! A baseline, generated from measured values, to be stored in an experiment's file.

use std::fmt::Write;

use itertools::Itertools;
use recording::Mode;
use summary::Metric;
use toml::Value;

use crate::limits::Measured;
use crate::plan::CellPlan;
use crate::variations::Variations;

/// The number of decimals that are written, and the value of the last one.
const DECIMALS: usize = 3;
const LAST: f64 = 1e-3;
/// The number of variations of a cell that has one otherwise.
const VARIATIONS: u32 = 6;

impl CellPlan {
    /// The same with enough variations to know by how much its numbers differ for one kernel.
    pub fn for_baseline(&self) -> Self {
        let variations = match (self.mode, self.variations) {
            (Mode::Exact, Variations::Exactly(1)) => Variations::Exactly(VARIATIONS),
            (Mode::Exact | Mode::Timed, variations) => variations,
        };
        Self { variations, ..self.clone() }
    }
}

/// The `[[baseline]]` rows that require these values, within the tolerance of each metric; of
/// repeats the first one counts. Cells without metrics are omitted.
///
/// If all are of one kernel, a comment names it, and the rows name none: they are for every kernel,
/// so that they apply to the next build wherever its image is.
pub fn baseline(measured: &[Measured]) -> String {
    let one_kernel = measured.windows(2).all(|pair| pair[0].kernel == pair[1].kernel);
    let with_metrics = measured.iter().filter(|cell| !cell.metrics.is_empty());
    let cells: Vec<_> =
        with_metrics.unique_by(|cell| (&cell.kernel, &cell.cell)).collect();
    let rows = cells.iter().map(|cell| row(cell, !one_kernel)).join("\n");
    match cells.first() {
        Some(Measured { kernel, .. }) if one_kernel => {
            format!("# measured on {kernel}; for every kernel\n{rows}")
        }
        _ => rows,
    }
}

fn row(cell: &Measured, names_kernel: bool) -> String {
    let text = |text: &str| Value::from(text).to_string();
    let mut row = "[[baseline]]\n".to_owned();
    if names_kernel {
        row += &format!("kernel = {}\n", text(&cell.kernel));
    }
    row += &format!("cell = {}\n\n[baseline.metrics]\n", text(&cell.cell));
    for metric in &cell.metrics {
        // Writing to a string does not fail.
        let number = number(metric, cell.variations as usize);
        let _ = writeln!(row, "{} = {number}", metric.key);
    }
    row
}

/// A whole number that must be the same, or a number and its tolerance. The tolerance includes the
/// rounding of both.
fn number(metric: &Metric, variations: usize) -> String {
    let Metric { value, .. } = *metric;
    let tolerance = metric.tolerance_of_gates(variations);
    if tolerance == 0.0 && value.fract() == 0.0 {
        return format!("{value}");
    }
    let tolerance = tolerance + LAST;
    format!("{{ value = {value:.DECIMALS$}, tolerance = {tolerance:.DECIMALS$} }}")
}
