//! Distributions: the extremes and the mean of values, and quantiles by nearest rank.
//!
//! A quantile is the smallest value that at least this share of all values does not exceed. It is
//! therefore always a measured value, never one interpolated between two: the p99 of 150 values
//! is the 149th in ascending order, because 99 % of them are 148.5.

use std::marker::PhantomData;

use serde::{Serialize, Serializer};
use units::Nanos;

/// A number that describes a distribution; its name is the key in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DistributionKey {
    /// The smallest value.
    Min,
    /// The mean.
    Mean,
    /// The median.
    P50,
    /// The value that 99 % do not exceed.
    P99,
    /// The value that 99.9 % do not exceed.
    P99_9,
    /// The largest value.
    Max,
}

use DistributionKey::{Max, Mean, Min, P50, P99, P99_9};

impl DistributionKey {
    /// The share of values that do not exceed it, in millionths; `None` for a mean.
    pub fn millionths(self) -> Option<u32> {
        match self {
            Min => Some(0),
            Mean => None,
            P50 => Some(500_000),
            P99 => Some(990_000),
            P99_9 => Some(999_000),
            Max => Some(1_000_000),
        }
    }
}

/// The statistics of a kind of distribution, in the order of their keys in JSON.
pub trait Statistics {
    /// The keys.
    const KEYS: &'static [DistributionKey];
}

macro_rules! statistics {
    ($($(#[$about:meta])* $name:ident: $($key:ident)+;)+) => { $(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct $name;

        impl Statistics for $name {
            const KEYS: &'static [DistributionKey] = &[$($key),+];
        }
    )+ };
}

statistics! {
    /// Of the lengths of gaps.
    Gaps: P50 P99 P99_9 Max;
    /// Of latencies.
    Latencies: Min Mean P50 P99 P99_9 Max;
    /// Of how far tasks are placed before another one.
    Placed: Min P50 Max;
    /// Of the jitter of tests.
    Jitters: Max Min Mean P50 P99;
    /// Of the run times of loops.
    Loops: Max Min Mean;
    /// Of time slices.
    Slices: Mean P50 P99 Min Max;
    /// Of the repeats of a call.
    Repeats: P50 P99 Max Min;
    /// Of the time until a tick has stopped.
    Waits: Min P50 P99 Max;
}

/// Statistics of values. Those that `K` does not list are `None`, and are no keys in JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Distribution<K, T = Nanos> {
    /// The smallest value.
    pub min: Option<T>,
    /// The mean.
    pub mean: Option<T>,
    /// The median.
    pub p50: Option<T>,
    /// The value that 99 % do not exceed.
    pub p99: Option<T>,
    /// The value that 99.9 % do not exceed.
    pub p99_9: Option<T>,
    /// The largest value.
    pub max: Option<T>,
    /// The statistics that are keys in JSON.
    pub keys: PhantomData<K>,
}

impl<K: Statistics, T: Copy> Distribution<K, T> {
    /// Computes each statistic of `K`.
    pub fn new(mut value: impl FnMut(DistributionKey) -> Option<T>) -> Self {
        let value = |key| if K::KEYS.contains(&key) { value(key) } else { None };
        let [min, mean, p50, p99, p99_9, max] =
            [Min, Mean, P50, P99, P99_9, Max].map(value);
        Self { min, mean, p50, p99, p99_9, max, keys: PhantomData }
    }

    /// The distribution of these values, without the mean.
    pub fn of(values: impl IntoIterator<Item = T>) -> Self
    where
        T: Ord,
    {
        let mut values: Vec<T> = values.into_iter().collect();
        // Of millions of values, a few are found sooner than all are sorted.
        Self::new(|key| {
            let at = position(values.len(), key.millionths()?)?;
            Some(*values.select_nth_unstable(at).1)
        })
    }

    /// The distribution in another unit.
    pub fn map<U: Copy>(self, unit: impl Fn(T) -> U) -> Distribution<K, U> {
        Distribution::new(|key| self.get(key).map(&unit))
    }

    fn get(&self, key: DistributionKey) -> Option<T> {
        [self.min, self.mean, self.p50, self.p99, self.p99_9, self.max][key as usize]
    }
}

impl<K: Statistics, T: Copy + Serialize> Serialize for Distribution<K, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(K::KEYS.iter().map(|key| (key, self.get(*key))))
    }
}

/// The smallest value that at least this many millionths of all values do not exceed; `None`
/// without values. `sorted` is in ascending order; 500,000 is the median, 999,900 the 99.99th
/// percentile, 1,000,000 the largest value.
pub fn quantile<T: Copy>(sorted: &[T], millionths: u32) -> Option<T> {
    sorted.get(position(sorted.len(), millionths)?).copied()
}

/// The position of that quantile among so many values in ascending order.
fn position(values: usize, millionths: u32) -> Option<usize> {
    let last = values.checked_sub(1)?;
    let rank = usize::try_from(rank(values as u128, millionths));
    Some(rank.unwrap_or(usize::MAX).saturating_sub(1).min(last))
}

/// The mean, rounded to the nearest whole number; `None` without values.
pub fn mean(sum: u128, values: u64) -> Option<u64> {
    let mean = sum.saturating_add((values / 2).into()).checked_div(values.into())?;
    Some(u64::try_from(mean).unwrap_or(u64::MAX))
}

/// The nearest rank of that quantile among so many values in ascending order: their share of the
/// values, rounded up. The first is 1, also of the minimum, whose share is 0.
pub fn rank(values: u128, millionths: u32) -> u128 {
    (values * u128::from(millionths)).div_ceil(1_000_000).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Check known ranks by hand, including the first and the last.
    #[test]
    fn by_hand() {
        assert_eq!(quantile::<u64>(&[], 500_000), None);
        assert_eq!(quantile(&[7], 999_000), Some(7));
        assert_eq!(quantile(&[1, 2], 500_000), Some(1));
        assert_eq!(quantile(&[1, 2, 3], 500_000), Some(2));
        let thousand: Vec<u64> = (1..=1000).collect();
        assert_eq!(quantile(&thousand, 999_000), Some(999));
        assert_eq!(quantile(&thousand, 1_000_000), Some(1000));
        assert_eq!(quantile(&thousand, 0), Some(1));
        assert_eq!(quantile(&(1..=1001).collect::<Vec<u64>>(), 999_000), Some(1000));
    }

    /// Check ranks finer than thousandths.
    #[test]
    fn fine_ranks() {
        let all: Vec<Nanos> = (1..=20_000).map(Nanos::from_nanos).collect();
        let at = |millionths| quantile(&all, millionths).map(Nanos::get);
        let found = [0, 1, 500_000, 999_900, 999_901, 1_000_000, u32::MAX].map(at);
        let expected = [1, 1, 10_000, 19_998, 19_999, 20_000, 20_000].map(Some);
        assert_eq!(found, expected);
        assert_eq!(quantile::<Nanos>(&[], 500_000), None);
    }

    fn json<K: Statistics>() -> String {
        let found = Distribution::<K, u64>::of((1..=2_000).rev());
        let found = Distribution { mean: found.p50, ..found };
        serde_json::to_string(&found).unwrap()
    }

    /// Check the keys of each kind, and their order: this is the JSON contract.
    #[test]
    fn contract() {
        let found = [
            json::<Gaps>(),
            json::<Latencies>(),
            json::<Jitters>(),
            json::<Loops>(),
            json::<Slices>(),
            json::<Repeats>(),
            json::<Waits>(),
        ];
        let expected = [
            r#"{"p50":1000,"p99":1980,"p99_9":1998,"max":2000}"#,
            r#"{"min":1,"mean":1000,"p50":1000,"p99":1980,"p99_9":1998,"max":2000}"#,
            r#"{"max":2000,"min":1,"mean":1000,"p50":1000,"p99":1980}"#,
            r#"{"max":2000,"min":1,"mean":null}"#,
            r#"{"mean":1000,"p50":1000,"p99":1980,"min":1,"max":2000}"#,
            r#"{"p50":1000,"p99":1980,"max":2000,"min":1}"#,
            r#"{"min":1,"p50":1000,"p99":1980,"max":2000}"#,
        ];
        assert_eq!(found, expected);
        let none = serde_json::to_string(&Distribution::<Gaps>::of([])).unwrap();
        assert_eq!(none, r#"{"p50":null,"p99":null,"p99_9":null,"max":null}"#);
    }

    proptest! {
        /// Check the definition by counting: enough values are at or below the quantile,
        /// and too few are below it.
        #[test]
        fn definition(
            mut values in prop::collection::vec(0u64..50, 1..200),
            permille in 1u32..=1000,
        ) {
            values.sort_unstable();
            let found = quantile(&values, permille * 1000).unwrap();
            let at_or_below = values.iter().filter(|&&value| value <= found).count();
            let below = values.iter().filter(|&&value| value < found).count();
            let permille = permille as usize;
            prop_assert!(at_or_below * 1000 >= values.len() * permille);
            prop_assert!(below * 1000 < values.len() * permille);
        }
    }
}
