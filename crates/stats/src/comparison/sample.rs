//! The values of one quantity: of the runs of a set, and of two sets side by side.

use std::cmp::Ordering;
use std::iter::repeat_n;

use units::Cpu;

use crate::comparison::blocks::{Block, Level};
use crate::comparison::observation::Observation;
use crate::comparison::{Quantity, RunSet, Statistic, dependence, ranks};
use crate::{Better, Unit};

/// The values of a quantity, one for each run or block that has one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) quantity: Quantity,
    pub(crate) unit: Unit,
    pub(crate) better: Better,
    pub(crate) values: Vec<f64>,
}

/// The values of a quantity in two sets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair {
    pub(crate) quantity: Quantity,
    pub(crate) unit: Unit,
    pub(crate) better: Better,
    pub(crate) base: Vec<f64>,
    pub(crate) other: Vec<f64>,
    /// The blocks that the values are of.
    pub(crate) block: Option<Block>,
    /// How much larger the variance of a sum of values is than if they were independent.
    pub(crate) inflation: f64,
}

impl Sample {
    /// The samples of observations, in the order in which a quantity first occurs.
    pub(crate) fn all(observations: &[Observation]) -> Vec<Self> {
        let mut samples = Self::of_metrics(observations);
        samples.extend(Self::of_culprits(observations));
        samples
    }

    /// Those of metrics only.
    pub(crate) fn of_metrics(observations: &[Observation]) -> Vec<Self> {
        let mut samples: Vec<Self> = Vec::new();
        for metric in observations.iter().flat_map(|one| &one.metrics) {
            let of = Quantity::Metric { metric: metric.key.clone(), cpu: metric.cpu };
            match samples.iter_mut().find(|one| one.quantity == of) {
                Some(sample) => sample.values.push(metric.value),
                None => samples.push(Self {
                    quantity: of,
                    unit: metric.about.unit,
                    better: metric.about.better,
                    values: vec![metric.value],
                }),
            }
        }
        samples
    }

    /// Those of culprits only. One that an observation does not have took no time.
    pub(crate) fn of_culprits(observations: &[Observation]) -> Vec<Self> {
        let mut samples: Vec<Self> = Vec::new();
        let traced = observations.iter().filter_map(|one| one.culprits.as_ref());
        for (before, culprits) in traced.enumerate() {
            for (of, ppm) in culprits {
                let is_known = samples.iter().position(|one| one.quantity == *of);
                let at = is_known.unwrap_or_else(|| {
                    let values = repeat_n(0.0, before).collect();
                    samples.push(Self::of_culprit(of.clone(), values));
                    samples.len() - 1
                });
                samples[at].values.push(ppm.get());
            }
            for sample in &mut samples {
                sample.values.resize(before + 1, 0.0);
            }
        }
        samples
    }

    fn of_culprit(quantity: Quantity, values: Vec<f64>) -> Self {
        Self { quantity, unit: Unit::Ppm, better: Better::Less, values }
    }

    /// The same, without the CPU.
    fn of_any_cpu(mut self) -> Self {
        if let Quantity::Metric { cpu, .. } = &mut self.quantity {
            *cpu = None;
        }
        self
    }
}

/// What is compared of two sets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pairs {
    pub(crate) compared: Vec<Pair>,
    /// The number of culprits that take too little time.
    pub(crate) small_culprits: usize,
}

/// Culprits that take less than this share of the noise of both sets together are not compared: the
/// more is compared, the larger must a difference be that is no chance. The choice does not depend
/// on the difference (R. Bourgon, R. Gentleman, W. Huber: Independent filtering increases
/// detection power for high-throughput experiments. PNAS 107, 2010).
const SMALL: f64 = 0.01;

/// The quantities that both sets have, and the culprits of either.
pub(crate) fn pairs(base: &RunSet, other: &RunSet) -> Pairs {
    let mut compared = all_pairs(base, other);
    let time = |pair: &Pair| match pair.quantity {
        Quantity::Culprit { .. } => pair.mean(),
        Quantity::Metric { .. } => 0.0,
    };
    let noise: f64 = compared.iter().map(time).sum();
    let before = compared.len();
    compared.retain(|pair| match pair.quantity {
        Quantity::Culprit { .. } => pair.mean() >= SMALL * noise,
        Quantity::Metric { .. } => true,
    });
    let small_culprits = before - compared.len();
    Pairs { compared, small_culprits }
}

fn all_pairs(base: &RunSet, other: &RunSet) -> Vec<Pair> {
    let are_other_cpus = |a: &[Cpu], b: &[Cpu]| a.len() == 1 && b.len() == 1 && a != b;
    let one_each = are_other_cpus(&base.cpus(), &other.cpus());
    let plain = |samples: Vec<Sample>| match one_each {
        true => samples.into_iter().map(Sample::of_any_cpu).collect(),
        false => samples,
    };
    let of = |observations: &[Observation]| plain(Sample::all(observations));
    let runs = joined(&of(&base.observations), &of(&other.observations), None);
    let Some((base, other)) = common_level(base, other) else { return runs };
    let blocks = joined(&of(&base.blocks), &of(&other.blocks), Some(base.block));
    // What blocks do not have has one value of each run.
    let is_block = |one: &Pair| blocks.iter().any(|pair| pair.quantity == one.quantity);
    let others: Vec<Pair> = runs.into_iter().filter(|one| !is_block(one)).collect();
    blocks.into_iter().chain(others).collect()
}

/// The longest blocks that two single runs have in common: the longer they are, the less do
/// neighbours depend on each other.
fn common_level<'a>(
    base: &'a RunSet,
    other: &'a RunSet,
) -> Option<(&'a Level, &'a Level)> {
    let same = |own: &Level| other.levels.iter().find(|one| one.is_as_long_as(own));
    base.levels.iter().rev().find_map(|own| Some((own, same(own)?)))
}

/// Pairs of the samples of two sets.
fn joined(base: &[Sample], other: &[Sample], block: Option<Block>) -> Vec<Pair> {
    let find = |samples: &'_ [Sample], of: &Quantity| {
        samples.iter().position(|one| one.quantity == *of)
    };
    // Each culprit of a set has a value for each traced run.
    let traced = |samples: &[Sample]| {
        let is_culprit = |one: &&Sample| matches!(one.quantity, Quantity::Culprit { .. });
        samples.iter().find(is_culprit).map(|one| vec![0.0; one.values.len()])
    };
    let only_other = other.iter().filter(|one| find(base, &one.quantity).is_none());
    let quantities = base.iter().chain(only_other);
    let pair = |sample: &Sample| {
        let values = |samples: &[Sample]| match find(samples, &sample.quantity) {
            Some(at) => Some(samples[at].values.clone()),
            None if matches!(sample.quantity, Quantity::Culprit { .. }) => {
                traced(samples)
            }
            None => None,
        };
        let (base, other) = (values(base)?, values(other)?);
        let inflation = match block {
            Some(_) => dependence::inflation([&base, &other]),
            None => 1.0,
        };
        Some(Pair {
            quantity: sample.quantity.clone(),
            unit: sample.unit,
            better: sample.better,
            base,
            other,
            block,
            inflation,
        })
    };
    quantities.filter_map(pair).collect()
}

impl Pair {
    /// The probability of values that differ as much, by chance.
    pub(crate) fn p_value(&self) -> f64 {
        ranks::p_value(&self.base, &self.other, self.inflation)
    }

    /// Whether the other set's values are larger, by their ranks.
    pub(crate) fn direction(&self) -> Ordering {
        ranks::direction(&self.base, &self.other)
    }

    /// The mean of the means of both sets.
    fn mean(&self) -> f64 {
        let mean = |values: &[f64]| Statistic::Mean.of(values).unwrap_or(0.0);
        (mean(&self.base) + mean(&self.other)) / 2.0
    }
}
