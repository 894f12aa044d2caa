//! Whether the first run, or the first few, differ from all others: a cold cache, a cold processor.
//!
//! A first run that is the slowest one is no sign of that: among five runs, one in five is. It must also be far
//! from the others. How far the largest of some values is beyond the next one depends on the tail of their
//! distribution. The test assumes a tail that is not longer than that of a Pareto distribution with the index
//! 1.5, which has no variance; then the distance beyond the next value exceeds `r` times the spread of the
//! others with a probability below `(1 + c r) ^ (-1.5 k)` for the `k` largest values (A. Rényi: On the theory of order
//! statistics. Acta Mathematica Hungarica 4, 1953).

use crate::stationary::dip::resolution;

/// The index of the longest tail.
const TAIL: f64 = 1.5;
/// The fewest values of which the first one can differ.
const VALUES_MIN: usize = 5;
/// From so many values on, other tests need a part of the false alarms.
const SEVERAL_TESTS: usize = 7;
/// The most first runs.
const FIRST_MAX: usize = 3;

/// How many of the first values are larger or smaller than all others, by more than chance gives: 0 if there
/// are none. Values must not be NaN.
pub(crate) fn differing(values: &[f64]) -> usize {
    if values.len() < VALUES_MIN {
        return 0;
    }
    let lower: Vec<f64> = values.iter().map(|value| -value).collect();
    let is_far = |values: &[f64], first: usize, false_alarms: f64| {
        probability(values, first).is_some_and(|found| found <= false_alarms)
    };
    // Long tails are above the values, so that these probabilities do not add up.
    let larger = match values.len() {
        5 => 0.004_5,
        6 => 0.004,
        _ => 0.003,
    };
    if is_far(values, 1, larger) || is_far(&lower, 1, 0.000_5) {
        return 1;
    }
    let mut several = (2..=FIRST_MAX).filter(|_| values.len() >= SEVERAL_TESTS);
    several.find(|first| is_far(values, *first, 0.000_25)).unwrap_or(0)
}

/// The largest probability that so many first values are by chance as far above all others; `None` if they
/// are not above them.
fn probability(values: &[f64], first: usize) -> Option<f64> {
    let (own, others) = values.split_at_checked(first)?;
    let mut others = others.to_vec();
    others.sort_unstable_by(f64::total_cmp);
    let [.., largest] = others[..] else { return None };
    let beyond = own.iter().copied().fold(f64::INFINITY, f64::min) - largest;
    if beyond <= 0.0 {
        return None;
    }
    let count = others.len();
    let ratio = beyond / (largest - others[(count - 1) / 4] + rounding(values));
    // `c`, from below: simulations of Pareto and log-normal values have 0.36 for one of 5, 0.56 for one of 10,
    // 0.96 for one of 200, and 0.22 for two of 7.
    let factor = (count + 1) as f64 / (values.len() + 11 * first - 2) as f64;
    let choices: f64 =
        (0..first).map(|at| (values.len() - at) as f64 / (at + 1) as f64).product();
    Some((1.0 + factor * ratio).powf(-TAIL * first as f64) / choices)
}

/// The step of rounded values, which hides their spread; 0 if no two are equal.
fn rounding(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let has_equal = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    resolution(&sorted).filter(|_| has_equal).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check first runs that take twice as long, and ones that are no surprise.
    #[test]
    fn first() {
        assert_eq!(differing(&[200.0, 100.0, 101.0, 99.0, 100.5]), 1);
        assert_eq!(differing(&[103.0, 100.0, 101.0, 99.0, 100.5]), 0);
        assert_eq!(differing(&[200.0, 100.0, 101.0, 99.0]), 0);
        let mut runs =
            vec![100.0, 101.0, 99.0, 100.5, 99.5, 101.5, 100.1, 99.8, 100.2, 100.9];
        assert_eq!(differing(&runs), 0);
        runs.insert(0, 150.0);
        assert_eq!(differing(&runs), 1);
        let faster: Vec<f64> = [5.0]
            .into_iter()
            .chain((0..30).map(|at| f64::from(at * 7 % 30) / 10.0 + 100.0))
            .collect();
        assert_eq!(differing(&faster), 1);
        runs[0] = 300.0;
        runs.insert(1, 150.0);
        assert_eq!(differing(&runs), 2);
        runs.swap(1, 5);
        assert_eq!(differing(&runs), 0);
    }

    /// Check that of rounded values, the first is not far away by a step.
    #[test]
    fn rounded() {
        assert_eq!(differing(&[11.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0]), 0);
        assert_eq!(differing(&[5.0; 20]), 0);
    }
}
