//! Simulations: how often the interval of two equal programs does not contain 0, and how much narrower it is
//! than that of independent runs.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::*;
use crate::balanced_order::balanced_order;

const TRIALS: u32 = 2_000;

/// A number from 0 to 1.
fn uniform(random: &mut impl RngCore) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

fn normal(random: &mut impl RngCore) -> f64 {
    let (radius, angle) = (1.0 - uniform(random), uniform(random));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// Time that noise adds, in parts; of index 1.5, without variance.
fn pareto(random: &mut impl RngCore) -> f64 {
    0.01 * ((1.0 - uniform(random)).powf(-1.0 / 1.5) - 1.0)
}

/// Pairs of programs of which the second one takes longer by `difference`, where `noise` makes what is added to
/// the times at both places.
fn pairs(
    count: usize,
    difference: f64,
    random: &mut Xoshiro256PlusPlus,
    mut noise: impl FnMut(&mut Xoshiro256PlusPlus) -> [f64; 2],
) -> Vec<TimedPair> {
    let seed = u32::try_from(random.next_u64() >> 32).unwrap();
    let order: Vec<Vec<usize>> = balanced_order(2, seed).take(count).collect();
    let mut made = Vec::new();
    for round in order {
        let is_swapped = round[0] == 1;
        let [first, second] = noise(random);
        let [a, b] = if is_swapped { [second, first] } else { [first, second] };
        let (a, b) = (1.0 + a, (1.0 + b) * (1.0 + difference));
        made.push(TimedPair { a, b, is_swapped });
    }
    made
}

/// The share of trials whose interval does not contain the true difference.
fn misses(
    count: usize,
    difference: f64,
    mut trial: impl FnMut(&mut Xoshiro256PlusPlus) -> Vec<TimedPair>,
) -> f64 {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(count as u64);
    let is_missed = |_: &u32| {
        let found = PairedDifference::of(&trial(&mut random)).unwrap();
        let [low, high] = found.interval_ppm.unwrap().map(|end| end.get() / 1e6);
        low > difference || high < difference
    };
    let missed = (0..TRIALS).filter(is_missed).count();
    missed as f64 / f64::from(TRIALS)
}

/// Check that at most 5 % of the intervals do not contain the true difference (and chance), and not much fewer:
/// for noise of both places, for long tails, for noise of one place only, with another place that is slower.
#[test]
fn false_alarms() {
    for count in [8, 10, 20, 66] {
        let rates = [
            misses(count, 0.0, |random| {
                pairs(count, 0.0, random, |random| {
                    [0.01 * normal(random), 0.01 * normal(random)]
                })
            }),
            misses(count, 0.02, |random| {
                pairs(count, 0.02, random, |random| {
                    let common = pareto(random);
                    [common + 0.01 * normal(random), common + 0.01 * normal(random)]
                })
            }),
            misses(count, 0.0, |random| {
                pairs(count, 0.0, random, |random| [0.0, 0.1 + pareto(random)])
            }),
            misses(count, -0.05, |random| {
                pairs(count, -0.05, random, |random| [pareto(random), pareto(random)])
            }),
        ];
        println!("{count} pairs: {rates:?}");
        for rate in rates {
            assert!((0.015..0.062).contains(&rate), "{count} pairs: {rates:?}");
        }
    }
}

/// Check that neither a drift, nor a neighbour that stays for several pairs, on one CPU or on both, nor programs
/// whose difference wanders, make more false alarms.
#[test]
fn dependent_pairs() {
    const COUNT: usize = 66;
    // On for some pairs, then off: at the first place, or at both.
    for hits in [[0.3, 0.0], [0.3, 0.25]] {
        let rate = misses(COUNT, 0.0, |random| {
            let mut is_on = false;
            pairs(COUNT, 0.0, random, |random| {
                is_on ^= uniform(random) < 0.2;
                let own = [0.01 * normal(random), 0.01 * normal(random)];
                let hit = |at: usize| if is_on { hits[at] + own[at] } else { own[at] };
                [hit(0), hit(1)]
            })
        });
        println!("neighbour {hits:?}: {rate}");
        assert!(rate < 0.06, "{hits:?}: {rate}");
    }
    let rate = misses(COUNT, 0.0, |random| {
        let mut passed = 0.0;
        pairs(COUNT, 0.0, random, |random| {
            passed += 0.005;
            [passed + 0.01 * normal(random), 2.0 * passed + 0.01 * normal(random)]
        })
    });
    println!("drift: {rate}");
    assert!(rate < 0.06, "drift: {rate}");
    // A first-order process of the second program, wherever it runs.
    let mut wandering = 0.0;
    let rate = misses(COUNT, 0.0, |random| {
        let mut made = pairs(COUNT, 0.0, random, |_| [0.0; 2]);
        for pair in &mut made {
            wandering = 0.5 * wandering + 0.01 * normal(random);
            pair.b *= 1.0 + wandering;
        }
        made
    });
    println!("wandering: {rate}");
    assert!(rate < 0.1, "wandering: {rate}");
}

/// Check that noise that hits both programs of a pair makes the interval no wider than without it, and that
/// `independent_stddev_ppm` is the spread of runs that do not share it.
#[test]
fn common_noise() {
    const COUNT: usize = 66;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    let mut of = |common: f64| {
        let made = pairs(COUNT, 0.02, &mut random, |random| {
            let times = 1.0 + common * uniform(random);
            [0.001 * normal(random), 0.001 * normal(random)]
                .map(|own| times * (1.0 + own) - 1.0)
        });
        PairedDifference::of(&made).unwrap()
    };
    let [quiet, noisy] = [0.0, 1.0].map(&mut of);
    let width = |found: &PairedDifference| {
        let [low, high] = found.interval_ppm.unwrap().map(Ppm::get);
        high - low
    };
    println!("{quiet:?}\n{noisy:?}");
    for found in [&quiet, &noisy] {
        assert!((found.difference_ppm.get() - 20_000.0).abs() < 1_000.0, "{found:?}");
    }
    assert!(width(&noisy) < 1.5 * width(&quiet));
    let [independent, own] = [noisy.independent_stddev_ppm, noisy.stddev_ppm];
    assert!(independent.unwrap().get() > 50.0 * own.unwrap().get());
}
