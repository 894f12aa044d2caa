//! A metric, and its definition.

use stats::{Better, Unit, VariedMean};
use units::Cpu;

/// The definition of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// Its key; `CALL` in it stands for the name of a call.
    pub key: &'static str,
    /// What tables call it; `CALL` as in the key.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Which values are better.
    pub better: Better,
    /// The measurements with this metric: `noise, ticks`.
    pub of: &'static str,
    /// Its description, a noun phrase.
    pub help: &'static str,
}

impl Definition {
    /// Stands for the name of a call in a key and in a name.
    pub const CALL: &'static str = "CALL";

    /// The name of the call in a key of this definition.
    pub fn call<'a>(&self, key: &'a str) -> Option<&'a str> {
        let (before, after) = self.key.split_once(Self::CALL)?;
        key.strip_prefix(before)?.strip_suffix(after)
    }
}

/// A number that varies depends on rare events, which a few variations may not contain: a gate allows this
/// part of it.
const RARE_PPM: f64 = 20_000.0;

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
    /// Its variations, if the cell has several; the number is their mean.
    pub varied: Option<VariedMean>,
    /// Its row of the table.
    pub about: &'static Definition,
}

impl Metric {
    /// By how much two values of it may differ for the same kernel: means of variations vary independently.
    pub fn tolerance_of_differences(&self) -> f64 {
        match self.varied {
            Some(_) => self.tolerance.hypot(self.tolerance),
            None => self.tolerance,
        }
    }

    /// By how much it may differ from the mean of that many variations before a gate fails that checks many
    /// metrics in each run.
    pub fn tolerance_of_gates(&self, variations: usize) -> f64 {
        let Some(varied) = self.varied.filter(|varied| varied.stddev > 0.0) else {
            return self.tolerance;
        };
        let within = varied.within_rarely_left(variations);
        let rare = RARE_PPM * self.value.abs() / 1e6;
        self.tolerance.max(within).max(rare)
    }
}
