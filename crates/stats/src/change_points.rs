//! Change points of a series: where its values become larger or smaller permanently.
//!
//! A series is divided where Pettitt's test says so, and so are both parts (A. N. Pettitt: A
//! non-parametric approach to the change-point problem. Applied Statistics 28, 1979). The test is the
//! Mann-Whitney test of all divisions at once: no assumption about the distribution, and an outlier is no
//! change. Neighbouring values may depend on each other: the variance is widened as in comparisons, by
//! an estimate that changes of the level do not affect.
//!
//! Cannot see a change that takes less than a few values at the end, or a slow drift as such: that is
//! divided into steps.

use units::Ppm;

use crate::comparison::statistic::Statistic;
use crate::relative::relative;
use crate::{dependence, ranks};

/// The probability that a series without a change is divided.
const FALSE_ALARMS: f64 = 0.05;
/// The fewest values of a part.
const PART_MIN: usize = 5;

/// A part of a series in which no change is seen.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Stretch {
    /// The place of its first value.
    pub begin: usize,
    /// The place after its last value.
    pub end: usize,
    /// Its median.
    pub median: f64,
    /// The probability of such a change at its beginning by chance; null for the first part.
    pub p_value: Option<f64>,
}

impl Stretch {
    /// By how much its median differs from that of an earlier part; `None` if that is 0.
    pub fn change_since(&self, before: &Self) -> Option<Ppm> {
        relative(self.median, before.median)
    }
}

/// The parts of a series between its change points, in order; none without values. Values must not
/// be NaN.
pub fn stretches(values: &[f64]) -> Vec<Stretch> {
    let mut changes = Vec::new();
    divide(values, 0, &mut changes);
    let begins = std::iter::once((0, None))
        .chain(changes.iter().map(|(at, p_value)| (*at, Some(*p_value))));
    let ends = changes.iter().map(|(at, _)| *at).chain([values.len()]);
    let stretch = |((begin, p_value), end): ((usize, Option<f64>), usize)| {
        let median = Statistic::Median.of(&values[begin..end])?;
        Some(Stretch { begin, end, median, p_value })
    };
    begins.zip(ends).filter_map(stretch).collect()
}

/// Adds the changes of these values, which begin at a place of the series, in order.
fn divide(values: &[f64], offset: usize, changes: &mut Vec<(usize, f64)>) {
    let Some((at, p_value)) = change(values) else { return };
    divide(&values[..at], offset, changes);
    changes.push((offset + at, p_value));
    divide(&values[at..], offset + at, changes);
}

/// The most probable change, if there is one.
fn change(values: &[f64]) -> Option<(usize, f64)> {
    let count = values.len();
    if count < 2 * PART_MIN {
        return None;
    }
    let ranks = ranks::ranks(values);
    let mean = (count as f64 + 1.0) / 2.0;
    let mut sum = 0.0;
    let (mut at, mut largest): (usize, f64) = (0, 0.0);
    for (place, rank) in ranks.iter().enumerate().take(count - PART_MIN) {
        sum += rank - mean;
        if place + 1 >= PART_MIN && 2.0 * sum.abs() > largest {
            (at, largest) = (place + 1, 2.0 * sum.abs());
        }
    }
    let n = count as f64;
    let inflation = dependence::inflation_of_levels(values);
    let variance = (n.powi(3) + n.powi(2)) / 6.0 * inflation;
    let p_value = (2.0 * (-largest.powi(2) / variance).exp()).min(1.0);
    (p_value <= FALSE_ALARMS).then_some((at, p_value))
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{RngCore, SeedableRng};

    use super::*;

    const TRIALS: usize = 2_000;

    fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
        (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Heavy-tailed values: Pareto without variance.
    fn heavy(random: &mut Xoshiro256PlusPlus) -> f64 {
        (1.0 - uniform(random)).powf(-1.0 / 1.5)
    }

    /// The share of series in which a change is reported.
    fn alarms(mut series: impl FnMut(&mut Xoshiro256PlusPlus) -> Vec<f64>) -> f64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let alarms = (0..TRIALS).filter(|_| stretches(&series(&mut random)).len() > 1);
        alarms.count() as f64 / TRIALS as f64
    }

    /// Check that series without a change are divided in at most 5 %: heavy-tailed values, values of
    /// which many are equal, and values that depend on those before them.
    #[test]
    fn false_alarms() {
        for count in [10, 30, 100, 365] {
            let independent =
                alarms(|random| (0..count).map(|_| heavy(random)).collect());
            assert!(independent <= 0.05, "{count}: {independent}");
            let equal = alarms(|random| {
                (0..count).map(|_| (uniform(random) * 4.0).floor()).collect()
            });
            assert!(equal <= 0.05, "{count}: {equal}");
        }
        let dependent = alarms(|random| {
            let mut level = 0.0;
            let mut next = || {
                level = 0.5 * level + uniform(random);
                level
            };
            (0..200).map(|_| next()).collect()
        });
        assert!(dependent <= 0.06, "{dependent}");
    }

    /// Check that a change by 50 % is found in 90 % of series of 60 values, within 3 values of its place.
    #[test]
    fn changes_are_found() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
        let mut found = 0;
        for _ in 0..TRIALS {
            let value = |place: usize, random: &mut Xoshiro256PlusPlus| {
                let level = if place < 40 { 1.0 } else { 1.5 };
                level * (1.0 + 0.5 * (uniform(random) - 0.5))
            };
            let series: Vec<f64> =
                (0..60).map(|place| value(place, &mut random)).collect();
            let parts = stretches(&series);
            found += usize::from(parts.len() == 2 && parts[1].begin.abs_diff(40) <= 3);
        }
        assert!(found * 100 >= 90 * TRIALS, "{found}");
    }

    /// Check the parts of a series with two changes, and of series that are too short.
    #[test]
    fn parts() {
        let level = |place: usize| match place {
            0..20 => 1.0,
            20..50 => 3.0,
            _ => 2.0,
        };
        let series: Vec<f64> =
            (0..80).map(|place| level(place) + 0.01 * (place * 5 % 7) as f64).collect();
        let parts = stretches(&series);
        let found: Vec<(usize, usize)> =
            parts.iter().map(|part| (part.begin, part.end)).collect();
        assert_eq!(found, [(0, 20), (20, 50), (50, 80)]);
        assert!(parts[0].p_value.is_none() && parts[1].p_value.is_some());
        assert!((parts[1].median - 3.03).abs() < 0.02);
        assert_eq!(stretches(&[]), []);
        assert_eq!(stretches(&[1.0, 9.0]).len(), 1);
        assert_eq!(stretches(&[4.0; 100]).len(), 1);
        assert_eq!(
            stretches(&[4.0, 1.0]),
            [Stretch { begin: 0, end: 2, median: 2.5, p_value: None }]
        );
    }
}
