//! Comparisons: whether the values of one set of runs differ from those of another, by how much, and
//! what is not known yet.
//!
//! Two samples differ if the Mann-Whitney test says so (`ranks`), after a correction for the number
//! of values that are compared at once (`discovery`). By how much is the shift between them with its
//! interval (`effect`). Without a difference, the interval says how large one could be
//! (`conclusion`).
//!
//! A set of several runs has one value of each metric per run. Two single runs are compared by
//! their blocks (`blocks`), which are not independent of each other (`dependence`).

mod blocks;
mod cells;
mod conclusion;
mod condition;
pub(crate) mod dependence;
mod discovery;
mod effect;
mod observation;
pub(crate) mod ranks;
mod run_numbers;
mod run_set;
pub(crate) mod sample;
#[cfg(test)]
mod scipy;
#[cfg(test)]
mod simulations;
mod variants;

use recording::CulpritKind;
use serde::Serialize;
use units::{Cpu, Ppm};

pub use blocks::{Block, BlockUnit};
pub use cells::{CellDifference, CellsComparison};
pub use conclusion::Conclusion;
pub use condition::{Condition, ConditionError, Judged};
pub use effect::Statistic;
pub use run_numbers::{CulpritNumber, MetricNumber, RunNumbers};
pub use run_set::{RunSet, RunsDoubt};
pub use variants::Variants;

use crate::comparison::effect::Effect;
use crate::comparison::sample::{Pair, Pairs, pairs};
use crate::metrics::relative;
use crate::{Better, Unit};

/// Of the differences that are reported, at most this share is false on average.
pub const FALSE_DISCOVERIES: f64 = 0.05;

/// What is compared: a metric, or the time lost to a culprit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Quantity {
    /// A metric.
    Metric {
        /// Its key.
        metric: String,
        /// The CPU; null for a metric that is not of a CPU, or if each set has one CPU.
        cpu: Option<Cpu>,
    },
    /// The share of their time that all measured CPUs lost to a culprit, in ppm.
    Culprit {
        /// The kind of event.
        kind: CulpritKind,
        /// The name of the interrupt, the thread, ...; of a kworker without its number.
        name: String,
    },
}

impl Quantity {
    /// The kind and the name of a culprit; `None` for a metric.
    pub fn culprit(&self) -> Option<(CulpritKind, &str)> {
        match self {
            Self::Culprit { kind, name } => Some((*kind, name)),
            Self::Metric { .. } => None,
        }
    }

    /// The key of a metric; `None` for a culprit.
    pub fn metric(&self) -> Option<&str> {
        match self {
            Self::Metric { metric, .. } => Some(metric),
            Self::Culprit { .. } => None,
        }
    }

    /// The CPU of a metric.
    pub fn cpu(&self) -> Option<Cpu> {
        match self {
            Self::Metric { cpu, .. } => *cpu,
            Self::Culprit { .. } => None,
        }
    }
}

/// The values of a metric or culprit in two sets of runs, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// What is compared.
    #[serde(flatten)]
    pub quantity: Quantity,
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
}

/// Compares each of the other sets with the base. A relative difference of at most `smallest` is of
/// no interest: it takes no more runs to find out whether there is one.
pub fn compare(base: &RunSet, others: &[RunSet], smallest: Ppm) -> Vec<Comparison> {
    let all: Vec<Pairs> = others.iter().map(|other| pairs(base, other)).collect();
    let every = all.iter().flat_map(|pairs| &pairs.compared);
    let p_values: Vec<f64> = every.map(Pair::p_value).collect();
    let adjusted = discovery::adjusted(&p_values);
    let mut p_values = p_values.into_iter().zip(adjusted);
    let mut comparisons = Vec::new();
    for (pairs, other) in all.iter().zip(others) {
        let compared = pairs.compared.iter().zip(p_values.by_ref());
        let compared = compared.map(|(pair, p_values)| pair.compared(p_values, smallest));
        let (metrics, mut culprits): (Vec<Compared>, Vec<Compared>) =
            compared.partition(|one| one.metric().is_some());
        culprits.sort_by(|a, b| b.larger_center().total_cmp(&a.larger_center()));
        let only_in = [base.cpus_without(other), other.cpus_without(base)];
        let small_culprits = pairs.small_culprits;
        comparisons.push(Comparison { metrics, culprits, small_culprits, only_in });
    }
    comparisons
}

impl Comparison {
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

impl Compared {
    /// The set with the better values, if they differ.
    fn better_set(&self) -> Option<BetterSet> {
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
    fn larger_center(&self) -> f64 {
        self.centers.into_iter().flatten().fold(0.0, f64::max)
    }

    /// The key of its metric; `None` for a culprit.
    pub fn metric(&self) -> Option<&str> {
        self.quantity.metric()
    }

    /// Its CPU, if it is a metric of one.
    pub fn cpu(&self) -> Option<Cpu> {
        self.quantity.cpu()
    }

    /// Whether a difference is reported.
    pub fn is_difference(&self) -> bool {
        matches!(self.conclusion, Conclusion::Lower | Conclusion::Higher)
    }
}

impl Pair {
    /// What follows from the pair, with its p-value and the adjusted one.
    fn compared(
        &self,
        (p_value, adjusted_p_value): (f64, f64),
        smallest: Ppm,
    ) -> Compared {
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
        let mut compared = Compared {
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
            conclusion: Conclusion::Equal,
            unit: self.unit,
            better: self.better,
        };
        compared.conclusion = Conclusion::of(&compared, self, smallest);
        compared
    }
}
