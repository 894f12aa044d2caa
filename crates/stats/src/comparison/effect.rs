//! How much one sample differs from another: the difference between them, and an interval that
//! contains the true one in 95 % of all cases.
//!
//! The difference is the median of all differences of a value of one sample from a value of the other
//! (J. L. Hodges, E. L. Lehmann: Estimates of location based on rank tests. Annals of Mathematical
//! Statistics 34, 1963): one run that a cron job hits does not move it. Of values that are mostly 0 it
//! is the difference of the means: the median says nothing about rare events. So it is if most pairs are of
//! equal values but the ranks differ significantly. The interval is a
//! bootstrap's, corrected for bias and acceleration (B. Efron: Better bootstrap confidence
//! intervals. Journal of the American Statistical Association 82, 1987). Its resamples follow
//! from a fixed seed, so that a comparison of the same files prints the same numbers.

use std::iter;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};

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

/// The number that stands for a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The median; its difference is that of all pairs.
    Median,
    /// The mean.
    Mean,
}

/// A difference, and the bounds of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Effect {
    pub(crate) difference: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Statistic {
    /// The statistic for two samples: of values that are mostly 0 the mean.
    pub(crate) fn for_samples(samples: [&[f64]; 2]) -> Self {
        let zeros =
            samples.map(|values| values.iter().filter(|one| **one == 0.0).count());
        let is_rare =
            zeros.iter().zip(samples).any(|(zeros, all)| 2 * zeros >= all.len());
        let is_there = zeros.iter().zip(samples).any(|(zeros, all)| *zeros < all.len());
        if is_rare && is_there { Self::Mean } else { Self::Median }
    }

    /// The statistic of one sample; `None` without values.
    pub fn of(self, values: &[f64]) -> Option<f64> {
        (!values.is_empty()).then(|| match self {
            Self::Median => median(&mut values.to_vec()),
            Self::Mean => mean(values),
        })
    }
}

/// Two samples, and by how much values of the second one are larger.
struct Differences {
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
    fn new(statistic: Statistic, samples: [&[f64]; 2]) -> Self {
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
    fn whole(&self) -> f64 {
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
    fn bounds(&self, difference: f64) -> [f64; 2] {
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

impl Effect {
    /// By how much the values of `b` are larger than those of `a`; `None` if one is empty. The variance
    /// of a sum of values is larger by `inflation` than that of independent ones.
    pub(crate) fn of(
        statistic: Statistic,
        samples: [&[f64]; 2],
        inflation: f64,
    ) -> Option<Self> {
        if samples.iter().any(|values| values.is_empty()) {
            return None;
        }
        let differences = Differences::new(statistic, samples);
        let difference = differences.whole();
        let [low, high] = differences
            .bounds(difference)
            .map(|bound| difference + (bound - difference) * inflation.sqrt());
        Some(Self { difference, low, high })
    }

    /// The statistic of two samples, and the effect by it. Of samples with a significant difference of
    /// which most pairs are equal, these are the means: the median difference would be 0.
    pub(crate) fn shown(
        samples: [&[f64]; 2],
        inflation: f64,
        is_significant: bool,
    ) -> (Statistic, Option<Self>) {
        let statistic = Statistic::for_samples(samples);
        let effect = Self::of(statistic, samples, inflation);
        let is_none = effect.is_some_and(|it| is_rounded_zero(it.difference, samples));
        match is_significant && is_none {
            true => (Statistic::Mean, Self::of(Statistic::Mean, samples, inflation)),
            false => (statistic, effect),
        }
    }
}

/// Whether a difference is 0, but for the precision of numbers: a bisection ends next to 0.
fn is_rounded_zero(difference: f64, samples: [&[f64]; 2]) -> bool {
    let largest =
        samples.into_iter().flatten().fold(0.0_f64, |max, it| max.max(it.abs()));
    difference.abs() <= f64::EPSILON * largest
}

/// The values in ascending order.
fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
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

/// The median; of an even number of values, the mean of the middle two.
fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let is_even = values.len() % 2 == 0;
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| is_even);
    lower.map_or(upper, |lower| (lower + upper) / 2.0)
}

/// The difference that half of all differences do not exceed.
fn median_by_bisection(a: &[f64], b: &[f64]) -> f64 {
    let half = (a.len() * b.len()).div_ceil(2);
    let mut low = b[0] - a[a.len() - 1];
    let mut high = b[b.len() - 1] - a[0];
    for _ in 0..HALVINGS {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if at_most(a, b, middle) >= half {
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

    fn of(a: &[f64], b: &[f64]) -> Effect {
        Effect::of(Statistic::for_samples([a, b]), [a, b], 1.0).unwrap()
    }

    /// Check that a constant shift has no interval, and that one outlier does not move a difference.
    #[test]
    fn shifts() {
        let effect = of(&[5.0; 6], &[7.0; 9]);
        assert_eq!([effect.difference, effect.low, effect.high], [2.0; 3]);
        let base: Vec<f64> = (0..20).map(f64::from).collect();
        let mut other: Vec<f64> = base.iter().map(|value| value + 3.0).collect();
        other[19] = 1e9;
        let effect = of(&base, &other);
        assert_eq!(effect.difference, 3.0);
        assert!(
            effect.low < 3.0 && effect.high > 3.0 && effect.high < 20.0,
            "{effect:?}"
        );
    }

    /// Check that rare values have the difference of their means, and all zeros that of their medians.
    #[test]
    fn rare_values() {
        let (none, rare) =
            ([0.0; 10], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0, 0.0, 6.0]);
        assert_eq!(Statistic::for_samples([&none, &none]), Statistic::Median);
        assert_eq!(Statistic::for_samples([&none, &rare]), Statistic::Mean);
        assert_eq!(Statistic::for_samples([&[1.0, 2.0], &[3.0, 0.5]]), Statistic::Median);
        let effect = of(&none, &rare);
        assert_eq!(effect.difference, 1.0);
        assert!(effect.low >= 0.0 && effect.high > 1.0, "{effect:?}");
    }

    /// Check that there is no effect without values, and that dependence widens the interval.
    #[test]
    fn width() {
        let (a, b) = ([1.0, 2.0, 4.0, 8.0], [3.0, 5.0, 7.0, 9.0]);
        assert_eq!(Effect::of(Statistic::Median, [&a, &[]], 1.0), None);
        let [narrow, wide] =
            [1.0, 4.0].map(|it| Effect::of(Statistic::Median, [&a, &b], it).unwrap());
        let width = |effect: Effect| effect.high - effect.low;
        assert!((width(wide) - 2.0 * width(narrow)).abs() < 1e-9);
    }

    /// Check that the mean of the middle two is taken of an even number of pairs.
    #[test]
    fn middle_two() {
        assert_eq!(of(&[1.0, 2.0], &[10.0]).difference, 8.5);
        assert_eq!(of(&[1.0, 2.0, 9.0], &[10.0]).difference, 8.0);
    }

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
