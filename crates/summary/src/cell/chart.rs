//! One metric of all cells, by cell name and kernel.

use itertools::Itertools;
use recording::{Cell, Ending};
use stats::relative;
use units::Ppm;

use crate::metrics::definition::{Definition, Metric};
use crate::metrics::metrics_of;

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
    /// The value; `None` if the cell was lost, or does not have the metric.
    pub value: Option<f64>,
    /// The difference from the first cell of the panel, relative to it; `None` for that cell, and
    /// if one of the values is unknown or the first is zero.
    pub difference: Option<Ppm>,
    /// Whether the cell was lost.
    pub is_lost: bool,
}

impl<'a> MetricChart<'a> {
    /// The chart of the first repeats of cells; `None` if no cell has the metric.
    pub fn of(cells: &'a [Cell], key: &'a str) -> Option<Self> {
        let cells: Vec<(&Cell, Option<Metric>)> = cells
            .iter()
            .filter(|cell| cell.repeat == 1)
            .map(|cell| (cell, metric(cell, key)))
            .collect();
        let about = cells.iter().find_map(|(_, found)| Some(found.as_ref()?.about))?;
        let names = cells.iter().map(|(cell, _)| cell.name.as_str()).unique();
        let panels = names.filter_map(|name| {
            let same = cells.iter().filter(|(cell, _)| cell.name == name);
            ChartPanel::of(name, same.map(|(cell, found)| (*cell, found.as_ref())))
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
    fn of<'m>(
        name: &'a str,
        cells: impl Iterator<Item = (&'a Cell, Option<&'m Metric>)>,
    ) -> Option<Self> {
        let cells = cells.collect::<Vec<_>>();
        let value = |metric: &Option<&Metric>| metric.map(|metric| metric.value);
        let first = cells.first().and_then(|(_, metric)| value(metric));
        let bar = |(at, (cell, metric)): (usize, &(&'a Cell, Option<&Metric>))| {
            let value = value(metric);
            let base = first.filter(|_| at > 0);
            ChartBar {
                kernel: &cell.asked,
                value,
                difference: value
                    .zip(base)
                    .and_then(|(value, base)| relative(value, base)),
                is_lost: matches!(cell.ending, Ending::Lost { .. }),
            }
        };
        let bars: Vec<ChartBar<'_>> = cells.iter().enumerate().map(bar).collect();
        let largest = bars.iter().filter_map(|bar| bar.value).max_by(f64::total_cmp)?;
        Some(Self { name, bars, largest })
    }
}

fn metric(cell: &Cell, key: &str) -> Option<Metric> {
    metrics_of(cell).into_iter().find(|metric| metric.key == key)
}
