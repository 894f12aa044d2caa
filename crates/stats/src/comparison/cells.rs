//! The differences of two cells. Their numbers are exact, so that each difference is one of the kernels.

use recording::Cell;
use serde::Serialize;
use units::Ppm;

use crate::metrics::relative;
use crate::{Metric, Unit, metrics_of};

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
    /// By how much the values may differ for one kernel: it depends on the phase of the tick.
    pub tolerance: f64,
    /// The unit.
    #[serde(skip)]
    pub unit: Unit,
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
        let find = |metrics: &'_ [Metric], key: &str| -> Option<Metric> {
            metrics.iter().find(|metric| metric.key == key).cloned()
        };
        let only_other = other.iter().filter(|metric| find(base, &metric.key).is_none());
        let all = base.iter().chain(only_other);
        let metric = |of: &Metric| {
            let found = [find(base, &of.key), find(other, &of.key)];
            CellDifference::of(of, &found)
        };
        Self { metrics: all.map(metric).collect() }
    }
}

impl CellDifference {
    fn of(metric: &Metric, found: &[Option<Metric>; 2]) -> Self {
        let values = [&found[0], &found[1]].map(|one| one.as_ref().map(|one| one.value));
        let difference = values[0].zip(values[1]).map(|(base, other)| other - base);
        let tolerances = found.iter().flatten().map(|one| one.tolerance);
        Self {
            metric: metric.key.clone(),
            values,
            difference,
            difference_ppm: values[0]
                .zip(values[1])
                .and_then(|(base, other)| relative(other, base)),
            tolerance: tolerances.fold(0.0, f64::max),
            unit: metric.about.unit,
        }
    }
}
