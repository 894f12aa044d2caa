//! The units of compared values, and which values are better.

use serde::{Deserialize, Serialize};

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds; in a cell of exact mode, one of them is an instruction.
    Ns,
    /// Parts per million.
    Ppm,
    /// Events per second.
    Hz,
    /// Instructions.
    Instructions,
    /// A number of events.
    Count,
}

/// Which values of a metric are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Smaller ones.
    Less,
    /// Larger ones.
    More,
    /// Neither: it depends on the purpose.
    Neither,
}
