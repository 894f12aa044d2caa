//! How much the numbers of a cell depend on inputs that should not matter: those of its variations.

use std::collections::BTreeMap;

use recording::Cell;
use serde::Serialize;
use stats::{Unit, VariedMean};
use units::Ppm;

use crate::cell::{CellSummary, answers};
use crate::metrics::definition::Metric;
use crate::metrics::read::cell_metrics;

/// The ends of keys of quantiles and extremes: they depend on single events.
const EXTREMES: [&str; 4] = ["_p99", "_p99_9", "_min", "_max"];

/// The numbers of a cell's variations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellVariation {
    /// The mean of each metric that all variations have, by key.
    #[serde(flatten)]
    pub metrics: BTreeMap<String, VariedMean>,
    /// The number of variations.
    #[serde(skip)]
    pub variations: usize,
    /// The keys of the metrics that decide how many variations are needed: no quantiles and extremes.
    #[serde(skip)]
    pub main: Vec<String>,
}

/// The metrics of each variation of a cell.
fn metrics_of_each(cell: &Cell) -> Vec<Vec<Metric>> {
    let summaries = answers(cell).map(|answer| CellSummary::of_answer(answer, cell.mode));
    summaries.map(|summary| cell_metrics(&summary)).collect()
}

/// The metrics of a cell: the means of those that all of its variations have, within the interval that
/// has the mean of other variations; none if it was lost.
pub fn metrics_of(cell: &Cell) -> Vec<Metric> {
    let each = metrics_of_each(cell);
    let Some((first, others)) = each.split_first() else { return Vec::new() };
    let mean = |metric: &Metric| match VariedMean::of(&values(metric, others)?) {
        None => Some(metric.clone()),
        Some(varied) => Some(Metric {
            value: varied.mean,
            tolerance: varied.within.max(metric.tolerance),
            varied: Some(varied),
            ..metric.clone()
        }),
    };
    first.iter().filter_map(mean).collect()
}

/// The values of a metric in all variations; `None` if one does not have it.
fn values(metric: &Metric, others: &[Vec<Metric>]) -> Option<Vec<f64>> {
    let same = |one: &&Metric| one.key == metric.key && one.cpu == metric.cpu;
    let of = |all: &Vec<Metric>| all.iter().find(same).map(|one| one.value);
    std::iter::once(Some(metric.value)).chain(others.iter().map(of)).collect()
}

impl CellVariation {
    /// That of a cell; `None` if fewer than two variations have a result.
    pub fn of(cell: &Cell) -> Option<Self> {
        let all = metrics_of(cell);
        let is_instructions = |metric: &Metric| metric.about.unit == Unit::Instructions;
        let has_instructions = all.iter().any(is_instructions);
        let is_main = |metric: &&Metric| {
            is_instructions(metric) == has_instructions
                && !EXTREMES.iter().any(|end| metric.key.ends_with(end))
        };
        let main = all.iter().filter(is_main).map(|metric| metric.key.clone()).collect();
        let varied = |metric: Metric| Some((metric.key, metric.varied?));
        let metrics: BTreeMap<_, _> = all.iter().cloned().filter_map(varied).collect();
        let variations = metrics.values().next()?.variations;
        Some(Self { metrics, variations, main })
    }

    /// The number of variations with which the ± of each main metric is at most that share of its mean;
    /// `None` for more than 1000.
    pub fn needed(&self, share: Ppm) -> Option<u32> {
        let main = self.main.iter().filter_map(|key| self.metrics.get(key));
        let needed = main.map(|varied| u32::try_from(varied.needed_for(share)?).ok());
        needed.collect::<Option<Vec<u32>>>()?.into_iter().max()
    }
}
