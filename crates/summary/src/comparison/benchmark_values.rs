//! The values of benchmarks in the file of a set that has them.
//!
//! A file of a benchmark contains several runs of it. If a set has one file of a benchmark, its values are
//! compared; of several files each has one value, the median, as of other recordings: values of one file have
//! their session in common. Very many values are compared in blocks.

use std::collections::BTreeMap;

use recording::{Body, Recording};
use stats::{Block, BlockUnit, ItemUnit, Pair, Statistic, inflation};

use crate::comparison::quantity::Quantity;
use crate::comparison::run_numbers::RunNumbers;
use crate::metrics::benchmark_key::BenchmarkKey;

/// More values are divided into blocks: the differences of all pairs of more are too many.
const VALUES_MAX: usize = 255;
/// With fewer values, their dependence on each other cannot be estimated.
const DEPENDENT_MIN: usize = 16;

/// The values by the key of the metric; `None` if they are in several files, or not known.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct BenchmarkValues(BTreeMap<String, Option<Vec<f64>>>);

impl BenchmarkValues {
    /// Adds a run: what it has in common with an earlier one has one value for each of them.
    pub(crate) fn add(&mut self, run: &RunNumbers) {
        let keys = run.metrics.iter().map(|one| &one.metric);
        for key in keys.filter(|key| BenchmarkKey::of(key).is_some()) {
            self.0.insert(key.clone(), None);
        }
    }

    /// Adds the values of a recording, before its numbers are added.
    pub(crate) fn of(&self, recording: &Recording) -> Vec<(String, Vec<f64>)> {
        let Body::Benchmarks { series, .. } = &recording.body else { return Vec::new() };
        let several = series.benchmarks.iter().filter(|one| one.values.len() > 1);
        let values = several
            .map(|one| (BenchmarkKey::text(&one.name, &one.unit), one.values.clone()));
        values.filter(|(key, _)| !self.0.contains_key(key)).collect()
    }

    /// Sets the values of benchmarks that are in one file only.
    pub(crate) fn set(&mut self, values: Vec<(String, Vec<f64>)>) {
        self.0.extend(values.into_iter().map(|(key, values)| (key, Some(values))));
    }

    /// The keys of its benchmarks that another set does not have.
    pub(crate) fn keys_without(&self, other: &Self) -> Vec<String> {
        let own = self.0.keys().filter(|key| !other.0.contains_key(*key));
        own.cloned().collect()
    }

    fn get(&self, pair: &Pair<Quantity>) -> Option<&[f64]> {
        self.0.get(pair.quantity.metric()?)?.as_deref()
    }
}

/// A pair with the values of both files instead of their medians, if both sets have them.
pub(crate) fn with_values(
    pair: Pair<Quantity>,
    sets: [&BenchmarkValues; 2],
) -> Pair<Quantity> {
    let [Some(base), Some(other)] = sets.map(|set| set.get(&pair)) else { return pair };
    let length = [base, other].map(block_length).into_iter().max().unwrap_or(1);
    let [base, other] = [base, other].map(|values| blocks(values, length));
    let is_long = base.len().min(other.len()) >= DEPENDENT_MIN;
    let inflation = if is_long { inflation([&base, &other]) } else { 1.0 };
    let block =
        Some(Block { length: length as u64, unit: BlockUnit::Items(ItemUnit::Values) });
    Pair { base, other, block, inflation, ..pair }
}

/// The smallest power of two that divides so many values into few enough blocks.
fn block_length(values: &[f64]) -> usize {
    values.len().div_ceil(VALUES_MAX).next_power_of_two()
}

/// The medians of blocks; what is left at the end is in none.
fn blocks(values: &[f64], length: usize) -> Vec<f64> {
    let whole = values.chunks(length).filter(|block| block.len() == length);
    whole.filter_map(|block| Statistic::Median.of(block)).collect()
}

#[cfg(test)]
mod tests {
    use stats::Conclusion;
    use units::Ppm;

    use super::*;
    use crate::comparison::run_set::RunSet;
    use crate::comparison::{Compared, compare};

    /// The example, with values that are larger by a factor.
    fn recording(factor: f64) -> Recording {
        let text = include_str!("../../../recording/tests/golden/benchmarks-1.json");
        let mut recording = Recording::from_json(text, "a.json".as_ref()).unwrap();
        let Body::Benchmarks { series, .. } = &mut recording.body else { panic!() };
        for one in &mut series.benchmarks {
            one.values.iter_mut().for_each(|value| *value *= factor);
        }
        recording
    }

    fn compared(sets: [&[f64]; 2], key: &str) -> Compared {
        let [base, other] = sets.map(|factors| {
            let mut set = RunSet::default();
            factors.iter().for_each(|factor| set.add(&recording(*factor)));
            set
        });
        let all = compare(&base, &[other], Ppm::new(1e5)).swap_remove(0).metrics;
        all.into_iter().find(|one| one.quantity.metric() == Some(key)).unwrap()
    }

    /// Check that one file each is compared by its values, that of several files each has one value, the median,
    /// and that a file with statistics has one value.
    #[test]
    fn one_file_or_several() {
        let key = "BenchmarkAdd-2:ns";
        let single = compared([&[1.0], &[3.0]], key);
        assert_eq!((single.values, single.conclusion), ([6, 6], Conclusion::Higher));
        let unit = BlockUnit::Items(ItemUnit::Values);
        assert_eq!(single.block, Some(Block { length: 1, unit }));
        let mut other = BenchmarkValues::default();
        other.set(vec![("new:ns".to_owned(), vec![1.0])]);
        let none = BenchmarkValues::default();
        assert_eq!(
            (other.keys_without(&none), none.keys_without(&other)),
            (vec!["new:ns".to_owned()], Vec::new())
        );
        let several = compared([&[1.0, 1.01], &[3.0]], key);
        assert_eq!((several.values, several.block), ([2, 1], None));
        let median = 3.0 * (0.2472 + 0.2513) / 2.0;
        assert!((several.centers[1].unwrap() - median).abs() < 1e-12);
        assert_eq!(compared([&[1.0], &[1.0]], "of statistics:ns").values, [1, 1]);
        let rate = compared([&[1.0], &[3.0]], "BenchmarkCopy-2:MB/s");
        assert_eq!((rate.better, rate.values), (stats::Better::More, [4, 4]));
    }

    /// Check that few values are compared as they are, and many in blocks, of which the last is complete.
    #[test]
    fn lengths_of_blocks() {
        let values: Vec<f64> = (0..1_000).map(f64::from).collect();
        assert_eq!(block_length(&values[..255]), 1);
        assert_eq!(blocks(&values[..3], 1), [0.0, 1.0, 2.0]);
        let length = block_length(&values);
        assert_eq!((length, block_length(&values[..256])), (4, 2));
        let found = blocks(&values[..11], length);
        assert_eq!(found, [1.5, 5.5]);
    }
}
