//! Simulations: how often a stationary series has a pattern, and how often each pattern is found.

use crate::example::Random;
use crate::stationary::pattern::{ModeOrder, Pattern};
use crate::stationary::{FALSE_PATTERNS, pattern};

/// The noise of a series around a level of 1, from 0.
type Noise = fn(&mut Random) -> f64;

/// Distributions that machines produce: symmetric and skewed ones, tails with and without a variance, floors
/// with rare long values, and rounded values.
const NOISES: [(&str, Noise); 10] = [
    ("normal", |random| 0.01 * random.normal()),
    ("uniform", |random| random.uniform()),
    ("exponential", Random::exponential),
    ("log-normal", |random| random.normal().exp()),
    ("Pareto, index 1.5", Random::pareto),
    ("floor with rare Pareto", |random| {
        let disturbed = if random.uniform() < 0.2 { 0.02 * random.pareto() } else { 0.0 };
        0.01 * random.normal() + disturbed
    }),
    ("rounded normal", |random| (2.0 * random.normal()).round()),
    ("rounded exponential", |random| (3.0 * random.exponential()).floor()),
    ("rounded Pareto", |random| (4.0 * random.pareto()).floor()),
    ("two values", |random| f64::from(u8::from(random.uniform() < 0.3))),
];

/// The share of trials with a property.
fn share(
    random: &mut Random,
    trials: usize,
    mut has: impl FnMut(&mut Random) -> bool,
) -> f64 {
    (0..trials).filter(|_| has(random)).count() as f64 / trials as f64
}

/// Whether all simulations are run: minutes.
fn runs_all() -> bool {
    std::env::var_os("NOISEFLOOR_TEST_ALL").is_some()
}

/// Check that at most one of 200 stationary series has a pattern, with three standard deviations for the
/// number of trials.
#[test]
fn few_patterns() {
    let (trials, counts): (usize, &[usize]) = match runs_all() {
        true => (20_000, &[5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50, 100, 200]),
        false => (300, &[5, 10, 20, 60]),
    };
    let most = FALSE_PATTERNS + 3.0 * (FALSE_PATTERNS / trials as f64).sqrt();
    let mut random = Random::new(21);
    for (name, noise) in NOISES {
        for count in counts {
            let share = share(&mut random, trials, |random| {
                let series: Vec<f64> =
                    (0..*count).map(|_| 100.0 + noise(random)).collect();
                pattern(&series).is_some()
            });
            println!("{name}, {count} runs: {:.2} %", share * 100.0);
            assert!(share <= most, "{name}, {count} runs: {share}");
        }
    }
}

/// A pattern that is found.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    First,
    Jump,
    Trend,
    Modes(ModeOrder),
}

impl From<Pattern> for Kind {
    fn from(pattern: Pattern) -> Self {
        match pattern {
            Pattern::FirstRuns { .. } => Self::First,
            Pattern::Jump { .. } => Self::Jump,
            Pattern::Trend { .. } => Self::Trend,
            Pattern::TwoModes { order, .. } => Self::Modes(order),
        }
    }
}

/// A series without noise: the value at a place, from 0, of so many.
type Series = fn(&mut Random, usize, usize) -> f64;

/// Series, their patterns, and the smallest number of runs of which at least 80 % have the pattern, with a
/// standard deviation of 1 %. docs/method.md has this table.
const FOUND: [(&str, Series, Kind, usize); 11] = [
    ("alternating 50, 100", |_, at, _| [50.0, 100.0][at % 2], ALTERNATING, 7),
    ("alternating 95, 100", |_, at, _| [95.0, 100.0][at % 2], ALTERNATING, 16),
    ("50 or 100 in random order", either, Kind::Modes(ModeOrder::Random), 15),
    ("1 % per run", |_, at, _| 100.0 + at as f64, Kind::Trend, 10),
    ("0.2 % per run", |_, at, _| 100.0 + 0.2 * at as f64, Kind::Trend, 24),
    ("first run 2 times", |_, at, _| [200.0, 100.0][at.min(1)], Kind::First, 5),
    ("first run 1.2 times", |_, at, _| [120.0, 100.0][at.min(1)], Kind::First, 28),
    (
        "first runs 2, 1.5 times",
        |_, at, _| [200.0, 150.0, 100.0][at.min(2)],
        Kind::First,
        8,
    ),
    ("50 to 100 in the middle", |_, at, of| 50.0 + 50.0 * half(at, of), Kind::Jump, 7),
    ("10 % in the middle", |_, at, of| 100.0 + 10.0 * half(at, of), Kind::Jump, 15),
    ("3 % in the middle", |_, at, of| 100.0 + 3.0 * half(at, of), Kind::Jump, 20),
];
const ALTERNATING: Kind = Kind::Modes(ModeOrder::Alternating);

/// 0 in the first half, 1 in the second.
fn half(at: usize, of: usize) -> f64 {
    f64::from(u8::from(2 * at >= of))
}

/// One of two values, by chance.
fn either(random: &mut Random, _: usize, _: usize) -> f64 {
    if random.uniform() < 0.5 { 50.0 } else { 100.0 }
}

/// The share of series of so many runs in which their pattern is found.
fn found(
    random: &mut Random,
    trials: usize,
    series: Series,
    kind: Kind,
    count: usize,
) -> f64 {
    share(random, trials, |random| {
        let mut value = |at| series(random, at, count) * (1.0 + 0.01 * random.normal());
        let values: Vec<f64> = (0..count).map(&mut value).collect();
        pattern(&values).map(Kind::from) == Some(kind)
    })
}

/// Check that each pattern is found in about 80 % of the series of so many runs, and that these are the
/// fewest, but for one.
#[test]
fn patterns_are_found() {
    let mut random = Random::new(31);
    for (name, series, kind, least) in FOUND {
        let mut share = |trials, count| found(&mut random, trials, series, kind, count);
        if runs_all() {
            let smallest = (5..60).find(|count| share(2_000, *count) >= 0.8);
            println!("{name}: {smallest:?}");
            let is_near = smallest.is_some_and(|it| it.abs_diff(least) <= 1);
            assert!(is_near, "{name}: {smallest:?}");
        }
        let share = share(100, least);
        assert!(share >= 0.7, "{name}, {least} runs: {share}");
    }
}
