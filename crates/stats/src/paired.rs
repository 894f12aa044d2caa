//! Two programs that run at once, in pairs of runs whose places are swapped: how much longer the second one takes.
//!
//! The value of a pair is d = ln(B / A): what slows both programs of a pair by the same factor cancels. Of the
//! pairs with A at the first place, d = θ + u, and of the others d = θ - u, where θ is the difference of the
//! programs, and u what the second place adds to the first in that pair: the effect of the places, and the noise
//! that hits one of them only. If the noise does not depend on which program runs there, u has one distribution
//! in both, and d of the one and -d of the other have distributions that are shifted by 2 θ. So θ is half of
//! the shift by the estimator of Hodges and Lehmann (the median of all sums of two pairs, one of each kind), and
//! the Mann-Whitney test has an interval that is exact for any distribution of u, also with a mean that is not 0.
//!
//! L. Bulej, V. Horký, P. Tůma, F. Farquet, A. Prokopec: Duet benchmarking: improving measurement accuracy in the
//! cloud. ICPE 2020: both programs at once, on two CPUs of one machine.
//!
//! Cannot see: noise that hits one of the programs more than the other wherever it runs; what the programs do to
//! each other.

#[cfg(test)]
mod simulations;

use serde::Serialize;
use units::Ppm;

use crate::comparison::differences::{Differences, difference_at};
use crate::comparison::statistic::Statistic;
use crate::dependence::inflation;
use crate::ranks::significant;

/// The share of the intervals that do not contain the true difference.
const LEVEL: f64 = 0.05;
/// From so many pairs on, an autocorrelation can be distinguished from chance.
const DEPENDENCE_MIN: usize = 16;

/// The times of two programs that ran at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimedPair {
    /// The time of the first program, greater than 0, in any unit,
    pub a: f64,
    /// and of the second one.
    pub b: f64,
    /// Whether the first program had the second place.
    pub is_swapped: bool,
}

/// How much longer the second program takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairedDifference {
    /// The number of pairs.
    pub pairs: usize,
    /// By how much the second program takes longer than the first one, in parts of that.
    pub difference_ppm: Ppm,
    /// The interval that contains the true difference with a probability of at least 95 %; null with fewer than 4
    /// pairs of each order.
    pub interval_ppm: Option<[Ppm; 2]>,
    /// By how much a program takes longer at the second place than at the first one.
    pub place_ppm: Ppm,
    /// Its interval; null with fewer than 4 pairs of each order.
    pub place_interval_ppm: Option<[Ppm; 2]>,
    /// The standard deviation of the difference of a pair, without the effect of the places; null with fewer than 3
    /// pairs.
    pub stddev_ppm: Option<Ppm>,
    /// The standard deviation that it would have if the noise of both programs of a pair were independent; null with
    /// fewer than 3 pairs.
    pub independent_stddev_ppm: Option<Ppm>,
    /// The correlation of the times of both programs, without the effect of the places; null if the times of one do
    /// not vary.
    pub correlation: Option<f64>,
}

/// The shift of a sample, and its interval.
struct Shift {
    by: f64,
    interval: Option<[f64; 2]>,
}

impl PairedDifference {
    /// The difference of these pairs; `None` without a pair of each order.
    pub fn of(pairs: &[TimedPair]) -> Option<Self> {
        let [straight, swapped] = [false, true].map(|is_swapped| {
            let of_order = pairs.iter().filter(|pair| pair.is_swapped == is_swapped);
            of_order.map(TimedPair::log_ratio).collect::<Vec<f64>>()
        });
        if straight.is_empty() || swapped.is_empty() {
            return None;
        }
        let residuals = Residuals::of(pairs);
        let inflation = match pairs.len() < DEPENDENCE_MIN {
            true => 1.0,
            false => inflation([&residuals.ratios, &[]]),
        };
        let mirrored: Vec<f64> = swapped.iter().map(|ratio| -ratio).collect();
        let twice = Shift::of(&mirrored, &straight, inflation);
        let places = Shift::of(&swapped, &straight, 1.0);
        let Residuals { a, b, ratios } = &residuals;
        let both = deviation(a).zip(deviation(b));
        let correlation = |(a_deviation, b_deviation)| {
            let product = a_deviation * b_deviation;
            (product > 0.0).then(|| covariance(a, b)).flatten().map(|it| it / product)
        };
        Some(Self {
            pairs: pairs.len(),
            difference_ppm: part(twice.by),
            interval_ppm: twice.interval.map(|ends| ends.map(part)),
            place_ppm: part(places.by),
            place_interval_ppm: places.interval.map(|ends| ends.map(part)),
            stddev_ppm: deviation(ratios).map(|it| Ppm::new(it * 1e6)),
            independent_stddev_ppm: both.map(|(a, b)| Ppm::new(a.hypot(b) * 1e6)),
            correlation: both.and_then(correlation),
        })
    }

    /// Whether the interval does not contain 0: the programs differ.
    pub fn is_significant(&self) -> bool {
        self.interval_ppm.is_some_and(|[low, high]| low.get() > 0.0 || high.get() < 0.0)
    }
}

impl TimedPair {
    fn log_ratio(&self) -> f64 {
        (self.b / self.a).ln()
    }
}

impl Shift {
    /// By how much values of `b` are larger than those of `a`. The interval is that of the Mann-Whitney test: of
    /// the differences of all pairs in ascending order, two at the same distance from both ends. It is wider
    /// by the root of `inflation`.
    fn of(a: &[f64], b: &[f64], inflation: f64) -> Self {
        let by = Differences::new(Statistic::Median, [a, b]).whole();
        let count = a.len() * b.len();
        let interval = significant([a.len(), b.len()], LEVEL).map(|u| {
            // From 1: as many differences are below the interval's lower end as U is short of all.
            let place = count - u + 1;
            [place, count + 1 - place].map(|place| {
                let end = difference_at([a, b], place);
                by + (end - by) * inflation.sqrt()
            })
        });
        Self { by, interval }
    }
}

/// The logarithms of times and ratios, without the means of their places.
struct Residuals {
    a: Vec<f64>,
    b: Vec<f64>,
    ratios: Vec<f64>,
}

impl Residuals {
    fn of(pairs: &[TimedPair]) -> Self {
        let without_places = |of: fn(&TimedPair) -> f64| -> Vec<f64> {
            let means = [false, true].map(|is_swapped| {
                let of_order = pairs.iter().filter(|pair| pair.is_swapped == is_swapped);
                let (sum, count) =
                    of_order.fold((0.0, 0.0), |(sum, n), pair| (sum + of(pair), n + 1.0));
                sum / f64::max(count, 1.0)
            });
            let rest = |pair: &TimedPair| of(pair) - means[usize::from(pair.is_swapped)];
            pairs.iter().map(rest).collect()
        };
        Self {
            a: without_places(|pair| pair.a.ln()),
            b: without_places(|pair| pair.b.ln()),
            ratios: without_places(TimedPair::log_ratio),
        }
    }
}

/// The standard deviation of residuals, whose mean is 0 in each of two groups; `None` of fewer than three.
fn deviation(residuals: &[f64]) -> Option<f64> {
    covariance(residuals, residuals).map(f64::sqrt)
}

fn covariance(a: &[f64], b: &[f64]) -> Option<f64> {
    let products: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    let free = a.len().checked_sub(2).filter(|free| *free > 0)?;
    Some(products / free as f64)
}

/// Half of a difference of logarithms, as parts.
fn part(twice: f64) -> Ppm {
    Ppm::new((twice / 2.0).exp_m1() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(a: f64, b: f64, is_swapped: bool) -> TimedPair {
        TimedPair { a, b, is_swapped }
    }

    /// Check that the effect of a place, and noise that hits both programs of a pair, cancel exactly.
    #[test]
    fn places_and_common_noise() {
        let noise = [1.0, 3.0, 1.5, 9.0, 1.1, 1.2, 4.0, 1.0];
        let pairs = noise.iter().zip(0..).map(|(noise, pair_number)| {
            let is_swapped = pair_number % 2 == 1;
            // The second place takes 10 % longer, and the second program 2 %.
            let [a, b] = if is_swapped { [1.1, 1.0] } else { [1.0, 1.1] };
            pair(noise * a * 50.0, noise * b * 51.0, is_swapped)
        });
        let found = PairedDifference::of(&pairs.collect::<Vec<_>>()).unwrap();
        let close = |found: Ppm, expected: f64| {
            assert!((found.get() - expected).abs() < 1e-3, "{found:?} {expected}");
        };
        close(found.difference_ppm, 20_000.0);
        close(found.place_ppm, 100_000.0);
        for end in found.interval_ppm.unwrap() {
            close(end, 20_000.0);
        }
        close(found.stddev_ppm.unwrap(), 0.0);
        let independent = found.independent_stddev_ppm.unwrap();
        assert!(independent.get() > 500_000.0, "{found:?}");
        assert!(found.correlation.unwrap() > 0.999_999);
        assert!(found.is_significant());
    }

    /// Check an interval counted by hand: of 4 and 4 pairs, the smallest and the largest of the 16 means of two
    /// pairs; of 5 and 5 the third from both ends.
    #[test]
    fn bounds() {
        for (count, from_end) in [(4_u32, 1_usize), (5, 3)] {
            let values = |from: u32| (0..count).map(move |at| f64::from(from + at * at));
            let [straight, swapped] =
                [1, 20].map(|from| values(from).collect::<Vec<_>>());
            let pairs =
                [(&straight, false), (&swapped, true)].map(|(values, is_swapped)| {
                    values
                        .iter()
                        .map(move |value| pair(1.0, (value / 100.0).exp(), is_swapped))
                });
            let pairs: Vec<TimedPair> = pairs.into_iter().flatten().collect();
            let mut means: Vec<f64> = straight
                .iter()
                .flat_map(|one| swapped.iter().map(move |other| (one + other) / 200.0))
                .collect();
            means.sort_unstable_by(f64::total_cmp);
            let expected = [means[from_end - 1], means[means.len() - from_end]];
            let found = PairedDifference::of(&pairs).unwrap();
            for (found, expected) in found.interval_ppm.unwrap().iter().zip(expected) {
                assert!(
                    (found.get() - expected.exp_m1() * 1e6).abs() < 1e-6,
                    "{found:?}"
                );
            }
        }
    }

    /// Check that few pairs have no interval, and pairs of one order no difference.
    #[test]
    fn few_pairs() {
        let pairs = [pair(1.0, 1.0, false), pair(1.0, 2.0, true), pair(1.0, 1.0, true)];
        let found = PairedDifference::of(&pairs).unwrap();
        assert_eq!((found.pairs, found.interval_ppm), (3, None));
        assert!(!found.is_significant());
        assert_eq!(found.correlation, None);
        let two = PairedDifference::of(&pairs[..2]).unwrap();
        assert_eq!((two.stddev_ppm, two.independent_stddev_ppm), (None, None));
        assert_eq!(PairedDifference::of(&pairs[1..]), None);
        assert_eq!(PairedDifference::of(&[]), None);
    }
}
