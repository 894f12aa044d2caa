//! A number of a few exact runs between which only inputs differ that should not matter.
//!
//! Each run alone is the same on every machine, but it is one order of events out of many. The mean of
//! several is reported with the interval that contains the mean of as many *other* runs with a
//! probability of 95 %: a prediction interval, by a factor of √2 wider than one of the true mean
//! (Hahn and Meeker, Statistical Intervals, 1991, chapter 4). It is exact if the values are normally
//! distributed.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use units::Ppm;

use crate::relative::relative;

/// The part of the other sets whose mean is outside of the interval.
const OUTSIDE: f64 = 0.05;
/// The same of the interval for gates, which check many numbers in each run.
const OUTSIDE_RARELY: f64 = 0.001;
/// The most values that are computed for an interval.
const VALUES_MAX: usize = 1000;

/// The mean of a number's variations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct VariedMean {
    /// The mean.
    pub mean: f64,
    /// The mean of as many other variations is at most so far from it in 19 of 20 cases.
    pub within: f64,
    /// The number of variations, from 2.
    pub variations: usize,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// The standard deviation of the values, as of a sample.
    pub stddev: f64,
}

impl VariedMean {
    /// That of these values; `None` for fewer than two.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.len() < 2 {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let stddev = (squares / (count - 1.0)).sqrt();
        Some(Self {
            mean,
            within: stddev * factor(values.len(), OUTSIDE)?,
            variations: values.len(),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            stddev,
        })
    }

    /// The number of variations whose mean is expected to be known to within that; `None` for more
    /// than 1000.
    fn needed(&self, within: f64) -> Option<usize> {
        (2..=VALUES_MAX).find(|&count| {
            factor(count, OUTSIDE).is_some_and(|factor| self.stddev * factor <= within)
        })
    }

    /// The same as a share of the mean; `None` if that is zero.
    pub fn within_ppm(&self) -> Option<Ppm> {
        relative(self.mean + self.within, self.mean)
    }

    /// The number of variations whose mean is expected to be known to within that share of it; `None` for
    /// more than 1000.
    pub fn needed_for(&self, share: Ppm) -> Option<usize> {
        self.needed(self.mean.abs() * share.get() / 1e6)
    }

    /// The mean of `others` further variations is at most so far from it in 999 of 1000 cases; infinite
    /// for none.
    pub fn within_rarely_left(&self, others: usize) -> f64 {
        let known = quantile(self.variations, OUTSIDE_RARELY);
        let inverse = |count: usize| 1.0 / count as f64;
        let both = inverse(self.variations) + inverse(others);
        known.map_or(f64::INFINITY, |quantile| self.stddev * quantile * both.sqrt())
    }
}

/// The largest difference that there may be, in parts of the base, if the variations show none: the larger
/// end of its interval. `within` is the ± of the difference.
pub fn none_above_ppm(base: f64, other: f64, within: f64) -> Option<Ppm> {
    let difference = (other - base).abs();
    (difference <= within).then(|| relative(base + difference + within, base))?
}

/// Half of the interval for the mean of as many other values, in standard deviations; that part of such
/// means is outside of it.
fn factor(count: usize, outside: f64) -> Option<f64> {
    Some(quantile(count, outside)? * (2.0 / count as f64).sqrt())
}

/// The quantile of Student's distribution for that many values, with that part outside of both sides.
fn quantile(count: usize, outside: f64) -> Option<f64> {
    let freedom = count.checked_sub(1)? as f64;
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(student.inverse_cdf(1.0 - outside / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Random;

    /// Check an interval against the table of Student's distribution: 2.776 for 5 values.
    #[test]
    fn five_values() {
        let varied = VariedMean::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((varied.mean, varied.min, varied.max), (3.0, 1.0, 5.0));
        let expected = 2.776_445 * (2.5_f64).sqrt() * (0.4_f64).sqrt();
        assert!((varied.within - expected).abs() < 1e-5, "{varied:?}");
        assert_eq!(VariedMean::of(&[1.0]), None);
    }

    /// Check that equal values have an interval without a width, and that the number of values for an
    /// interval is the smallest one.
    #[test]
    fn number_of_values() {
        let equal = VariedMean::of(&[7.0; 3]).unwrap();
        assert_eq!((equal.within, equal.needed(0.0)), (0.0, Some(2)));
        let varied = VariedMean::of(&[99.0, 101.0, 100.0]).unwrap();
        assert_eq!(varied.stddev, 1.0);
        let needed = varied.needed(1.0).unwrap();
        assert!(
            factor(needed, OUTSIDE) <= Some(1.0)
                && factor(needed - 1, OUTSIDE) > Some(1.0)
        );
        assert_eq!(varied.needed(1e-6), None);
    }

    /// Check that the interval of gates is wider for a single value than for the mean of many.
    #[test]
    fn gates() {
        let varied = VariedMean::of(&[99.0, 101.0, 100.0]).unwrap();
        let [one, three] = [1, 3].map(|others| varied.within_rarely_left(others));
        assert!(one > three && three > varied.within);
        assert!(varied.within_rarely_left(0).is_infinite());
    }

    /// Check that the mean of as many other values is within the interval in 19 of 20 cases.
    #[test]
    fn coverage() {
        let mut random = Random::new(1);
        for count in [2, 3, 6, 12] {
            let mut set =
                || -> Vec<f64> { (0..count).map(|_| 100.0 + random.normal()).collect() };
            let mut is_within = || {
                let (one, other) = (VariedMean::of(&set()), VariedMean::of(&set()));
                let (one, other) = (one.unwrap(), other.unwrap());
                (other.mean - one.mean).abs() <= one.within
            };
            let within = (0..20_000).filter(|_| is_within()).count();
            assert!((18_900..19_100).contains(&within), "{count}: {within}");
        }
    }
}
