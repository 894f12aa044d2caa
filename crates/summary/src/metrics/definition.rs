//! A metric, and its definition.

use stats::{Better, Unit};
use units::Cpu;

/// The definition of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// Its name; `CALL` in it stands for the name of a call.
    pub key: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Which values are better.
    pub better: Better,
    /// The measurements with this metric: `noise, ticks`.
    pub of: &'static str,
    /// Its description, a noun phrase.
    pub help: &'static str,
}

/// A number of a recording or a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Its key, with the unit in it.
    pub key: String,
    /// The CPU; `None` for a metric of the whole recording, or of all CPUs of a cell.
    pub cpu: Option<Cpu>,
    /// The number.
    pub value: f64,
    /// By how much it may differ in another run of the same kernel, in the same unit.
    pub tolerance: f64,
    /// Its row of the table.
    pub about: &'static Definition,
}
