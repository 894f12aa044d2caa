//! What a set of runs can show: the smallest difference that a comparison finds, and how many runs it takes to
//! find a given one.
//!
//! Runs are drawn from the distribution of the runs that were measured, and a second sample from the same
//! distribution, times a factor. The comparison finds a difference if so many pairs of values are in order that
//! the Mann-Whitney test is significant. So in each trial, the smallest factor that is found is one of the
//! ratios of all pairs, and its quantile over many trials is the difference that is found as often. For many runs,
//! their number follows from the share of pairs that a factor brings in order (G. E. Noether: Sample size
//! determination for some common nonparametric tests. Journal of the American Statistical Association 82, 1987).

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};
use units::Ppm;

use crate::ranks;

/// Fewer values do not say how much runs differ.
const VALUES_MIN: usize = 6;

/// The share of trials in which a difference is found.
pub const POWER: f64 = 0.8;
/// Any number; the same values always have the same result.
const SEED: u64 = 0x6469_6666_6572_3031;
/// The number of trials.
const TRIALS: usize = 500;
/// From so many runs on, Noether's approximation is as good.
const MANY: usize = 40;
/// A difference beyond this is of no use, in ppm.
const LARGEST: f64 = 1e9;
/// How often the interval of the smallest difference is halved: to a thousandth of it.
const HALVINGS: usize = 10;
/// A number of runs beyond this is of no use.
const RUNS_MAX: f64 = 1e5;

/// What a set of runs can show.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Detectable {
    /// The smallest difference that another set of as many runs shows in 8 of 10 trials, in parts of the
    /// median; null if so few runs show none.
    pub difference_ppm: Option<Ppm>,
    /// The difference of interest.
    pub interest_ppm: Ppm,
    /// The number of runs of each set that it takes to find that one in 8 of 10 trials; null if it is more than
    /// 100,000.
    pub runs: Option<usize>,
}

impl Detectable {
    /// What can be shown with these values, by tests at a level, and how many runs a difference of interest
    /// takes. `None` with fewer than six values, and for values that are not all above 0.
    pub fn of(values: &[f64], level: f64, interest: Ppm) -> Option<Self> {
        let runs = Runs::new(values)?;
        let count = values.len();
        Some(Self {
            difference_ppm: runs.smallest([count; 2], level),
            interest_ppm: interest,
            runs: runs.number(level, interest),
        })
    }

    /// The same for two sets that do not differ: what they would have shown.
    pub fn of_both(samples: [&[f64]; 2], level: f64, interest: Ppm) -> Option<Self> {
        let runs = Runs::of_both(samples)?;
        Some(Self {
            difference_ppm: runs.smallest(samples.map(<[f64]>::len), level),
            interest_ppm: interest,
            runs: runs.number(level, interest),
        })
    }
}

/// The distribution of runs.
struct Runs {
    /// In ascending order.
    sorted: Vec<f64>,
}

impl Runs {
    fn new(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let is_enough = sorted.len() >= VALUES_MIN && sorted[0] > 0.0;
        is_enough.then_some(Self { sorted })
    }

    /// The common distribution of two sets, each relative to its median.
    fn of_both(samples: [&[f64]; 2]) -> Option<Self> {
        let [a, b] = samples.map(Self::new);
        let relative = |runs: Self| {
            let median = runs.quantile(0.5);
            runs.sorted.into_iter().map(move |value| value / median)
        };
        Self::new(&relative(a?).chain(relative(b?)).collect::<Vec<_>>())
    }

    /// The value that is not exceeded with that probability: between two values in proportion, and beyond
    /// the first and the last one as between their neighbours.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to the number of values"
    )]
    fn quantile(&self, probability: f64) -> f64 {
        let place = probability * self.sorted.len() as f64 - 0.5;
        let below = place.floor().clamp(0.0, (self.sorted.len() - 2) as f64);
        let [from, to] = [0, 1].map(|next| self.sorted[below as usize + next]);
        (from + (to - from) * (place - below)).max(self.sorted[0] / 2.0)
    }

    /// The smallest difference between samples of these sizes that tests at that level find with a probability
    /// of `POWER`.
    fn smallest(&self, sizes: [usize; 2], level: f64) -> Option<Ppm> {
        if sizes.iter().all(|size| *size >= MANY) {
            return self.smallest_of_many(sizes, level);
        }
        let sizes = sizes.map(|size| size.min(10 * MANY)); // more of one set hardly help
        let in_order = ranks::significant(sizes, level)?;
        let pairs = sizes[0] * sizes[1];
        let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let mut ratios = Vec::with_capacity(pairs);
        let mut trial = || {
            let [a, b] = sizes.map(|size| {
                (0..size)
                    .map(|_| self.quantile(uniform(&mut random)))
                    .collect::<Vec<f64>>()
            });
            ratios.clear();
            ratios.extend(b.iter().flat_map(|b| a.iter().map(move |a| a / b)));
            *ratios.select_nth_unstable_by(in_order - 1, f64::total_cmp).1
        };
        let mut factors: Vec<f64> = (0..TRIALS).map(|_| trial()).collect();
        let place = TRIALS * 4 / 5;
        let (_, factor, _) = factors.select_nth_unstable_by(place, f64::total_cmp);
        // Few runs seem to differ less than they do.
        let wider = 1.0 + 1.0 / self.sorted.len() as f64;
        Some(Ppm::new(((*factor - 1.0) * wider).max(self.step()) * 1e6))
    }

    /// The same by Noether's approximation, with the harmonic mean of the sizes.
    fn smallest_of_many(&self, [n, m]: [usize; 2], level: f64) -> Option<Ppm> {
        let runs = 2 * n * m / (n + m);
        let is_found = |difference: f64| {
            self.many(level, Ppm::new(difference)).is_some_and(|many| many <= runs)
        };
        let (mut low, mut high) = (0.0, 1.0);
        while !is_found(high) {
            high *= 2.0;
            if high > LARGEST {
                return None;
            }
        }
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            if is_found(middle) { high = middle } else { low = middle }
        }
        Some(Ppm::new(high.max(self.step() * 1e6)))
    }

    /// The smallest difference that rounded values can show, relative to their median.
    fn step(&self) -> f64 {
        let differences = self.sorted.windows(2).map(|pair| pair[1] - pair[0]);
        let has_equal = differences.clone().any(|one| one == 0.0);
        let least = differences.filter(|one| *one > 0.0).reduce(f64::min);
        least.filter(|_| has_equal).map_or(0.0, |least| least / self.quantile(0.5))
    }

    /// The number of runs of each sample with which a difference is found with a probability of `POWER`.
    fn number(&self, level: f64, difference: Ppm) -> Option<usize> {
        let many = self.many(level, difference);
        if many.is_none_or(|many| many >= MANY) {
            return many;
        }
        let misses = |runs: usize| {
            let smallest = self.smallest([runs; 2], level);
            smallest.is_none_or(|it| it.get() > difference.get())
        };
        Some(ranks::partition(VALUES_MIN..MANY, misses))
    }

    /// The same by Noether's approximation.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 1 to RUNS_MAX"
    )]
    fn many(&self, level: f64, difference: Ppm) -> Option<usize> {
        let normal = Normal::standard();
        let sigmas = normal.inverse_cdf(1.0 - level / 2.0) + normal.inverse_cdf(POWER);
        let runs = sigmas.powi(2) / (6.0 * (self.in_order(difference) - 0.5).powi(2));
        (runs <= RUNS_MAX).then(|| runs.ceil().max(1.0) as usize)
    }

    /// The share of pairs that are in order if one of both is larger by a difference; equal values are half
    /// in order.
    fn in_order(&self, difference: Ppm) -> f64 {
        let factor = 1.0 + difference.get() / 1e6;
        let count = self.sorted.len();
        let below = |limit: f64| self.sorted.partition_point(|one| *one < limit);
        let up_to = |limit: f64| self.sorted.partition_point(|one| *one <= limit);
        let larger = self.sorted.iter().map(|value| value * factor);
        // Each value is below itself times the factor: that is no pair.
        let pairs: usize = larger.map(|limit| below(limit) + up_to(limit) - 2).sum();
        pairs as f64 / 2.0 / (count * (count - 1)) as f64
    }
}

/// Between 0 and 1, neither of them.
fn uniform(random: &mut impl RngCore) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Random;

    type Noise = fn(&mut Random) -> f64;

    const NOISES: [(&str, Noise); 5] = [
        ("normal", |random| 1.0 + 0.01 * random.normal()),
        ("exponential", |random| 1.0 + 0.02 * random.exponential()),
        ("log-normal", |random| (0.3 * random.normal()).exp()),
        ("Pareto", |random| 1.0 + 0.01 * random.pareto()),
        ("rounded", |random| (100.0 + 2.0 * random.normal()).round() / 100.0),
    ];

    /// Check that a difference of the size that a set says is found in about 8 of 10 comparisons of two other
    /// sets: with long tails, and with ties.
    #[test]
    fn differences_are_found() {
        let (trials, counts): (usize, &[usize]) =
            match std::env::var_os("NOISEFLOOR_TEST_ALL") {
                Some(_) => (2_000, &[6, 7, 10, 15, 20, 40, 100]),
                None => (100, &[8, 20, 50]),
            };
        let mut random = Random::new(51);
        for (name, noise) in NOISES {
            for count in counts {
                let mut found = 0;
                for _ in 0..trials {
                    let mut set =
                        || (0..*count).map(|_| noise(&mut random)).collect::<Vec<_>>();
                    let [known, base, other] = [set(), set(), set()];
                    let runs = Runs::new(&known).unwrap();
                    let smallest = runs.smallest([*count; 2], 0.05).unwrap();
                    let factor = 1.0 + smallest.get() / 1e6;
                    let other: Vec<f64> = other.iter().map(|one| one * factor).collect();
                    found += usize::from(ranks::p_value(&base, &other, 1.0) <= 0.05);
                }
                let share = found as f64 / trials as f64;
                println!("{name}, {count} runs: {share:.2}");
                assert!((0.64..0.93).contains(&share), "{name}, {count} runs: {share}");
            }
        }
    }

    /// Check that the number of runs for a difference is that of which this is the smallest one: about four times
    /// as many for half of it; and that few values, and values of 0, say nothing.
    #[test]
    fn numbers_of_runs() {
        let mut random = Random::new(52);
        let values: Vec<f64> = (0..30).map(|_| 1.0 + 0.01 * random.normal()).collect();
        let of = |ppm: f64| Detectable::of(&values, 0.05, Ppm::new(ppm)).unwrap();
        let smallest = of(1e4).difference_ppm.unwrap();
        assert!((6_000.0..9_000.0).contains(&smallest.get()), "{smallest:?}");
        let same = of(smallest.get()).runs.unwrap();
        assert!(same.abs_diff(30) <= 3, "{same}");
        let half = of(smallest.get() / 2.0).runs.unwrap();
        assert!((100..170).contains(&half), "{half}");
        let both =
            Detectable::of_both([&values[..15], &values[15..]], 0.05, Ppm::new(1e4));
        assert!(both.unwrap().difference_ppm.unwrap() > smallest);
        assert_eq!(Detectable::of(&values[..5], 0.05, Ppm::new(1e4)), None);
        assert_eq!(Detectable::of(&[0.0; 9], 0.05, Ppm::new(1e4)), None);
        let constant = Detectable::of(&[4.0; 9], 0.05, Ppm::new(1e4)).unwrap();
        assert_eq!(constant.difference_ppm.map(Ppm::get), Some(0.0));
    }
}
