//! Spreads of exact numbers: every distinct value with its frequency, and statistics of them.
//!
//! In one run, the measurement has one offset to the tick. A cell is therefore measured in several
//! phases; the deviation of a phase shows how much a number depends on that offset. The most
//! frequent value is no statistic here: if two are about equally frequent, their order is chance.

use std::collections::BTreeMap;

use serde::Serialize;
use units::Instructions;

use crate::distribution::rank;

/// Values with their frequencies, and their statistics.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The value of at least 90 % of all; null if fewer agree.
    pub agreed: Option<Instructions>,
    /// The mean; null without a value.
    pub mean: Option<f64>,
    /// The largest difference between a phase's mean and the mean; null for fewer than two phases.
    pub mean_deviation: Option<f64>,
    /// The median.
    pub p50: Option<Instructions>,
    /// The largest difference between a phase's median and the median; null as above.
    pub p50_deviation: Option<Instructions>,
    /// The value that 99 % do not exceed.
    pub p99: Option<Instructions>,
    /// Every distinct value in ascending order, with its frequency.
    pub values: Vec<(Instructions, u64)>,
}

/// Values with their frequencies.
type Counted = Vec<(Instructions, u64)>;

impl Spread {
    /// The spread of the counted values of several phases.
    pub fn phased<V: IntoIterator<Item = (Instructions, u64)>>(
        phases: impl IntoIterator<Item = V>,
    ) -> Self {
        let phases: Vec<Counted> = phases.into_iter().map(add_up).collect();
        let values = add_up(phases.iter().flatten().copied());
        let (mean, p50) = (mean(&values), quantile(&values, 500_000));
        let measured: Vec<&Counted> =
            phases.iter().filter(|phase| !phase.is_empty()).collect();
        let means =
            measured.iter().filter_map(|phase| Some((self::mean(phase)? - mean?).abs()));
        let p50s = measured.iter().filter_map(|phase| {
            Some(p50?.get().abs_diff(quantile(phase, 500_000)?.get()))
        });
        let several = measured.len() > 1;
        Self {
            agreed: p50.filter(|p50| {
                let own = values.iter().find(|(value, _)| value == p50);
                let times = own.map_or(0, |(_, times)| u128::from(*times));
                times * 10 >= u128::from(count(&values)) * 9
            }),
            mean,
            mean_deviation: means.max_by(f64::total_cmp).filter(|_| several),
            p50,
            p50_deviation: p50s.max().filter(|_| several).map(Instructions::new),
            p99: quantile(&values, 990_000),
            values,
        }
    }

    /// The number of values, including equal ones.
    pub fn count(&self) -> u64 {
        count(&self.values)
    }

    /// The frequency of a value.
    pub fn times(&self, value: Instructions) -> u64 {
        let found = self.values.iter().find(|(other, _)| *other == value);
        found.map_or(0, |(_, times)| *times)
    }

    /// The smallest value.
    pub fn min(&self) -> Option<Instructions> {
        self.values.first().map(|(value, _)| *value)
    }

    /// The largest value.
    pub fn max(&self) -> Option<Instructions> {
        self.values.last().map(|(value, _)| *value)
    }
}

fn add_up(values: impl IntoIterator<Item = (Instructions, u64)>) -> Counted {
    let mut counts: BTreeMap<Instructions, u64> = BTreeMap::new();
    for (value, count) in values.into_iter().filter(|(_, count)| *count > 0) {
        let sum = counts.entry(value).or_default();
        *sum = sum.saturating_add(count);
    }
    counts.into_iter().collect()
}

fn count(values: &[(Instructions, u64)]) -> u64 {
    values.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
}

#[expect(clippy::cast_precision_loss, reason = "sums of instructions stay below 2^53")]
fn mean(values: &[(Instructions, u64)]) -> Option<f64> {
    let sum = values.iter().fold(0u128, |sum, (value, count)| {
        sum + u128::from(value.get()) * u128::from(*count)
    });
    let count = count(values);
    (count > 0).then(|| sum as f64 / count as f64)
}

/// By nearest rank, as [`crate::quantile`].
fn quantile(values: &[(Instructions, u64)], millionths: u32) -> Option<Instructions> {
    let rank = rank(count(values).into(), millionths);
    let mut sum = 0;
    let found = values.iter().find(|(_, count)| {
        sum += u128::from(*count);
        sum >= rank
    });
    found.map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spread(values: &[u64]) -> Spread {
        Spread::phased([values.iter().map(|value| (Instructions::new(*value), 1))])
    }

    fn phased(phases: &[&[u64]]) -> Spread {
        let phase = |values: &&[u64]| {
            values.iter().map(|value| (Instructions::new(*value), 1)).collect::<Counted>()
        };
        Spread::phased(phases.iter().map(phase))
    }

    /// Check the keys and values of the JSON contract.
    #[test]
    fn contract() {
        let found =
            serde_json::to_value(phased(&[&[2600, 2584], &[2584, 2584]])).unwrap();
        let expected = serde_json::json!({
            "agreed": null, "mean": 2588.0, "mean_deviation": 4.0, "p50": 2584,
            "p50_deviation": 0, "p99": 2600, "values": [[2584, 3], [2600, 1]],
        });
        assert_eq!(found, expected);
        let expected = serde_json::json!({
            "agreed": null, "mean": null, "mean_deviation": null, "p50": null,
            "p50_deviation": null, "p99": null, "values": [],
        });
        assert_eq!(serde_json::to_value(spread(&[])).unwrap(), expected);
    }

    /// Check that `agreed` needs 90 % of the values.
    #[test]
    fn nine_of_ten_agree() {
        let of = |others: usize| spread(&[vec![5; 9], vec![7; others]].concat()).agreed;
        assert_eq!(
            [of(0), of(1), of(2)],
            [5, 5, 0].map(|v| (v > 0).then(|| Instructions::new(v)))
        );
    }

    /// Check that a deviation is that of the phase that differs most, and that a phase without values
    /// is not counted.
    #[test]
    fn furthest_phase() {
        let found = phased(&[&[10, 10], &[], &[10, 40]]);
        assert_eq!((found.mean, found.mean_deviation), (Some(17.5), Some(7.5)));
        assert_eq!(found.p50_deviation, Some(Instructions::new(0)));
        assert_eq!(phased(&[&[10], &[]]).mean_deviation, None);
    }

    /// Check that a value of frequency zero is omitted.
    #[test]
    fn zero_times_is_no_value() {
        let five = Instructions::new(5);
        assert_eq!(Spread::phased([[(five, 0)]]), Spread::default());
    }

    proptest! {
        /// Check each statistic by counting, and that the order does not matter.
        #[test]
        fn definition(values in prop::collection::vec(0u64..9, 1..60)) {
            let found = spread(&values);
            let times = |value: u64| values.iter().filter(|&&seen| seen == value).count();
            for (value, count) in &found.values {
                prop_assert_eq!(times(value.get()) as u64, *count);
                prop_assert_eq!(found.times(*value), *count);
            }
            prop_assert!(found.values.is_sorted_by(|a, b| a.0 < b.0));
            prop_assert_eq!(found.count(), values.len() as u64);
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let at = |percent: usize| sorted[(values.len() * percent).div_ceil(100) - 1];
            prop_assert_eq!(found.p50.unwrap().get(), at(50));
            prop_assert_eq!(found.p99.unwrap().get(), at(99));
            let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
            prop_assert!((found.mean.unwrap() - mean).abs() < 1e-9);
            prop_assert_eq!(found.min().map(Instructions::get), sorted.first().copied());
            prop_assert_eq!(found.max().map(Instructions::get), sorted.last().copied());
            let mut turned = values.clone();
            turned.reverse();
            prop_assert_eq!(spread(&turned), found);
        }
    }
}
