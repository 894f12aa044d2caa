//! What follows from a comparison, in words.

use std::cmp::Ordering;

use serde::Serialize;
use units::Ppm;

use crate::comparison::sample::Pair;
use crate::comparison::{Compared, FALSE_DISCOVERIES};

/// Each set needs so many values for a conclusion: two samples of three are in order by chance in one
/// case of ten.
pub(super) const VALUES_MIN: usize = 4;
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
        /// How many runs more each set needs, about; null if that cannot be estimated.
        more_runs: Option<u64>,
    },
}

impl Conclusion {
    pub(crate) fn of(compared: &Compared, pair: &Pair, smallest: Ppm) -> Self {
        let mut all = pair.base.iter().chain(&pair.other);
        let first = all.next();
        let fewest = compared.values.into_iter().min().unwrap_or(0);
        if fewest > 1 && all.all(|value| Some(value) == first) {
            return Self::Equal;
        }
        if fewest < VALUES_MIN {
            let more_runs = u64::try_from(VALUES_MIN - fewest).ok();
            return Self::NotEnoughData { more_runs };
        }
        if compared.adjusted_p_value <= FALSE_DISCOVERIES {
            // Ranks and means may disagree: then neither set is the higher one.
            match (pair.direction(), compared.difference) {
                (Ordering::Less, Some(difference)) if difference < 0.0 => {
                    return Self::Lower;
                }
                (Ordering::Greater, Some(difference)) if difference > 0.0 => {
                    return Self::Higher;
                }
                _ => {}
            }
        }
        match largest(compared) {
            Some(largest) if largest.get() <= smallest.get() => {
                Self::NoLargerDifference { largest_ppm: largest }
            }
            _ => Self::NotEnoughData { more_runs: more_runs(compared, fewest, smallest) },
        }
    }
}

/// The largest difference in the interval.
fn largest(compared: &Compared) -> Option<Ppm> {
    let bounds = compared.interval_ppm?.map(|bound| bound.get().abs());
    Some(Ppm::new(bounds[0].max(bounds[1])))
}

/// How many runs more are needed until the interval is as narrow as the smallest difference of interest:
/// its width decreases with the square root of their number. A single run has several blocks, but
/// several runs have one value each.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 1 to MORE_RUNS_MAX"
)]
fn more_runs(compared: &Compared, fewest: usize, smallest: Ppm) -> Option<u64> {
    let [low, high] = compared.interval_ppm?.map(Ppm::get);
    let times = ((high - low) / 2.0 / smallest.get()).powi(2) - 1.0;
    let (runs, least) = match compared.block {
        Some(_) => (1.0, (VALUES_MIN - 1) as f64),
        None => (fewest as f64, 1.0),
    };
    let more = (times * runs).ceil().max(least);
    (more <= MORE_RUNS_MAX).then_some(more as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{Quantity, Statistic};
    use crate::{Better, Unit};

    fn compared(base: Vec<f64>, other: Vec<f64>) -> Compared {
        let quantity = Quantity::Metric { metric: "gap_ns_p50".to_owned(), cpu: None };
        let (unit, better, block, inflation) = (Unit::Ns, Better::Less, None, 1.0);
        let pair = Pair { quantity, unit, better, base, other, block, inflation };
        pair.compared((pair.p_value(), pair.p_value()), Ppm::new(1e4))
    }

    /// Check that a significant difference of values that are mostly equal has the means. Of 20 values
    /// of 10 each, 8 are 11 in one set: 240 of 400 pairs are equal, so that their median difference
    /// is 0, and that of the means is 8/20.
    #[test]
    fn mostly_equal_values() {
        let (same, some) = (vec![10.0; 20], [vec![10.0; 12], vec![11.0; 8]].concat());
        let higher = compared(same.clone(), some.clone());
        assert!(higher.adjusted_p_value < 0.01, "{higher:?}");
        assert_eq!(higher.conclusion, Conclusion::Higher);
        assert_eq!(higher.statistic, Statistic::Mean);
        assert_eq!(higher.centers, [Some(10.0), Some(10.4)]);
        assert!((higher.difference.unwrap() - 0.4).abs() < 1e-12, "{higher:?}");
        let [low, high] = higher.interval.unwrap();
        assert!(0.0 < low && low < 0.4 && 0.4 < high && high < 1.0, "{higher:?}");
        assert_eq!(compared(some, same.clone()).conclusion, Conclusion::Lower);
        // One of 20 is no significant difference, and has the medians.
        let one = compared(same, [vec![10.0; 19], vec![11.0]].concat());
        assert_eq!((one.statistic, one.difference), (Statistic::Median, Some(0.0)));
    }

    /// Check the same with so many pairs that their median is found by bisection: 100 values each, 30 of
    /// which are 11, or 30/100 more on average.
    #[test]
    fn many_equal_values() {
        let [same, some] = [0, 30].map(|n| [vec![10.0; 100 - n], vec![11.0; n]].concat());
        let higher = compared(same, some);
        let found = (higher.statistic, higher.conclusion);
        assert_eq!(found, (Statistic::Mean, Conclusion::Higher));
        assert!((higher.difference.unwrap() - 0.3).abs() < 1e-12, "{higher:?}");
    }
}
