//! How much the numbers of a set of runs differ from run to run.

use serde::Serialize;
use units::Ppm;

use crate::comparison::sample::Sample;
use crate::comparison::statistic::Statistic;
use crate::unit::{Better, Unit};

/// The fewest runs whose median has an interval: with fewer, even the range of all runs contains the true
/// median with a probability of less than 95 %.
const RUNS_MIN: usize = 6;
/// The probability with which an interval contains the true median.
const CONFIDENCE: f64 = 0.95;

/// The values of a quantity in a set of runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSpread<Q> {
    /// What the values are of.
    #[serde(flatten)]
    pub quantity: Q,
    /// The number of runs that have it.
    pub runs: usize,
    /// The smallest value.
    pub min: f64,
    /// The first quartile.
    pub p25: f64,
    /// The median.
    pub median: f64,
    /// The third quartile.
    pub p75: f64,
    /// The largest value.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation, of a sample; null with one run.
    pub stddev: Option<f64>,
    /// The interval that contains the true median with a probability of at least 95 %: two of the
    /// values (order statistics, exact for any distribution); null with fewer than 6 runs.
    pub median_interval: Option<[f64; 2]>,
    /// Half of the difference of the quartiles, in parts of the median; null if that is 0.
    pub spread_ppm: Option<Ppm>,
    /// The unit.
    #[serde(skip)]
    pub unit: Unit,
    /// Which values are better.
    #[serde(skip)]
    pub better: Better,
}

impl<Q: Clone> RunSpread<Q> {
    /// The spread of a sample; `None` without values.
    pub fn of(sample: &Sample<Q>) -> Option<Self> {
        let mut values = sample.values.clone();
        values.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let quantile = |part| quantile(&values, part);
        let mean = Statistic::Mean.of(&values)?;
        let (p25, median, p75) = (quantile(0.25), quantile(0.5), quantile(0.75));
        Some(Self {
            quantity: sample.quantity.clone(),
            runs: values.len(),
            min,
            p25,
            median,
            p75,
            max,
            mean,
            stddev: stddev(&values, mean),
            median_interval: median_interval(&values),
            spread_ppm: (median != 0.0)
                .then(|| Ppm::new((p75 - p25) / 2.0 / median * 1e6)),
            unit: sample.unit,
            better: sample.better,
        })
    }
}

/// A quantile of sorted values, interpolated between two of them (type 7 of R. J. Hyndman, Y. Fan: Sample
/// quantiles in statistical packages. The American Statistician 50, 1996).
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to the number of values"
)]
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * (sorted.len() - 1) as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    below + (above - below) * place.fract()
}

fn stddev(values: &[f64], mean: f64) -> Option<f64> {
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// The narrowest symmetric pair of values between which the true median lies with that confidence. The
/// number of values below it is binomial (H. A. David, H. N. Nagaraja: Order Statistics, 2003, 7.1).
fn median_interval(sorted: &[f64]) -> Option<[f64; 2]> {
    let count = sorted.len();
    if count < RUNS_MIN {
        return None;
    }
    // The probability of at most so many values below the median, by powers of 1/2 in logarithms: 2^-n
    // of thousands of runs is no number any more.
    let mut log_term = -(count as f64) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    let mut outside = 0;
    for below in 0..count / 2 {
        tail += log_term.exp();
        if tail > (1.0 - CONFIDENCE) / 2.0 {
            break;
        }
        outside = below;
        log_term += ((count - below) as f64 / (below + 1) as f64).ln();
    }
    Some([sorted[outside], sorted[count - 1 - outside]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(count: u32) -> Vec<f64> {
        (1..=count).map(f64::from).collect()
    }

    /// Check quartiles and the standard deviation with numbers of R: `quantile(1:10)`, `sd(1:10)`.
    #[test]
    fn spreads() {
        let values = sorted(10);
        let quartiles = [0.0, 0.25, 0.5, 0.75, 1.0].map(|part| quantile(&values, part));
        assert_eq!(quartiles, [1.0, 3.25, 5.5, 7.75, 10.0]);
        let deviation = stddev(&values, 5.5).unwrap();
        assert!((deviation - 3.027_650_354_097_49).abs() < 1e-12, "{deviation}");
        assert_eq!(stddev(&[3.0], 3.0), None);
        assert_eq!(quantile(&[3.0], 0.25), 3.0);
    }

    /// Check the intervals of medians with those of tables for the sign test: of 6 values the smallest and
    /// the largest, of 10 the second, of 20 the sixth, of 100 the 40th from both ends.
    #[test]
    fn intervals_of_medians() {
        assert_eq!(median_interval(&sorted(5)), None);
        for (count, low) in
            [(6, 1.0), (8, 1.0), (9, 2.0), (10, 2.0), (20, 6.0), (100, 40.0)]
        {
            let [from, to] = median_interval(&sorted(count)).unwrap();
            assert_eq!((from, to), (low, f64::from(count) + 1.0 - low), "{count}");
        }
        assert!(median_interval(&sorted(20_000)).is_some());
    }
}
