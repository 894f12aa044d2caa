//! The differences of two cells. Their numbers are exact, so that each difference is one of the kernels;
//! means of variations differ if their intervals say so.

use recording::Cell;
use serde::Serialize;
use stats::{none_above_ppm, relative};
use units::Ppm;

use crate::cell::variation::metrics_of;
use crate::explain::typical::Typical;
use crate::metrics::definition::Metric;

/// A metric of two cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellDifference {
    /// The metric's key.
    pub metric: String,
    /// Its values in the base and in the other cell; null if a cell does not have it.
    pub values: [Option<f64>; 2],
    /// The difference of the other cell's value; null without one of them.
    pub difference: Option<f64>,
    /// The difference in parts of the base's value; null without one, or if that is 0.
    pub difference_ppm: Option<Ppm>,
    /// By how much the values may differ for one kernel: it depends on the phase of the tick, or on the
    /// variations of the cells.
    pub tolerance: f64,
    /// The largest difference that there may be, in parts of the base's value, if the cells have
    /// variations that show none: the larger end of the interval of the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub none_above_ppm: Option<Ppm>,
}

/// A cell, compared with the base.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellsComparison {
    /// The metrics of both, in the order of the table of metrics.
    pub metrics: Vec<CellDifference>,
}

impl CellsComparison {
    /// Compares a cell with the base.
    pub fn of(base: &Cell, other: &Cell) -> Self {
        let both = [base, other].map(metrics_of);
        let [base, other] = &both;
        let only_other = other.iter().filter(|one| find(base, &one.key).is_none());
        let keys = base.iter().chain(only_other).map(|metric| metric.key.as_str());
        let of = |key| CellDifference::of(key, [find(base, key), find(other, key)]);
        Self { metrics: keys.map(of).collect() }
    }
}

impl CellDifference {
    /// The difference of what two explanations are about, if one of their cells has variations.
    pub fn of_varied(a: &Typical<'_>, b: &Typical<'_>) -> Option<Self> {
        let key = match a.call {
            Some(call) => format!("{call}_instructions"),
            None if a.place == 0 => "tick_kind_instructions_min".to_owned(),
            None => return None,
        };
        let is_varied = [a, b].iter().any(|one| !one.cell.variations.is_empty());
        let compared = is_varied.then(|| CellsComparison::of(a.cell, b.cell))?;
        compared.metrics.into_iter().find(|metric| metric.metric == key)
    }
}

/// The metric with that key.
fn find<'a>(metrics: &'a [Metric], key: &str) -> Option<&'a Metric> {
    metrics.iter().find(|metric| metric.key == key)
}

impl CellDifference {
    fn of(key: &str, found: [Option<&Metric>; 2]) -> Self {
        let values = found.map(|one| one.map(|one| one.value));
        let both = values[0].zip(values[1]);
        let tolerances = found.map(|one| one.map_or(0.0, |one| one.tolerance));
        let is_varied = found.iter().flatten().any(|one| one.varied.is_some());
        let tolerance = match (is_varied, tolerances) {
            // The means vary independently of each other.
            (true, [base, other]) => base.hypot(other),
            (false, [base, other]) => base.max(other),
        };
        let varied = both.filter(|_| is_varied);
        Self {
            metric: key.to_owned(),
            values,
            difference: both.map(|(base, other)| other - base),
            difference_ppm: both.and_then(|(base, other)| relative(other, base)),
            tolerance,
            none_above_ppm: varied
                .and_then(|(base, other)| none_above_ppm(base, other, tolerance)),
        }
    }
}
