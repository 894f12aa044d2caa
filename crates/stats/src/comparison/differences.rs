//! The difference of two samples by a statistic, and of their resamples.

use std::iter;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::comparison::statistic::{Statistic, mean};
use crate::distribution::quantile;
use crate::random::below;

/// How often both samples are drawn again.
const RESAMPLES: usize = 2_000;
/// The share of true differences that are below an interval, and above.
const TAIL: f64 = 0.025;
/// Any number; it is the same for all comparisons.
const SEED: u64 = 0x6e6f_6973_6566_6c6f;
/// Samples with more pairs have their median difference by bisection.
const PAIRS_MAX: usize = 4_096;
/// How often the interval of all differences is halved: to the precision of a number.
const HALVINGS: usize = 100;

/// Two samples, and by how much values of the second one are larger.
pub(crate) struct Differences {
    statistic: Statistic,
    /// In ascending order.
    samples: [Vec<f64>; 2],
    /// The differences of all pairs in ascending order, with the places of both values; empty for
    /// samples with too many.
    pairs: Vec<(f64, usize, usize)>,
}

/// How often each value of a sample is drawn.
type Times = Vec<u32>;

impl Differences {
    pub(crate) fn new(statistic: Statistic, samples: [&[f64]; 2]) -> Self {
        let samples = samples.map(sorted);
        let [a, b] = &samples;
        let mut pairs = Vec::new();
        if statistic == Statistic::Median && a.len() * b.len() <= PAIRS_MAX {
            for (j, value) in b.iter().enumerate() {
                pairs.extend(a.iter().enumerate().map(|(i, a)| (value - a, i, j)));
            }
            pairs.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        }
        Self { statistic, samples, pairs }
    }

    /// The difference of the samples as they are.
    pub(crate) fn whole(&self) -> f64 {
        self.of(&self.each_once())
    }

    fn each_once(&self) -> [Times; 2] {
        [0, 1].map(|which| vec![1; self.samples[which].len()])
    }

    /// The difference of samples with each value so many times.
    fn of(&self, times: &[Times; 2]) -> f64 {
        match self.statistic {
            Statistic::Mean => {
                let [a, b] =
                    [0, 1].map(|which| mean_of(&self.samples[which], &times[which]));
                b - a
            }
            Statistic::Median if self.pairs.is_empty() => {
                let [a, b] =
                    [0, 1].map(|which| repeated(&self.samples[which], &times[which]));
                median_by_bisection(&a, &b)
            }
            Statistic::Median => self.median(times),
        }
    }

    /// The median difference of pairs; of an even number, the mean of the middle two.
    fn median(&self, [a, b]: &[Times; 2]) -> f64 {
        let count = |times: &Times| times.iter().sum::<u32>();
        let all = count(a) * count(b);
        let (mut before, mut lower) = (0, None);
        for (difference, i, j) in &self.pairs {
            before += a[*i] * b[*j];
            if before >= all.div_ceil(2) && lower.is_none() {
                lower = Some(*difference);
            }
            if before > all / 2 {
                return (lower.unwrap_or(*difference) + difference) / 2.0;
            }
        }
        lower.unwrap_or(0.0)
    }

    /// The differences of resamples: of each sample, as many values as it has, with repetition.
    fn resamples(&self) -> Vec<f64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let mut resample = || {
            let times = [0, 1].map(|which| {
                let count = self.samples[which].len();
                let mut times = vec![0; count];
                (0..count).for_each(|_| times[below(&mut random, count)] += 1);
                times
            });
            self.of(&times)
        };
        let mut all: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
        all.sort_unstable_by(f64::total_cmp);
        all
    }

    /// How the deviation of the difference changes with it: from the differences without one value each.
    fn acceleration(&self) -> f64 {
        let (mut cubes, mut squares) = (0.0, 0.0);
        for (which, sample) in self.samples.iter().enumerate() {
            if sample.len() < 2 {
                continue;
            }
            let without = |index: usize| {
                let mut times = self.each_once();
                times[which][index] = 0;
                self.of(&times)
            };
            let all: Vec<f64> = (0..sample.len()).map(without).collect();
            let (n, mean) = (sample.len() as f64, mean(&all));
            for influence in all.iter().map(|one| (n - 1.0) * (mean - one)) {
                cubes += influence.powi(3) / n.powi(3);
                squares += influence.powi(2) / n.powi(2);
            }
        }
        match squares > 0.0 {
            true => cubes / (6.0 * squares.powf(1.5)),
            false => 0.0,
        }
    }

    /// The bounds of the interval of a difference.
    pub(crate) fn bounds(&self, difference: f64) -> [f64; 2] {
        let (normal, resamples) = (Normal::standard(), self.resamples());
        let smaller = resamples.iter().filter(|one| **one < difference).count() as f64;
        let equal = resamples.iter().filter(|one| **one == difference).count() as f64;
        let share = (smaller + equal / 2.0) / resamples.len() as f64;
        let bias = normal.inverse_cdf(share.clamp(1e-9, 1.0 - 1e-9));
        let acceleration = self.acceleration();
        let at = |tail: f64| {
            let z = bias + normal.inverse_cdf(tail);
            let share = normal.cdf(bias + z / (1.0 - acceleration * z));
            quantile(&resamples, millionths(share)).unwrap_or(difference)
        };
        [at(TAIL), at(1.0 - TAIL)]
    }
}

/// The values in ascending order.
fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The mean of a sample with each value so many times.
fn mean_of(values: &[f64], times: &[u32]) -> f64 {
    let count: u32 = times.iter().sum();
    let sum: f64 =
        values.iter().zip(times).map(|(value, times)| value * f64::from(*times)).sum();
    sum / f64::from(count)
}

/// A sample with each value so many times.
fn repeated(values: &[f64], times: &[u32]) -> Vec<f64> {
    let each = values.iter().zip(times);
    each.flat_map(|(value, times)| iter::repeat_n(*value, *times as usize)).collect()
}

/// The difference that half of all differences do not exceed.
fn median_by_bisection(a: &[f64], b: &[f64]) -> f64 {
    bisection(a, b, (a.len() * b.len()).div_ceil(2))
}

/// The difference at that place, from 1, of all differences in ascending order of a value of the second sample and
/// one of the first.
pub(crate) fn difference_at(samples: [&[f64]; 2], place: usize) -> f64 {
    let [a, b] = samples.map(sorted);
    bisection(&a, &b, place)
}

/// The smallest difference that so many differences do not exceed.
fn bisection(a: &[f64], b: &[f64], count: usize) -> f64 {
    let mut low = b[0] - a[a.len() - 1];
    let mut high = b[b.len() - 1] - a[0];
    for _ in 0..HALVINGS {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if at_most(a, b, middle) >= count {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// How many differences are at most that.
fn at_most(a: &[f64], b: &[f64], difference: f64) -> usize {
    let (mut count, mut from) = (0, 0);
    for value in b {
        while from < a.len() && value - a[from] > difference {
            from += 1;
        }
        count += a.len() - from;
    }
    count
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to 1,000,000"
)]
fn millionths(share: f64) -> u32 {
    (share * 1e6).round().clamp(0.0, 1e6) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::comparison::statistic::median;

    proptest! {
        /// Check the median of resamples against that of the values themselves.
        #[test]
        fn medians(
            a in proptest::collection::vec((-50_i32..50, 1_u32..3), 1..12),
            b in proptest::collection::vec((-50_i32..50, 1_u32..3), 1..12),
        ) {
            let values = |sample: &[(i32, u32)]| -> Vec<f64> {
                sample.iter().map(|(value, _)| f64::from(*value)).collect()
            };
            let samples = [values(&a), values(&b)];
            let found = Differences::new(Statistic::Median, [&samples[0], &samples[1]]);
            let times = [a, b].map(|mut sample| {
                sample.sort_by_key(|(value, _)| *value);
                sample.into_iter().map(|(_, times)| times).collect::<Times>()
            });
            let [a, b] = [0, 1].map(|which| repeated(&found.samples[which], &times[which]));
            let mut all: Vec<f64> =
                b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
            prop_assert_eq!(found.of(&times), median(&mut all));
        }

        /// Check bisection against all differences: as many are at most the median as above it.
        #[test]
        fn bisection(
            a in proptest::collection::vec(-50_i32..50, 1..30),
            b in proptest::collection::vec(-50_i32..50, 1..30),
        ) {
            let [a, b] = [a, b].map(|values| {
                sorted(&values.into_iter().map(f64::from).collect::<Vec<_>>())
            });
            let found = median_by_bisection(&a, &b);
            let mut all: Vec<f64> =
                b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
            all.sort_unstable_by(f64::total_cmp);
            let middle = all[(all.len() - 1) / 2];
            prop_assert!((found - middle).abs() < 1e-9, "{found} {middle}");
        }
    }
}
