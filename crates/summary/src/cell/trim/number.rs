//! The number of a cell that steps are compared by.

use recording::Cell;
use stats::{Better, Unit};

use crate::cell::CellSummary;
use crate::cell::variation::metrics_of;
use crate::metrics::definition::{Definition, Metric};

/// The metrics that are compared, the first that a cell has.
const COMPARED: [&str; 8] = [
    "tick_kernel_instructions",
    "idle_instructions_hz",
    "unit_instructions",
    "guest_instructions",
    "nohz_entry_instructions",
    "slice_ns_mean",
    "noise_ppm",
    "late_ns_p50",
];
/// The sum of all calls, each once.
const CALLS: &str = "calls_instructions";
/// What its parts end with.
const CALL: &str = "_instructions";
/// The throughput of a program.
const THROUGHPUT: &str = "units_hz";

/// A number of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Number {
    pub(super) cell: String,
    pub(super) metric: String,
    pub(super) value: f64,
    /// The ± of the value; zero without variations.
    pub(super) within: f64,
    pub(super) throughput: Option<f64>,
    pub(super) calls: Vec<(String, f64)>,
    pub(super) unit: Unit,
    pub(super) better: Better,
}

/// The numbers of all cells of a kernel, without repeats.
pub(super) fn numbers(cells: &[Cell], kernel: &str) -> Vec<Number> {
    let own = cells.iter().filter(|cell| cell.asked == kernel && cell.repeat == 1);
    own.filter_map(number).collect()
}

/// The number of a cell; `None` if it is lost, or has none of the metrics.
fn number(cell: &Cell) -> Option<Number> {
    let summary = CellSummary::of(cell)?;
    let metrics = metrics_of(cell);
    let named = |key: &str| metrics.iter().find(|metric| metric.key == key);
    let within = |metric: &Metric| metric.varied.map_or(0.0, |varied| varied.within);
    let number = |key: &str, value, within, unit, better| Number {
        cell: cell.name.clone(),
        metric: key.to_owned(),
        value,
        within,
        throughput: named(THROUGHPUT).map(|metric| metric.value),
        calls: Vec::new(),
        unit,
        better,
    };
    if matches!(summary, CellSummary::CallCosts(_)) {
        let call = |metric: &Metric| {
            Some((metric.key.strip_suffix(CALL)?.to_owned(), metric.value))
        };
        let calls: Vec<(String, f64)> = metrics.iter().filter_map(call).collect();
        let sum = calls.iter().map(|(_, value)| value).sum();
        let medians = metrics.iter().filter(|metric| metric.key.ends_with(CALL));
        let within = medians.map(within).fold(0.0, f64::hypot);
        let sum = number(CALLS, sum, within, Unit::Instructions, Better::Less);
        return Some(Number { calls, ..sum });
    }
    let metric = COMPARED.iter().find_map(|key| named(key))?;
    let Definition { unit, better, .. } = *metric.about;
    Some(number(&metric.key, metric.value, within(metric), unit, better))
}
