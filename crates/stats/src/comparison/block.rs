//! The blocks that a series is divided into: their length and its unit.

use serde::Serialize;

/// The unit of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemUnit {
    /// Wake-ups of each CPU.
    Wakeups,
    /// Tests.
    Tests,
    /// Intervals of a log.
    Intervals,
    /// Values of a benchmark.
    Values,
}

/// The unit of a block's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockUnit {
    /// Nanoseconds.
    Ns,
    /// The items of a series.
    #[serde(untagged)]
    Items(ItemUnit),
}

/// The length of all blocks of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Block {
    /// The length.
    pub length: u64,
    /// Its unit.
    pub unit: BlockUnit,
}
