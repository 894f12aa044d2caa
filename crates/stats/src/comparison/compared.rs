//! Two samples of a quantity, compared.

use serde::Serialize;
use units::Ppm;

use crate::comparison::block::Block;
use crate::comparison::conclusion::{Conclusion, Found};
use crate::comparison::discovery::FALSE_DISCOVERIES;
use crate::comparison::effect::Effect;
use crate::comparison::sample::Pair;
use crate::comparison::statistic::Statistic;
use crate::relative::relative;
use crate::unit::{Better, Unit};

/// The values of a quantity in two sets of runs, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared<Q> {
    /// What is compared.
    #[serde(flatten)]
    pub quantity: Q,
    /// The number of values of the base, and of the other set.
    pub values: [usize; 2],
    /// How many of them are not zero.
    pub nonzero: [usize; 2],
    /// The blocks of two single runs; null if the values are those of runs.
    pub block: Option<Block>,
    /// The number that stands for each set; the mean if values are mostly 0, or if a difference is
    /// significant but most values are equal.
    pub statistic: Statistic,
    /// That of the base, and of the other set; null without values.
    pub centers: [Option<f64>; 2],
    /// By how much the other set's values are larger; null without values. It is the median difference of
    /// all pairs of values, or the difference of the means.
    pub difference: Option<f64>,
    /// The interval of the true difference (95 %); null with fewer than two values each.
    pub interval: Option<[f64; 2]>,
    /// The difference in parts of the base's median or mean; null if that is 0.
    pub difference_ppm: Option<Ppm>,
    /// The interval in the same parts.
    pub interval_ppm: Option<[Ppm; 2]>,
    /// The probability of samples that differ as much, if both sets had one distribution.
    pub p_value: f64,
    /// The same, corrected for the number of comparisons.
    pub adjusted_p_value: f64,
    /// What follows.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// The unit.
    #[serde(skip)]
    pub unit: Unit,
    /// Which values are better.
    #[serde(skip)]
    pub better: Better,
}

/// Which of two sets is better, by the metrics that differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BetterSet {
    /// The base: each metric that differs is better in it.
    Base,
    /// The other set.
    Other,
    /// Neither: some metrics are better, others are worse.
    Mixed,
    /// No metric differs, as far as known.
    Unknown,
}

impl<Q> Compared<Q> {
    /// The set with the better values, if they differ.
    pub fn better_set(&self) -> Option<BetterSet> {
        let is_higher = match self.conclusion {
            Conclusion::Lower => false,
            Conclusion::Higher => true,
            Conclusion::Equal
            | Conclusion::NoLargerDifference { .. }
            | Conclusion::NotEnoughData { .. } => return None,
        };
        match (self.better, is_higher) {
            (Better::Neither, _) => None,
            (Better::Less, true) | (Better::More, false) => Some(BetterSet::Base),
            (Better::Less, false) | (Better::More, true) => Some(BetterSet::Other),
        }
    }

    /// The larger one of both medians or means.
    pub fn larger_center(&self) -> f64 {
        self.centers.into_iter().flatten().fold(0.0, f64::max)
    }

    /// Whether a difference is reported.
    pub fn is_difference(&self) -> bool {
        matches!(self.conclusion, Conclusion::Lower | Conclusion::Higher)
    }
}

impl<Q: Clone> Pair<Q> {
    /// What follows from the pair, with its p-value and the adjusted one.
    pub fn compared(
        &self,
        (p_value, adjusted_p_value): (f64, f64),
        smallest: Ppm,
    ) -> Compared<Q> {
        let samples = [self.base.as_slice(), self.other.as_slice()];
        let is_significant = adjusted_p_value <= FALSE_DISCOVERIES;
        let (statistic, effect) = Effect::shown(samples, self.inflation, is_significant);
        let centers = samples.map(|values| statistic.of(values));
        let values = samples.map(<[f64]>::len);
        let interval = effect.filter(|_| values.iter().all(|count| *count > 1));
        let interval = interval.map(|effect| [effect.low, effect.high]);
        let difference = effect.map(|effect| effect.difference);
        let of_base = |difference: f64| relative(difference + centers[0]?, centers[0]?);
        let interval_ppm = interval.and_then(|bounds| {
            let [low, high] = bounds.map(of_base);
            Some([low?, high?])
        });
        let nonzero = |values: &[f64]| values.iter().filter(|one| **one != 0.0).count();
        let found = Found { adjusted_p_value, difference, interval_ppm };
        Compared {
            quantity: self.quantity.clone(),
            values,
            nonzero: samples.map(nonzero),
            block: self.block,
            statistic,
            centers,
            difference,
            interval,
            difference_ppm: difference.and_then(of_base),
            interval_ppm,
            p_value,
            adjusted_p_value,
            conclusion: Conclusion::of(self, &found, smallest),
            unit: self.unit,
            better: self.better,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(base: Vec<f64>, other: Vec<f64>) -> Compared<()> {
        let (unit, better, block, inflation) = (Unit::Ns, Better::Less, None, 1.0);
        let pair = Pair { quantity: (), unit, better, base, other, block, inflation };
        pair.compared((pair.p_value(), pair.p_value()), Ppm::new(1e4))
    }

    /// Check that a significant difference of values that are mostly equal has the means. Of 20 values
    /// of 10 each, 8 are 11 in one set: 240 of 400 pairs are equal, so that their median difference
    /// is 0, and that of the means is 8/20.
    #[test]
    fn mostly_equal_values() {
        let (same, some) = (vec![10.0; 20], [vec![10.0; 12], vec![11.0; 8]].concat());
        let higher = compared(same.clone(), some.clone());
        assert!(higher.adjusted_p_value < 0.01, "{higher:?}");
        assert_eq!(higher.conclusion, Conclusion::Higher);
        assert_eq!(higher.statistic, Statistic::Mean);
        assert_eq!(higher.centers, [Some(10.0), Some(10.4)]);
        assert!((higher.difference.unwrap() - 0.4).abs() < 1e-12, "{higher:?}");
        let [low, high] = higher.interval.unwrap();
        assert!(0.0 < low && low < 0.4 && 0.4 < high && high < 1.0, "{higher:?}");
        assert_eq!(compared(some, same.clone()).conclusion, Conclusion::Lower);
        // One of 20 is no significant difference, and has the medians.
        let one = compared(same, [vec![10.0; 19], vec![11.0]].concat());
        assert_eq!((one.statistic, one.difference), (Statistic::Median, Some(0.0)));
    }

    /// Check the same with so many pairs that their median is found by bisection: 100 values each, 30 of
    /// which are 11, or 30/100 more on average.
    #[test]
    fn many_equal_values() {
        let [same, some] = [0, 30].map(|n| [vec![10.0; 100 - n], vec![11.0; n]].concat());
        let higher = compared(same, some);
        let found = (higher.statistic, higher.conclusion);
        assert_eq!(found, (Statistic::Mean, Conclusion::Higher));
        assert!((higher.difference.unwrap() - 0.3).abs() < 1e-12, "{higher:?}");
    }
}
