//! Comparisons: whether the values of one set of runs differ from those of another, by how much, and
//! what is not known yet. `stats` has the tests and intervals.
//!
//! A set of several runs has one value of each metric per run. Two single runs are compared by
//! their blocks (`blocks`), which are not independent of each other (`stats::inflation`).

pub(crate) mod benchmark_values;
pub(crate) mod blocks;
pub(crate) mod cells;
pub(crate) mod condition;
pub(crate) mod detectable;
pub(crate) mod duet;
pub(crate) mod main_metric;
pub(crate) mod observation;
pub(crate) mod one_metric;
pub(crate) mod program_run;
pub(crate) mod quantity;
pub(crate) mod run_numbers;
pub(crate) mod run_set;
pub(crate) mod samples;
#[cfg(test)]
mod simulations;
pub(crate) mod variants;
pub(crate) mod worse;

use serde::Serialize;
use stats::{BetterSet, Detectable, adjusted};
use units::{Cpu, Ppm};

use crate::comparison::quantity::Quantity;
use crate::comparison::run_set::RunSet;
use crate::comparison::samples::{Pair, Pairs, pairs};

/// The values of a metric or culprit in two sets of runs, compared.
pub type Compared = stats::Compared<Quantity>;

/// A set, compared with the base.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The metrics that both have.
    pub metrics: Vec<Compared>,
    /// The culprits of either that take at least 1 % of the noise of both together, in descending
    /// order of their time; empty if single events were not traced in one of them.
    pub culprits: Vec<Compared>,
    /// The number of culprits that take less.
    pub small_culprits: usize,
    /// The CPUs of metrics that only one of both has, of the base and of the other set.
    pub only_in: [Vec<Cpu>; 2],
    /// The metrics of benchmarks that only one of both has; missing without such metrics.
    #[serde(skip_serializing_if = "is_none")]
    pub only_benchmarks: [Vec<String>; 2],
    /// The number of runs that are in both sets.
    pub common_runs: usize,
    /// What the comparison of the main metric would have shown, if it has no difference; null for single runs.
    pub detectable: Option<Detectable>,
}

fn is_none(only: &[Vec<String>; 2]) -> bool {
    only.iter().all(Vec::is_empty)
}

/// Compares each of the other sets with the base. A relative difference of at most `smallest` is of
/// no interest: it takes no more runs to find out whether there is one.
pub fn compare(base: &RunSet, others: &[RunSet], smallest: Ppm) -> Vec<Comparison> {
    let all: Vec<Pairs> = others.iter().map(|other| pairs(base, other)).collect();
    let every = all.iter().flat_map(|pairs| &pairs.compared);
    let p_values: Vec<f64> = every.map(Pair::p_value).collect();
    let (count, adjusted) = (p_values.len(), adjusted(&p_values));
    let mut p_values = p_values.into_iter().zip(adjusted);
    let mut comparisons = Vec::new();
    for (pairs, other) in all.iter().zip(others) {
        let compared = pairs.compared.iter().zip(p_values.by_ref());
        let compared = compared.map(|(pair, p_values)| pair.compared(p_values, smallest));
        let (metrics, mut culprits): (Vec<Compared>, Vec<Compared>) =
            compared.partition(|one| one.quantity.metric().is_some());
        culprits.sort_by(|a, b| b.larger_center().total_cmp(&a.larger_center()));
        let only_in = [base.cpus_without(other), other.cpus_without(base)];
        let only_benchmarks = [
            base.benchmarks.keys_without(&other.benchmarks),
            other.benchmarks.keys_without(&base.benchmarks),
        ];
        let small_culprits = pairs.small_culprits;
        comparisons.push(Comparison {
            detectable: detectable(base, &pairs.compared, &metrics, count),
            common_runs: base.runs_in(other),
            metrics,
            culprits,
            small_culprits,
            only_in,
            only_benchmarks,
        });
    }
    comparisons
}

/// What a comparison would have shown of the main metric: of several CPUs, of the one for which it takes the
/// largest difference. `None` if it shows one, or compares blocks.
fn detectable(
    base: &RunSet,
    pairs: &[Pair],
    metrics: &[Compared],
    comparisons: usize,
) -> Option<Detectable> {
    let main = base.main_key()?;
    let is_main = |of: &Quantity| of.metric() == Some(main);
    let is_known = |one: &Compared| one.block.is_some() || one.is_difference();
    if metrics.iter().any(|one| is_main(&one.quantity) && is_known(one)) {
        return None;
    }
    detectable::of_pairs(base, main, pairs, comparisons)
}

impl Comparison {
    /// Whether both sets are the same runs.
    pub fn is_of_same_runs(&self, base: &RunSet, other: &RunSet) -> bool {
        [base, other].iter().all(|set| set.runs() == self.common_runs)
    }

    /// Which set is better. The sources of noise do not count: what they take is in the metrics.
    pub fn better(&self) -> BetterSet {
        let is = |set| self.metrics.iter().any(|one| one.better_set() == Some(set));
        match (is(BetterSet::Base), is(BetterSet::Other)) {
            (true, true) => BetterSet::Mixed,
            (true, false) => BetterSet::Base,
            (false, true) => BetterSet::Other,
            (false, false) => BetterSet::Unknown,
        }
    }
}
