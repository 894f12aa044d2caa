//! A fleet: the recordings of many nodes, reduced one by one to what is needed, and which nodes are noisy.
//!
//! A node's value is the median of its recordings: of shares and rates the mean of its CPUs, of lengths the longest.
//! Nodes are compared by `stats::Fence`, whose rate of false alarms is that of the whole fleet. The reasons are in
//! the modules: sources of noise that take more than elsewhere (`sources`), and facts and labels that noisy nodes
//! have and others have not (`groups`).
//!
//! Cannot see which host a recording is from: it has no host name. Nodes have the names of files or of entries of
//! a history.

pub(crate) mod doubts;
pub(crate) mod fact;
pub(crate) mod facts;
pub(crate) mod groups;
pub(crate) mod interned;
pub(crate) mod labels;
pub(crate) mod maps;
pub(crate) mod nodes;
pub(crate) mod run;
pub(crate) mod sources;

use std::collections::BTreeMap;

use serde::Serialize;
use stats::{Better, FALSE_OUTLIERS, Fence, OUTLIER_VALUES_MIN, Unit};

use crate::fleet::doubts::FleetDoubt;
use crate::fleet::facts::NodeFacts;
use crate::fleet::groups::{DifferingFact, FleetGroup, RareFact};
use crate::fleet::interned::Interned;
use crate::fleet::labels::FleetLabels;
use crate::fleet::maps::{NodeMap, SourceMap};
use crate::fleet::nodes::FleetNode;
use crate::fleet::run::{FleetRun, StoredRun};
use crate::fleet::sources::SourceExcess;
use crate::metrics::definition;
use crate::metrics::table::NOISE_PPM;

/// Metrics that stand for a kind of measurement, before its first one.
const MAIN: [&str; 5] =
    [NOISE_PPM, "run_noise_ppm", "late_ns_p99", "jitter_ns_p99", "user_late_ns_p99"];

/// Recordings of many nodes.
#[derive(Debug, Default)]
pub struct Fleet {
    runs: Vec<StoredRun>,
    metrics: Interned<String>,
    sources: Interned<(recording::CulpritKind, String)>,
    facts: NodeFacts,
}

/// What is asked about a fleet.
#[derive(Debug, Clone, Default)]
pub struct FleetQuestion {
    /// The kind of measurement; `None`: that of most nodes.
    pub kind: Option<String>,
    /// The metric; `None`: the main one of that kind.
    pub metric: Option<String>,
    /// Labels of nodes.
    pub labels: FleetLabels,
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FleetError {
    /// No recording at all, or none of that kind.
    #[error("no recording of {0}; --kind: {1}")]
    NoKind(String, String),
    /// No recording has the metric.
    #[error("no recording has the metric {0}; --metric: {1}")]
    NoMetric(String, String),
    /// Large values of the metric are not noise.
    #[error("{0}: large values are no noise; --metric: {1}")]
    NotNoise(String, String),
}

/// The summary of a fleet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetSummary {
    /// The kind of measurement.
    pub measurement: String,
    /// The key of the metric.
    pub metric: String,
    /// Its unit.
    #[serde(skip)]
    pub unit: Unit,
    /// The number of nodes that have the metric.
    pub nodes: usize,
    /// The number of their recordings.
    pub recordings: usize,
    /// When the first and the last of them were taken.
    pub taken: [String; 2],
    /// The median of the nodes.
    pub median: f64,
    /// The value from which a node with one recording is noisy; null for too few nodes.
    pub limit: Option<f64>,
    /// The number of scales above the median from which a node is noisy; null as above.
    pub scales: Option<f64>,
    /// The fewest nodes of a fleet that can have a noisy one.
    pub nodes_min: usize,
    /// The probability that a fleet without a noisy node has one that is called noisy.
    pub false_alarm_rate: f64,
    /// The noisy nodes, the noisiest first.
    pub noisy: Vec<NoisyNode>,
    /// Facts and labels that go with noise, the most certain first.
    pub groups: Vec<FleetGroup>,
    /// The number of groups of nodes that were tested, each in two ways.
    pub tested: usize,
    /// The facts and labels that differ within the fleet.
    pub facts: Vec<DifferingFact>,
    /// Sources over nodes; null if no source is known.
    pub sources: Option<SourceMap>,
    /// All nodes, in groups by a label or by name.
    pub map: NodeMap,
    /// All nodes with their values, by name.
    pub values: Vec<NodeValue>,
    /// Reasons not to trust a number, and files that are left out.
    pub doubts: Vec<FleetDoubt>,
}

/// A node and its value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeValue {
    /// The name.
    pub node: String,
    /// The median of its recordings.
    pub value: f64,
    /// Their number.
    pub recordings: usize,
    /// By how many scales it is above the median of the fleet; null for too few nodes, or a fleet without a spread.
    pub height: Option<f64>,
}

/// A noisy node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoisyNode {
    /// The node and its value.
    #[serde(flatten)]
    pub node: NodeValue,
    /// The value as a multiple of the median of the fleet; null if that is 0.
    pub times: Option<f64>,
    /// The factor by which its own recordings typically differ; null for fewer than three.
    pub spread: Option<f64>,
    /// The sources that take more than in the rest of the fleet, the largest first; null if they are unknown.
    pub sources: Option<Vec<SourceExcess>>,
    /// The groups that go with noise to which it belongs: places in `groups`.
    pub groups: Vec<usize>,
    /// Other facts and labels that most nodes do not share with it, the rarest first.
    pub rare: Vec<RareFact>,
}

impl Fleet {
    /// Adds a recording of a node; `file` is for doubts.
    pub fn add(&mut self, node: &str, file: &str, run: FleetRun) {
        let metrics = run.metrics.into_iter();
        let sources = run.sources.map(|all| {
            all.into_iter().map(|(source, ppm)| (self.sources.id(source), ppm)).collect()
        });
        self.runs.push(StoredRun {
            node: node.to_owned(),
            file: file.to_owned(),
            kind: run.kind,
            taken: run.taken,
            metrics: metrics.map(|(key, value)| (self.metrics.id(key), value)).collect(),
            sources,
            facts: self.facts.add(run.facts),
            machine: run.machine,
            doubts: run.doubts,
            identity: run.identity,
        });
    }

    /// The number of recordings.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether there is no recording.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Answers the question; `left_out` are the files that could not be read.
    ///
    /// # Errors
    /// No recording has the kind or the metric.
    pub fn summarize(
        mut self,
        asked: &FleetQuestion,
        left_out: Vec<FleetDoubt>,
    ) -> Result<FleetSummary, FleetError> {
        let kind = self.kind(asked.kind.as_deref())?;
        let metric = self.metric(&kind, asked.metric.as_deref())?;
        let mut doubts = left_out;
        let runs = std::mem::take(&mut self.runs);
        let runs = nodes::of_kind(runs, &kind, &mut doubts);
        let step = nodes::step(unit(&metric));
        let id = self.metrics.id(metric.clone());
        let nodes = nodes::nodes(runs, id, step, &mut doubts);
        self.facts.label(&nodes, &asked.labels, &mut doubts);
        Ok(self.of_nodes(&kind, metric, step, nodes, doubts))
    }

    fn of_nodes(
        &self,
        kind: &str,
        metric: String,
        step: f64,
        nodes: Vec<FleetNode>,
        doubts: Vec<FleetDoubt>,
    ) -> FleetSummary {
        let values: Vec<f64> = nodes.iter().map(|node| node.value.value).collect();
        let fence = Fence::of(&values, step);
        let heights: Vec<_> = nodes
            .iter()
            .map(|node| fence.map(|fence| fence.height(&node.value)))
            .collect();
        let noisy: Vec<bool> = heights
            .iter()
            .map(|height| height.is_some_and(|one| one.is_outlier))
            .collect();
        let scales: Vec<Option<f64>> = heights
            .iter()
            .map(|height| height.map(|one| one.scales).filter(|one| one.is_finite()))
            .collect();
        let median = nodes::median(&values);
        let typical = sources::typical(&nodes, self.sources.len());
        let found = groups::found(&self.facts, &nodes, &noisy);
        let value = |at: usize| NodeValue {
            node: nodes[at].name.clone(),
            value: values[at],
            recordings: nodes[at].value.count,
            height: scales[at],
        };
        let mut order: Vec<usize> = (0..nodes.len()).collect();
        order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
        let explained = |at: &usize| NoisyNode {
            node: value(*at),
            times: (median > 0.0).then(|| values[*at] / median),
            spread: nodes[*at].value.spread.map(f64::exp),
            sources: typical.as_ref().and_then(|typical| {
                let excess = values[*at] - median;
                sources::excess(
                    &nodes[*at],
                    typical,
                    &self.sources,
                    (unit(&metric), excess),
                )
            }),
            groups: found.groups_of(*at),
            rare: found.rare(&self.facts, &nodes[*at], *at),
        };
        let noisy_first: Vec<usize> =
            order.iter().copied().filter(|at| noisy[*at]).collect();
        FleetSummary {
            measurement: kind.to_owned(),
            unit: unit(&metric),
            nodes: nodes.len(),
            recordings: nodes.iter().map(|node| node.value.count).sum(),
            taken: nodes::taken(&nodes),
            median,
            limit: fence.map(|fence| fence.limit()),
            scales: fence.map(|fence| fence.scales),
            nodes_min: OUTLIER_VALUES_MIN,
            false_alarm_rate: FALSE_OUTLIERS,
            noisy: noisy_first.iter().map(explained).collect(),
            sources: typical.map(|typical| {
                maps::sources(&nodes, &order, noisy_first.len(), &typical, &self.sources)
            }),
            map: maps::nodes(&self.facts, &nodes, &values),
            values: (0..nodes.len()).map(value).collect(),
            tested: found.tested,
            groups: found.groups,
            facts: found.differing,
            doubts,
            metric,
        }
    }

    /// The kind that was asked for, or that of most recordings.
    fn kind(&self, asked: Option<&str>) -> Result<String, FleetError> {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        self.runs.iter().for_each(|run| *kinds.entry(&run.kind).or_default() += 1);
        let most =
            || kinds.iter().max_by_key(|(_, count)| **count).map(|(kind, _)| *kind);
        match asked.map_or_else(most, Some) {
            Some(kind) if kinds.contains_key(kind) => Ok(kind.to_owned()),
            asked => {
                let known = kinds.keys().copied().collect::<Vec<_>>().join(", ");
                Err(FleetError::NoKind(asked.unwrap_or("any kind").to_owned(), known))
            }
        }
    }

    /// The metric that was asked for, or the main one.
    fn metric(&self, kind: &str, asked: Option<&str>) -> Result<String, FleetError> {
        let runs = self.runs.iter().filter(|run| run.kind == kind);
        let mut known: Vec<&str> = Vec::new();
        for (id, _) in runs.flat_map(|run| &run.metrics) {
            let Some(key) = self.metrics.get(*id) else { continue };
            if !known.contains(&key.as_str()) {
                known.push(key);
            }
        }
        let is_noise = |key: &&&str| {
            definition(key).is_some_and(|about| about.better == Better::Less)
        };
        let noise = || known.iter().filter(is_noise);
        let all = || noise().copied().collect::<Vec<_>>().join(", ");
        let main =
            || MAIN.iter().find(|key| known.contains(key)).or_else(|| noise().next());
        match asked {
            Some(key) if !known.contains(&key) => {
                Err(FleetError::NoMetric(key.to_owned(), all()))
            }
            Some(key) if !noise().any(|one| *one == key) => {
                Err(FleetError::NotNoise(key.to_owned(), all()))
            }
            Some(key) => Ok(key.to_owned()),
            None => main()
                .map(|key| (*key).to_owned())
                .ok_or_else(|| FleetError::NoMetric("of noise".to_owned(), all())),
        }
    }
}

fn unit(metric: &str) -> Unit {
    definition(metric).map_or(Unit::Count, |about| about.unit)
}

#[cfg(test)]
mod tests;
