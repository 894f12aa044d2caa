//! Which of several sources of lost time explains why runs differ: the one that took more time in longer runs.
//!
//! A source explains values if its ranks and theirs correlate (Spearman) more than in random orders of the
//! runs. In each order, the largest correlation of all sources counts, so that the test is one test, exact for any
//! distribution and whatever the sources have in common (P. H. Westfall, S. S. Young: Resampling-Based Multiple
//! Testing, 1993). How much a source explains is the part of the variance that the values would not have
//! without its time. A timer interrupts longer runs more often, and so correlates with them; but its time is
//! too short to explain why they are longer.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::Serialize;
use units::Ppm;

use crate::comparison::statistic::mean;
use crate::random::shuffle;
use crate::ranks::ranks;

/// Any number; the same values always have the same result.
const SEED: u64 = 0x6578_706c_6169_6e31;
/// The number of random orders.
const ORDERS: usize = 1_999;
/// Of all orders, the given one included, so many at most have a correlation as large: one of 200.
const LARGE_MAX: usize = 10;
/// Two correlations are equal if they differ by rounding only.
const ROUNDING: f64 = 1e-9;

/// A source that explains less of the variance explains nothing.
const SHARE_MIN: Ppm = Ppm::new(100_000.0);

/// A source that explains values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Explained {
    /// Its place among the sources.
    #[serde(skip)]
    pub source: usize,
    /// The correlation of the ranks, from 0 to 1.
    pub rank_correlation: f64,
    /// The part of the variance that the values would not have without it.
    pub share_ppm: Ppm,
}

/// The source that explains the largest part of the variance, of those whose correlation is no chance; `None` if
/// none explains a tenth of it. Each has a time for each value, in the unit of the values.
pub fn explained(values: &[f64], sources: &[&[f64]]) -> Option<Explained> {
    let mut order = Centred::of(&ranks(values))?;
    let all = sources.iter().enumerate();
    let all: Vec<(usize, Centred)> =
        all.filter_map(|(at, source)| Some((at, Centred::of(&ranks(source))?))).collect();
    let mut found: Vec<Explained> = all
        .iter()
        .map(|(source, ranks)| Explained {
            source: *source,
            rank_correlation: order.correlation(ranks),
            share_ppm: share(values, sources[*source]),
        })
        .collect();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut largest: Vec<f64> = Vec::with_capacity(ORDERS);
    for _ in 0..ORDERS {
        shuffle(&mut random, &mut order.0);
        let each = all.iter().map(|(_, ranks)| order.correlation(ranks));
        largest.push(each.fold(-1.0, f64::max));
    }
    found.retain(|one| {
        let as_large = |other: &&f64| **other >= one.rank_correlation - ROUNDING;
        one.rank_correlation > 0.0
            && one.share_ppm >= SHARE_MIN
            && largest.iter().filter(as_large).count() < LARGE_MAX
    });
    found.into_iter().max_by(|a, b| a.share_ppm.get().total_cmp(&b.share_ppm.get()))
}

/// The part of the variance of values that is not there without these times.
fn share(values: &[f64], times: &[f64]) -> Ppm {
    let rest: Vec<f64> =
        values.iter().zip(times).map(|(value, time)| value - time).collect();
    Ppm::new((1.0 - squares(&rest) / squares(values)) * 1e6)
}

/// The sum of the squared deviations from the mean; there are values.
fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// The rank correlation of two samples of equally many values, from -1 to 1; 0 if one is constant.
pub fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let both = Centred::of(&ranks(a)).zip(Centred::of(&ranks(b)));
    both.map_or(0.0, |(a, b)| a.correlation(&b))
}

/// Values without their mean, and scaled: their squares add up to 1.
struct Centred(Vec<f64>);

impl Centred {
    /// `None` for values that are all equal.
    fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let mean = mean(values);
        let length =
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>().sqrt();
        (length > 0.0)
            .then(|| Self(values.iter().map(|value| (value - mean) / length).collect()))
    }

    fn correlation(&self, other: &Self) -> f64 {
        self.0.iter().zip(&other.0).map(|(a, b)| a * b).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Random;

    fn slices(sources: &[Vec<f64>]) -> Vec<&[f64]> {
        sources.iter().map(Vec::as_slice).collect()
    }

    /// Check that of twenty sources without an effect, one explains the values in at most one of 200 sets: of
    /// normal, heavy-tailed and rare times, and of values with ties.
    #[test]
    fn few_false_explanations() {
        const TRIALS: usize = 400;
        let mut random = Random::new(41);
        for count in [6, 12, 40] {
            let found = (0..TRIALS).filter(|trial| {
                let mut of = |kind: usize| -> Vec<f64> {
                    let mut value = || match kind % 4 {
                        0 => random.normal(),
                        1 => random.pareto(),
                        2 => (random.exponential() - 2.0).max(0.0),
                        _ => (2.0 * random.normal()).round(),
                    };
                    (0..count).map(|_| value()).collect()
                };
                let values = of(*trial);
                let sources: Vec<Vec<f64>> = (0..20).map(&mut of).collect();
                explained(&values, &slices(&sources)).is_some()
            });
            let share = found.count() as f64 / TRIALS as f64;
            assert!(
                share <= 0.005 + 3.0 * (0.005 / TRIALS as f64).sqrt(),
                "{count}: {share}"
            );
        }
    }

    /// Check that the source whose time is added is found among others that have more time, with the part of the
    /// variance that it has.
    #[test]
    fn sources_are_found() {
        let mut random = Random::new(42);
        for (count, least) in [(20, 70), (30, 95), (100, 100)] {
            let (mut found, mut shares) = (0, 0.0);
            for _ in 0..100 {
                let mut sources: Vec<Vec<f64>> = (0..10)
                    .map(|_| (0..count).map(|_| 9.0 * random.exponential()).collect())
                    .collect();
                sources[4].iter_mut().for_each(|time| *time /= 3.0);
                let rest = |random: &mut Random| 100.0 + 1.5 * random.normal();
                let values: Vec<f64> =
                    sources[4].iter().map(|time| time + rest(&mut random)).collect();
                if let Some(one) = explained(&values, &slices(&sources)) {
                    found += usize::from(one.source == 4);
                    shares += one.share_ppm.get() / 1e6;
                }
            }
            let share = shares / f64::from(u32::try_from(found).unwrap());
            println!("{count} runs: found in {found} of 100 sets, {share:.2} explained");
            // The variance of the source is 9, and that of the rest 2.25.
            assert!(
                found >= least && (share - 0.8).abs() < 0.1,
                "{count}: {found} {share}"
            );
        }
    }

    /// Check that constant values are explained by none, and that constant sources explain none.
    #[test]
    fn constants() {
        let rising: Vec<f64> = (0..20).map(f64::from).collect();
        assert_eq!(explained(&[1.0; 20], &[&rising]), None);
        assert_eq!(explained(&rising, &[&[1.0; 20]]), None);
        assert_eq!(explained(&[], &[&[]]), None);
        assert_eq!(explained(&rising, &[]), None);
        let found = explained(&rising, &[&[0.0; 20], &rising]).unwrap();
        assert!(
            found.source == 1 && (found.share_ppm.get() - 1e6).abs() < 1e-3,
            "{found:?}"
        );
        assert!(
            (rank_correlation(&[1.0, 2.0, 3.0], &[9.0, 8.0, 1.0]) + 1.0).abs() < 1e-12
        );
    }
}
