//! The nodes of a fleet: recordings by name, without copies, and those of different machines apart.

use std::collections::{BTreeMap, HashMap};

use stats::{MedianOfRuns, Unit};

use crate::fleet::doubts::{FleetDoubt, FleetDoubtCode};
use crate::fleet::run::StoredRun;

/// A node with the metric.
#[derive(Debug)]
pub(crate) struct FleetNode {
    pub(crate) name: String,
    pub(crate) value: MedianOfRuns,
    /// When its first and its last recording were taken.
    pub(crate) taken: [String; 2],
    /// The means of the shares of its sources; `None` if they are unknown.
    pub(crate) sources: Option<Vec<(u32, f64)>>,
    /// Those of its last recording, in rising order.
    pub(crate) facts: Vec<u32>,
}

/// The resolution of a metric: smaller differences are none, and zero is an ordinary value.
pub(crate) fn step(unit: Unit) -> f64 {
    match unit {
        Unit::Ns => 10.0,
        Unit::Ppm | Unit::Instructions | Unit::Count => 1.0,
        Unit::Hz => 0.1,
    }
}

/// The median; 0 without values.
pub(crate) fn median(values: &[f64]) -> f64 {
    MedianOfRuns::of(values, 1.0).map_or(0.0, |of| of.value)
}

/// The recordings of that kind, by name and time, without copies.
pub(crate) fn of_kind(
    runs: Vec<StoredRun>,
    kind: &str,
    doubts: &mut Vec<FleetDoubt>,
) -> Vec<StoredRun> {
    let (mut runs, others): (Vec<_>, Vec<_>) =
        runs.into_iter().partition(|run| run.kind == kind);
    let mut others: Vec<_> = others.into_iter().map(|run| (run.kind, run.file)).collect();
    others.sort();
    for (kind, file) in others {
        FleetDoubt::add(doubts, FleetDoubtCode::OtherKind, &kind, &file);
    }
    runs.sort_by(|a, b| (&a.node, &a.taken, &a.file).cmp(&(&b.node, &b.taken, &b.file)));
    let mut seen: HashMap<u64, String> = HashMap::new();
    runs.retain(|run| match seen.get(&run.identity) {
        Some(first) => {
            let name = format!("{} (of {first})", run.file);
            FleetDoubt::add(doubts, FleetDoubtCode::Duplicate, "", &name);
            false
        }
        None => seen.insert(run.identity, run.file.clone()).is_none(),
    });
    runs
}

/// The nodes that have a metric, by name.
pub(crate) fn nodes(
    runs: Vec<StoredRun>,
    metric: u32,
    step: f64,
    doubts: &mut Vec<FleetDoubt>,
) -> Vec<FleetNode> {
    let mut by_name: BTreeMap<String, Vec<StoredRun>> = BTreeMap::new();
    for run in runs {
        for code in &run.doubts {
            FleetDoubt::add(
                doubts,
                FleetDoubtCode::Unreliable,
                &code_text(*code),
                &run.file,
            );
        }
        match run.metrics.iter().any(|(id, _)| *id == metric) {
            true => by_name.entry(run.node.clone()).or_default().push(run),
            false => FleetDoubt::add(doubts, FleetDoubtCode::NoMetric, "", &run.file),
        }
    }
    let mut nodes = Vec::new();
    for (name, runs) in by_name {
        let machines = by_machine(runs);
        if machines.len() > 1 {
            FleetDoubt::add(doubts, FleetDoubtCode::SameName, "", &name);
        }
        for (at, runs) in machines.into_iter().enumerate() {
            let name = if at == 0 { name.clone() } else { format!("{name}#{}", at + 1) };
            nodes.extend(node(name, runs, metric, step));
        }
    }
    nodes
}

/// The recordings of each machine, in the order of its first one. Those whose machine is unknown, as of older
/// entries of a history, belong to the first one that is known.
fn by_machine(runs: Vec<StoredRun>) -> Vec<Vec<StoredRun>> {
    let first = runs.iter().map(|run| &run.machine).find(|machine| !machine.is_empty());
    let first = first.cloned().unwrap_or_default();
    let mut machines: Vec<(String, Vec<StoredRun>)> = Vec::new();
    for run in runs {
        let machine = if run.machine.is_empty() { &first } else { &run.machine };
        match machines.iter_mut().find(|(own, _)| own == machine) {
            Some((_, own)) => own.push(run),
            None => machines.push((machine.clone(), vec![run])),
        }
    }
    machines.into_iter().map(|(_, runs)| runs).collect()
}

fn node(
    name: String,
    mut runs: Vec<StoredRun>,
    metric: u32,
    step: f64,
) -> Option<FleetNode> {
    let value = |run: &StoredRun| {
        run.metrics.iter().find(|(id, _)| *id == metric).map(|(_, value)| *value)
    };
    let values: Vec<f64> = runs.iter().filter_map(value).collect();
    let taken = [runs.first()?, runs.last()?].map(|run| run.taken.clone());
    // Older entries of a history have no facts of their own.
    let facts = runs.iter_mut().rev().find(|run| !run.facts.is_empty());
    let facts = facts.map_or_else(Vec::new, |run| std::mem::take(&mut run.facts));
    let value = MedianOfRuns::of(&values, step)?;
    Some(FleetNode { name, value, taken, sources: mean_sources(&runs), facts })
}

/// The mean share of each source in the recordings that have them.
fn mean_sources(runs: &[StoredRun]) -> Option<Vec<(u32, f64)>> {
    let known: Vec<_> = runs.iter().filter_map(|run| run.sources.as_ref()).collect();
    if known.is_empty() {
        return None;
    }
    let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
    for (id, ppm) in known.iter().flat_map(|sources| sources.iter()) {
        *sums.entry(*id).or_default() += ppm / known.len() as f64;
    }
    Some(sums.into_iter().collect())
}

/// When the first and the last recording were taken.
pub(crate) fn taken(nodes: &[FleetNode]) -> [String; 2] {
    let first = nodes.iter().map(|node| &node.taken[0]).min();
    let last = nodes.iter().map(|node| &node.taken[1]).max();
    [first, last].map(|taken| taken.cloned().unwrap_or_default())
}

fn code_text(code: recording::Code) -> String {
    let text = serde_json::to_value(code).ok();
    text.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}
