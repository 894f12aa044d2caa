//! Counts that repeat to the last digit: every distinct value, and how often it was seen.
//!
//! Exact numbers have no quantiles worth telling: either all are the same, or each
//! distinct one has a reason of its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::Instructions;

/// All values that were seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// The most frequent value, the smallest of equals; null where there is no value.
    pub mode: Option<Instructions>,
    /// Every distinct value in rising order, and how often it was seen.
    pub values: Vec<(Instructions, u64)>,
}

impl Spread {
    /// Counts values, in whatever order they come.
    pub fn of(values: impl IntoIterator<Item = Instructions>) -> Self {
        Self::counted(values.into_iter().map(|value| (value, 1)))
    }

    /// Adds up what was counted before: values and how often each was seen.
    pub fn counted(values: impl IntoIterator<Item = (Instructions, u64)>) -> Self {
        let mut counts: BTreeMap<Instructions, u64> = BTreeMap::new();
        for (value, count) in values.into_iter().filter(|(_, count)| *count > 0) {
            let sum = counts.entry(value).or_default();
            *sum = sum.saturating_add(count);
        }
        let most = counts.values().max();
        let mode = counts.iter().find(|(_, count)| Some(*count) == most);
        Self { mode: mode.map(|(value, _)| *value), values: counts.into_iter().collect() }
    }

    /// How many values were seen, equal ones included.
    pub fn count(&self) -> u64 {
        self.values.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// How often the most frequent value was seen.
    pub fn times(&self) -> u64 {
        let mode = self.values.iter().find(|(value, _)| Some(*value) == self.mode);
        mode.map_or(0, |(_, times)| *times)
    }

    /// How many different values were seen.
    pub fn distinct(&self) -> u64 {
        u64::try_from(self.values.len()).unwrap_or(u64::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spread(values: &[u64]) -> Spread {
        Spread::of(values.iter().copied().map(Instructions::new))
    }

    /// Check the keys and the form of every value: this is the JSON contract.
    #[test]
    fn contract() {
        let text = serde_json::to_string(&spread(&[2600, 2584, 2584])).unwrap();
        assert_eq!(text, r#"{"mode":2584,"values":[[2584,2],[2600,1]]}"#);
        let text = serde_json::to_string(&spread(&[])).unwrap();
        assert_eq!(text, r#"{"mode":null,"values":[]}"#);
    }

    /// Check that of equally frequent values the smallest is the mode.
    #[test]
    fn smallest_of_equals() {
        assert_eq!(spread(&[9, 5, 7, 5, 9]).mode, Some(Instructions::new(5)));
    }

    /// Check that a value counted zero times was not seen.
    #[test]
    fn zero_times_is_not_seen() {
        let five = Instructions::new(5);
        assert_eq!(Spread::counted([(five, 0)]), Spread::default());
    }

    proptest! {
        /// Check the definition of every part by counting, and that order does not matter.
        #[test]
        fn definition(values in prop::collection::vec(0u64..9, 1..60)) {
            let found = spread(&values);
            let times = |value: u64| values.iter().filter(|&&seen| seen == value).count();
            for (value, count) in &found.values {
                prop_assert_eq!(times(value.get()) as u64, *count);
            }
            prop_assert!(found.values.is_sorted_by(|a, b| a.0 < b.0));
            prop_assert_eq!(found.count(), values.len() as u64);
            let mode = found.mode.unwrap().get();
            let is_less = |value: u64| (times(value), mode) < (times(mode), value);
            prop_assert!(values.iter().all(|&value| value == mode || is_less(value)));
            prop_assert_eq!(found.min().map(Instructions::get), values.iter().min().copied());
            prop_assert_eq!(found.max().map(Instructions::get), values.iter().max().copied());
            let mut turned = values.clone();
            turned.reverse();
            prop_assert_eq!(spread(&turned), found);
        }
    }
}
