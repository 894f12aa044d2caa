//! What follows from a comparison, in words.

use std::cmp::Ordering;

use serde::Serialize;
use units::Ppm;

use crate::comparison::block::{Block, BlockUnit, ItemUnit};
use crate::comparison::discovery::FALSE_DISCOVERIES;
use crate::comparison::sample::Pair;

/// Each set needs so many values for a conclusion: two samples of three are in order by chance in one
/// case of ten.
pub const VALUES_MIN: usize = 4;
/// An estimate of more runs than this is of no use.
const MORE_RUNS_MAX: f64 = 1e3;

/// What follows from a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "conclusion", rename_all = "snake_case")]
pub enum Conclusion {
    /// All values of both sets are the same.
    Equal,
    /// The other set's values are lower.
    Lower,
    /// The other set's values are higher.
    Higher,
    /// If there is a difference, it is not larger than the smallest one of interest.
    NoLargerDifference {
        /// The largest difference in the interval, in parts of the base's median or mean.
        largest_ppm: Ppm,
    },
    /// There may be a difference of interest, or none.
    NotEnoughData {
        /// How many runs more each set needs, about, of benchmarks in one file each how many values; null if that
        /// cannot be estimated.
        more_runs: Option<u64>,
    },
}

/// The numbers that a conclusion follows from, besides the values themselves.
pub(crate) struct Found {
    pub(crate) adjusted_p_value: f64,
    pub(crate) difference: Option<f64>,
    pub(crate) interval_ppm: Option<[Ppm; 2]>,
}

impl Conclusion {
    pub(crate) fn of<Q>(pair: &Pair<Q>, found: &Found, smallest: Ppm) -> Self {
        let mut all = pair.base.iter().chain(&pair.other);
        let first = all.next();
        let fewest = pair.base.len().min(pair.other.len());
        if fewest > 1 && all.all(|value| Some(value) == first) {
            return Self::Equal;
        }
        if fewest < VALUES_MIN {
            let more_runs = u64::try_from(VALUES_MIN - fewest).ok();
            return Self::NotEnoughData { more_runs };
        }
        if found.adjusted_p_value <= FALSE_DISCOVERIES {
            // Ranks and means may disagree: then neither set is the higher one.
            match (pair.direction(), found.difference) {
                (Ordering::Less, Some(difference)) if difference < 0.0 => {
                    return Self::Lower;
                }
                (Ordering::Greater, Some(difference)) if difference > 0.0 => {
                    return Self::Higher;
                }
                _ => {}
            }
        }
        match found.largest() {
            Some(largest) if largest.get() <= smallest.get() => {
                Self::NoLargerDifference { largest_ppm: largest }
            }
            _ => {
                Self::NotEnoughData { more_runs: found.more_runs(pair, fewest, smallest) }
            }
        }
    }
}

impl Found {
    /// The largest difference in the interval.
    fn largest(&self) -> Option<Ppm> {
        let bounds = self.interval_ppm?.map(|bound| bound.get().abs());
        Some(Ppm::new(bounds[0].max(bounds[1])))
    }

    /// How many runs more are needed until the interval is as narrow as the smallest difference of
    /// interest: its width decreases with the square root of their number. A single run has several
    /// blocks, but several runs have one value each.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 1 to MORE_RUNS_MAX"
    )]
    fn more_runs<Q>(&self, pair: &Pair<Q>, fewest: usize, smallest: Ppm) -> Option<u64> {
        let [low, high] = self.interval_ppm?.map(Ppm::get);
        let times = ((high - low) / 2.0 / smallest.get()).powi(2) - 1.0;
        let (runs, least) = match pair.block {
            // Each value is a run of its own.
            Some(Block { unit: BlockUnit::Items(ItemUnit::Values), length }) => {
                (fewest as f64 * length as f64, 1.0)
            }
            Some(_) => (1.0, (VALUES_MIN - 1) as f64),
            None => (fewest as f64, 1.0),
        };
        let more = (times * runs).ceil().max(least);
        (more <= MORE_RUNS_MAX).then_some(more as u64)
    }
}
