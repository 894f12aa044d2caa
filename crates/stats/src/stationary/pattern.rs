//! The patterns of series that are not stationary.

use serde::Serialize;
use units::Ppm;

/// What the values of a series do, if they are not stationary. Runs are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "pattern", rename_all = "snake_case")]
pub enum Pattern {
    /// The first runs differ from all others.
    FirstRuns {
        /// The number of first runs.
        runs: usize,
        /// Their median.
        first: f64,
        /// That of the others.
        others: f64,
        /// The difference of the first runs, in parts of the others; null if these are 0.
        change_ppm: Option<Ppm>,
    },
    /// The level changes once.
    Jump {
        /// The first run at the new level.
        run: usize,
        /// The median before it.
        from: f64,
        /// The median from there on.
        to: f64,
        /// The change in parts of the median before it; null if that is 0.
        change_ppm: Option<Ppm>,
    },
    /// Each run differs from the one before it, in the same direction.
    Trend {
        /// The change per run: the median of the slopes of all pairs of runs (Theil and Sen).
        per_run: f64,
        /// The interval of the true one (95 %).
        interval: [f64; 2],
        /// The change per run in parts of the first value; null if that is 0.
        per_run_ppm: Option<Ppm>,
        /// The value at the first run, on the line of the trend.
        from: f64,
        /// That at the last one.
        to: f64,
    },
    /// The values have two modes.
    TwoModes {
        /// The median of each mode, the lower one first.
        modes: [f64; 2],
        /// The number of runs of each.
        runs: [usize; 2],
        /// The first run that is not of the same mode as the first.
        run: usize,
        /// How often a run is of another mode than the one before it.
        changes: usize,
        /// The order of the modes.
        order: ModeOrder,
    },
}

/// The order in which values are of one of two modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModeOrder {
    /// Each run is of the other mode than the one before it, but for one in ten.
    Alternating,
    /// In runs of one mode that are longer than by chance.
    Stretches,
    /// No order is seen.
    Random,
}

impl Pattern {
    /// The first run that is different, from 1.
    pub fn begins_at(&self) -> usize {
        match self {
            Self::FirstRuns { .. } | Self::Trend { .. } => 1,
            Self::Jump { run, .. } | Self::TwoModes { run, .. } => *run,
        }
    }
}
