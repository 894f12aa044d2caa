//! The values of each quantity: of the runs of a set, and of two sets side by side.

use std::collections::HashMap;

use itertools::Itertools;
use recording::CulpritKind;
use stats::{Better, Block, Unit, inflation};
use units::Cpu;

use crate::comparison::benchmark_values::with_values;
use crate::comparison::blocks::Level;
use crate::comparison::observation::{CulpritNumber, Observation};
use crate::comparison::quantity::Quantity;
use crate::comparison::run_set::RunSet;

/// The values of a metric or a culprit.
type Sample = stats::Sample<Quantity>;
/// Those of two sets.
pub(crate) type Pair = stats::Pair<Quantity>;
/// The spread of a metric over the runs of a set, or of the shares of their time that runs lost to a
/// culprit.
pub type RunSpread = stats::RunSpread<Quantity>;

impl RunSet {
    /// The spread of each metric, CPU by CPU.
    pub fn spreads(&self) -> Vec<RunSpread> {
        let metrics = of_metrics(&self.observations);
        metrics.iter().filter_map(RunSpread::of).collect()
    }

    /// The values of a metric in the runs that have it, in their order.
    pub fn values(&self, of: &Quantity) -> Vec<f64> {
        let key = of.metric().map(|metric| (metric, of.cpu()));
        let metrics = self.observations.iter().flat_map(|one| &one.metrics);
        let own = metrics.filter(|one| Some(one.key()) == key);
        own.map(|one| one.value).collect()
    }

    /// The share of their time that runs lost to each culprit, in descending order of the mean; empty if
    /// single events were not traced.
    pub fn culprit_spreads(&self) -> Vec<RunSpread> {
        let culprits = of_culprits(&self.observations);
        let mut culprits: Vec<RunSpread> =
            culprits.iter().filter_map(RunSpread::of).collect();
        culprits.sort_by(|a, b| b.mean.total_cmp(&a.mean));
        culprits
    }
}

/// The samples of observations, in the order in which a quantity first occurs.
fn all(observations: &[Observation]) -> Vec<Sample> {
    let mut samples = of_metrics(observations);
    samples.extend(of_culprits(observations));
    samples
}

/// Those of metrics only. Older versions may have had others.
fn of_metrics(observations: &[Observation]) -> Vec<Sample> {
    let mut places: HashMap<(&str, Option<Cpu>), usize> = HashMap::new();
    let mut samples: Vec<Sample> = Vec::new();
    for one in observations.iter().flat_map(|one| &one.metrics) {
        if let Some(at) = places.get(&one.key()) {
            samples[*at].values.push(one.value);
        } else if let Some((unit, better)) = one.meaning() {
            places.insert(one.key(), samples.len());
            let quantity = Quantity::Metric { metric: one.metric.clone(), cpu: one.cpu };
            samples.push(Sample { quantity, unit, better, values: vec![one.value] });
        }
    }
    samples
}

/// Those of culprits only. One that an observation does not have took no time.
fn of_culprits(observations: &[Observation]) -> Vec<Sample> {
    let traced: Vec<&[CulpritNumber]> =
        observations.iter().filter_map(|one| one.culprits.as_deref()).collect();
    let sample = |(kind, name): (CulpritKind, &str)| {
        let share = |all: &&[CulpritNumber]| {
            let own = all.iter().find(|one| one.key() == (kind, name));
            own.map_or(0.0, |one| one.ppm.get())
        };
        Sample {
            quantity: Quantity::Culprit { kind, name: name.to_owned() },
            unit: Unit::Ppm,
            better: Better::Less,
            values: traced.iter().map(share).collect(),
        }
    };
    let keys = traced.iter().copied().flatten().map(CulpritNumber::key);
    keys.unique().map(sample).collect()
}

/// The same, without the CPU.
fn of_any_cpu(mut sample: Sample) -> Sample {
    if let Quantity::Metric { cpu, .. } = &mut sample.quantity {
        *cpu = None;
    }
    sample
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
pub(crate) const SMALL: f64 = 0.01;

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
        true => samples.into_iter().map(of_any_cpu).collect(),
        false => samples,
    };
    let of = |observations: &[Observation]| plain(all(observations));
    let runs = joined(&of(&base.observations), &of(&other.observations), None);
    let values = [&base.benchmarks, &other.benchmarks];
    let runs: Vec<Pair> =
        runs.into_iter().map(|pair| with_values(pair, values)).collect();
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
    let places = |samples: &'_ [Sample]| -> HashMap<Quantity, usize> {
        samples.iter().enumerate().map(|(at, one)| (one.quantity.clone(), at)).collect()
    };
    let places = [places(base), places(other)];
    let find = |set: usize, of: &Quantity| places[set].get(of).copied();
    // Each culprit of a set has a value for each traced run.
    let traced = |samples: &[Sample]| {
        let is_culprit = |one: &&Sample| matches!(one.quantity, Quantity::Culprit { .. });
        samples.iter().find(is_culprit).map(|one| vec![0.0; one.values.len()])
    };
    let only_other = other.iter().filter(|one| find(0, &one.quantity).is_none());
    let quantities = base.iter().chain(only_other);
    let pair = |sample: &Sample| {
        let values = |samples: &[Sample], set| match find(set, &sample.quantity) {
            Some(at) => Some(samples[at].values.clone()),
            None if matches!(sample.quantity, Quantity::Culprit { .. }) => {
                traced(samples)
            }
            None => None,
        };
        let (base, other) = (values(base, 0)?, values(other, 1)?);
        let inflation = match block {
            Some(_) => inflation([&base, &other]),
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
