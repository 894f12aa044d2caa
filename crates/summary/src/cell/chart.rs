//! One metric of all cells, by cell name and kernel.

use itertools::Itertools;
use recording::{Cell, Ending};
use stats::{VariedMean, none_above_ppm, relative};
use units::Ppm;

use crate::cell::variation::metrics_of;
use crate::metrics::definition::{Definition, Metric};

/// The values of a metric, as a chart shows them.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricChart<'a> {
    /// The metric's key.
    pub key: &'a str,
    /// Its row of the table of metrics.
    pub about: &'static Definition,
    /// A panel for each name of a cell that has the metric on some kernel.
    pub panels: Vec<ChartPanel<'a>>,
}

/// The cells of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartPanel<'a> {
    /// Their name.
    pub name: &'a str,
    /// One for each kernel, in the order of the cells.
    pub bars: Vec<ChartBar<'a>>,
    /// The largest value.
    pub largest: f64,
}

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartBar<'a> {
    /// Its kernel, as requested.
    pub kernel: &'a str,
    /// The median of its repeats, or the mean of its variations; `None` if all were lost, or do not
    /// have the metric.
    pub value: Option<f64>,
    /// The smallest and the largest value of its repeats, or the interval of the mean of variations;
    /// `None` without any.
    pub range: Option<[f64; 2]>,
    /// Whether these are of variations.
    pub is_varied: bool,
    /// The difference from the first cell of the panel, relative to it; `None` for that cell, if one of
    /// the values is unknown or the first is zero, and if variations do not show that there is one.
    pub difference: Option<Ppm>,
    /// Whether all repeats were lost.
    pub is_lost: bool,
}

impl<'a> MetricChart<'a> {
    /// The chart of cells, of which repeats are one; `None` if no cell has the metric.
    pub fn of(cells: &'a [Cell], key: &'a str) -> Option<Self> {
        let cells: Vec<(&Cell, Option<Metric>)> =
            cells.iter().map(|cell| (cell, metric(cell, key))).collect();
        let about = cells.iter().find_map(|(_, found)| Some(found.as_ref()?.about))?;
        let names = cells.iter().map(|(cell, _)| cell.name.as_str()).unique();
        let panels = names.filter_map(|name| {
            let same = cells.iter().filter(|(cell, _)| cell.name == name);
            ChartPanel::of(name, &same.collect::<Vec<_>>())
        });
        Some(Self { key, about, panels: panels.collect() })
    }

    /// The keys of the metrics that some cell has.
    pub fn keys(cells: &[Cell]) -> Vec<String> {
        cells.iter().flat_map(metrics_of).map(|metric| metric.key).unique().collect()
    }
}

impl<'a> ChartPanel<'a> {
    /// `None` if no cell has the metric.
    fn of(name: &'a str, cells: &[&(&'a Cell, Option<Metric>)]) -> Option<Self> {
        let kernels = cells.iter().map(|(cell, _)| cell.asked.as_str()).unique();
        let repeats = |kernel| cells.iter().filter(move |(cell, _)| cell.asked == kernel);
        let mut bars: Vec<ChartBar<'_>> = kernels
            .map(|kernel| {
                let is_lost = |(cell, _): &(&Cell, Option<Metric>)| {
                    matches!(cell.ending, Ending::Lost { .. })
                };
                let values =
                    repeats(kernel).filter_map(|(_, one)| Some(one.as_ref()?.value));
                let mut values: Vec<f64> = values.collect();
                values.sort_unstable_by(f64::total_cmp);
                let varied = repeats(kernel).find_map(|(_, one)| one.as_ref()?.varied);
                ChartBar {
                    kernel,
                    value: values.get(values.len().saturating_sub(1) / 2).copied(),
                    range: match (varied, values.as_slice()) {
                        (Some(VariedMean { mean, within, .. }), _) => {
                            Some([mean - within, mean + within])
                        }
                        (None, [first, .., last]) => Some([*first, *last]),
                        (None, _) => None,
                    },
                    is_varied: varied.is_some(),
                    difference: None,
                    is_lost: repeats(kernel).all(|repeat| is_lost(repeat)),
                }
            })
            .collect();
        if let Some((first, others)) = bars.split_first_mut() {
            for bar in others {
                bar.difference = bar.difference_from(first);
            }
        }
        let largest = bars.iter().filter_map(|bar| bar.value).max_by(f64::total_cmp)?;
        Some(Self { name, bars, largest })
    }
}

impl ChartBar<'_> {
    fn difference_from(&self, first: &Self) -> Option<Ppm> {
        let (value, base) = self.value.zip(first.value)?;
        let within = self.within().hypot(first.within());
        let is_none = within > 0.0 && none_above_ppm(base, value, within).is_some();
        (!is_none).then(|| relative(value, base))?
    }

    /// Half of the interval of the mean of variations; zero without any.
    fn within(&self) -> f64 {
        let range = self.range.filter(|_| self.is_varied);
        range.map_or(0.0, |[low, high]| (high - low) / 2.0)
    }
}

fn metric(cell: &Cell, key: &str) -> Option<Metric> {
    metrics_of(cell).into_iter().find(|metric| metric.key == key)
}
