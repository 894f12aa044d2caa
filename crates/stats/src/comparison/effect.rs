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

use crate::comparison::differences::Differences;
use crate::comparison::statistic::Statistic;

/// A difference, and the bounds of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Effect {
    pub(crate) difference: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
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

#[cfg(test)]
mod tests {
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
}
