//! Fisher's exact test: whether two properties of the same things go together, and how certain that is if many
//! pairs of properties are tested.
//!
//! R. A. Fisher: On the interpretation of χ² from contingency tables, and the calculation of P. Journal of the
//! Royal Statistical Society 85 (1922). S. Holm: A simple sequentially rejective multiple test procedure.
//! Scandinavian Journal of Statistics 6 (1979): the probability that any of the rejected hypotheses is true is at
//! most the level, for tests that depend on each other in any way.

use statrs::function::factorial::ln_binomial;

/// The one-sided p-value: the probability that, of `first` among `all` things that are chosen at random, `both` or
/// more are among the `second` that have another property.
pub fn together_by_chance(all: u64, first: u64, second: u64, both: u64) -> f64 {
    let most = first.min(second);
    if both > most || first > all || second > all {
        return 0.0;
    }
    let least = both.max((first + second).saturating_sub(all));
    let log = |both: u64| {
        ln_binomial(second, both) + ln_binomial(all - second, first - both)
            - ln_binomial(all, first)
    };
    (least..=most).map(|both| log(both).exp()).sum::<f64>().min(1.0)
}

/// The p-values, each adjusted to the smallest level at which its hypothesis is rejected, if the probability of any
/// false rejection is to be that level (Holm).
pub fn adjusted_for_any(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut most: f64 = 0.0;
    for (below, index) in order.into_iter().enumerate() {
        most = most.max(p_values[index] * (p_values.len() - below) as f64);
        adjusted[index] = most.min(1.0);
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Random;

    /// Check Fisher's example of a lady who tastes tea, a table of which all is known, and impossible ones.
    #[test]
    fn known_tables() {
        let p = |all, first, second, both| together_by_chance(all, first, second, both);
        assert!((p(8, 4, 4, 4) - 1.0 / 70.0).abs() < 1e-12);
        assert!((p(8, 4, 4, 3) - 17.0 / 70.0).abs() < 1e-12);
        assert!((p(8, 4, 4, 0) - 1.0).abs() < 1e-12);
        assert!((p(10_000, 1, 1, 1) - 1e-4).abs() < 1e-12);
        assert!((p(10, 10, 3, 3) - 1.0).abs() < 1e-12);
        assert!(p(10_000, 3, 3, 3) < 1e-11);
        assert_eq!(p(10, 2, 3, 3), 0.0);
    }

    /// Check Holm's adjustment by hand: it never decreases, and is at most 1.
    #[test]
    fn by_hand() {
        assert_eq!(adjusted_for_any(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
        assert_eq!(adjusted_for_any(&[0.9, 0.6]), [1.0, 1.0]);
        assert!(adjusted_for_any(&[]).is_empty());
    }

    /// Check that of forty properties that do not matter, one is called a cause in at most one of twenty fleets.
    #[test]
    fn few_false_causes() {
        const TRIALS: u32 = 1000;
        let mut random = Random::new(7);
        for (nodes, noisy) in [(20_usize, 3_usize), (100, 10), (500, 5)] {
            let is_false = |_: &u32| {
                let mut p_values = Vec::new();
                for property in 0..40_u32 {
                    let part = 0.02 + f64::from(property) / 80.0;
                    let has: Vec<bool> =
                        (0..nodes).map(|_| random.uniform() < part).collect();
                    let count =
                        |of: &[bool]| of.iter().filter(|has| **has).count() as u64;
                    let (second, both) = (count(&has), count(&has[..noisy]));
                    p_values.push(together_by_chance(
                        nodes as u64,
                        noisy as u64,
                        second,
                        both,
                    ));
                }
                adjusted_for_any(&p_values).iter().any(|p| *p <= 0.05)
            };
            let rate = (0..TRIALS).filter(is_false).count() as f64 / f64::from(TRIALS);
            println!("{noisy} of {nodes} nodes: {rate}");
            assert!(rate <= 0.05 + 3.0 * (0.05_f64 / f64::from(TRIALS)).sqrt(), "{rate}");
        }
    }
}
