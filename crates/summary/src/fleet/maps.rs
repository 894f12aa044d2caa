//! The numbers of a fleet's heat maps. Their size has a limit, however many nodes there are: nodes that are not
//! noisy are put together in columns.

use recording::CulpritKind;
use serde::Serialize;
use units::Ppm;

use crate::fleet::facts::{LABEL, NodeFacts};
use crate::fleet::interned::Interned;
use crate::fleet::nodes::{self, FleetNode};

/// The most sources of a map, nodes with a column of their own, and columns of the others.
const SOURCES: usize = 12;
const COLUMNS: usize = 30;
const REST: usize = 10;
/// The most rows of the map of nodes, and columns.
const ROWS: usize = 30;
const WIDTH: usize = 32;

/// The time that sources take of nodes, from the noisiest to the quietest one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceMap {
    /// The sources.
    pub sources: Vec<MapSource>,
    /// The nodes.
    pub columns: Vec<MapColumn>,
}

/// A row of the map: a source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MapSource {
    /// The kind of event; null for the sum of all others.
    pub kind: Option<CulpritKind>,
    /// The name of the interrupt, the thread, ...
    pub name: String,
}

/// A column of the map: a node, or several with the medians of their shares.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MapColumn {
    /// The node, or the noisiest of several.
    pub node: String,
    /// The number of nodes.
    pub nodes: usize,
    /// The share of each source.
    pub ppm: Vec<Ppm>,
}

/// All nodes: in each row those that share a label, or neighbours by name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeMap {
    /// The key of the label; null if rows are neighbours by name.
    pub label: Option<String>,
    /// The rows, the noisiest first.
    pub rows: Vec<MapRow>,
    /// The number of rows that are left out, which are less noisy.
    pub left_out: usize,
}

/// A row of the map of nodes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MapRow {
    /// The value of the label, or the first of the nodes.
    pub name: String,
    /// The number of nodes.
    pub nodes: usize,
    /// The median of their values.
    pub median: f64,
    /// The cells, from the noisiest node to the quietest.
    pub cells: Vec<MapCell>,
}

/// A cell of the map of nodes: the noisiest of some.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MapCell {
    /// The node.
    pub node: String,
    /// The number of nodes.
    pub nodes: usize,
    /// The value of the node, the largest of these.
    pub value: f64,
}

/// Divides a number of things into at most so many parts of nearly the same size.
fn parts(count: usize, most: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let parts = most.min(count);
    (0..parts).map(move |part| part * count / parts..(part + 1) * count / parts)
}

/// The map of sources: `order` begins with the noisiest node.
pub(crate) fn sources(
    nodes: &[FleetNode],
    order: &[usize],
    noisy: usize,
    typical: &[f64],
    names: &Interned<(CulpritKind, String)>,
) -> SourceMap {
    let known = |at: &&usize| nodes[**at].sources.is_some();
    let order: Vec<usize> = order.iter().filter(known).copied().collect();
    let single = match order.len() {
        ..=COLUMNS => order.len(),
        _ => noisy.clamp(COLUMNS / 2, COLUMNS),
    };
    let rest = order.len() - single;
    let columns = (0..single).map(|at| at..at + 1);
    let columns = columns
        .chain(parts(rest, REST).map(|part| part.start + single..part.end + single));
    let columns: Vec<(&[usize], Vec<f64>)> = columns
        .map(|range| (&order[range.clone()], shares(nodes, &order[range], typical.len())))
        .collect();
    let most =
        |id: usize| columns.iter().map(|(_, shares)| shares[id]).fold(0.0, f64::max);
    let mut rows: Vec<(usize, f64)> =
        (0..typical.len()).map(|id| (id, most(id))).collect();
    let name = |id: usize| names.get(u32::try_from(id).ok()?);
    rows.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| name(a.0).cmp(&name(b.0))));
    let others = rows.split_off(SOURCES.min(rows.len()));
    let source = |id: usize| {
        let (kind, name) = name(id)?.clone();
        Some(MapSource { kind: Some(kind), name })
    };
    let mut sources: Vec<MapSource> =
        rows.iter().filter_map(|(id, _)| source(*id)).collect();
    if !others.is_empty() {
        sources.push(MapSource { kind: None, name: "all others".to_owned() });
    }
    let column = |(members, shares): (&[usize], Vec<f64>)| {
        let mut ppm: Vec<Ppm> =
            rows.iter().map(|(id, _)| Ppm::new(shares[*id])).collect();
        let rest = others.iter().map(|(id, _)| shares[*id]).sum();
        ppm.extend((!others.is_empty()).then(|| Ppm::new(rest)));
        let node = members.first().map_or_else(String::new, |at| nodes[*at].name.clone());
        MapColumn { node, nodes: members.len(), ppm }
    };
    SourceMap { columns: columns.into_iter().map(column).collect(), sources }
}

/// The median share of each source in these nodes.
fn shares(nodes: &[FleetNode], members: &[usize], sources: usize) -> Vec<f64> {
    let mut shares: Vec<Vec<f64>> = vec![Vec::new(); sources];
    for (id, ppm) in members.iter().flat_map(|at| nodes[*at].sources.iter().flatten()) {
        shares[*id as usize].push(*ppm);
    }
    let median = |mut shares: Vec<f64>| {
        if 2 * shares.len() < members.len() {
            return 0.0;
        }
        shares.resize(members.len(), 0.0);
        nodes::median(&shares)
    };
    shares.into_iter().map(median).collect()
}

/// The map of nodes.
pub(crate) fn nodes(facts: &NodeFacts, nodes: &[FleetNode], values: &[f64]) -> NodeMap {
    let (label, rows) = match by_label(facts, nodes.len()) {
        Some((label, rows)) => (Some(label), rows),
        None => (None, by_name(nodes)),
    };
    let row = |(name, mut members): NamedNodes| {
        members.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
        let own: Vec<f64> = members.iter().map(|at| values[*at]).collect();
        let cell = |range: std::ops::Range<usize>| MapCell {
            node: nodes[members[range.start]].name.clone(),
            nodes: range.len(),
            value: own[range.start],
        };
        MapRow {
            name,
            nodes: members.len(),
            median: nodes::median(&own),
            cells: parts(members.len(), WIDTH).map(cell).collect(),
        }
    };
    let mut rows: Vec<MapRow> = rows.into_iter().map(row).collect();
    rows.sort_by(|a, b| b.median.total_cmp(&a.median));
    let left_out = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    NodeMap { label, rows, left_out }
}

/// A name of a row, and its nodes.
type NamedNodes = (String, Vec<usize>);

/// The rows of the first label that has several values for several nodes each.
fn by_label(facts: &NodeFacts, nodes: usize) -> Option<(String, Vec<NamedNodes>)> {
    let mut keys: Vec<(&str, Vec<NamedNodes>)> = Vec::new();
    for (at, labels) in facts.labels.iter().enumerate() {
        for id in labels {
            let value = facts.value(*id).as_str().unwrap_or_default().to_owned();
            let key = facts.key(*id);
            let place =
                keys.iter().position(|(own, _)| *own == key).unwrap_or(keys.len());
            if place == keys.len() {
                keys.push((key, Vec::new()));
            }
            let rows = &mut keys[place].1;
            match rows.iter_mut().find(|(own, _)| *own == value) {
                Some((_, members)) => members.push(at),
                None => rows.push((value, vec![at])),
            }
        }
    }
    let is_useful = |rows: &[NamedNodes]| {
        let members: usize = rows.iter().map(|(_, members)| members.len()).sum();
        rows.len() > 1 && 2 * rows.len() <= members && 2 * members > nodes
    };
    let found = keys.into_iter().find(|(_, rows)| is_useful(rows));
    found.map(|(key, rows)| (key.trim_start_matches(LABEL).to_owned(), rows))
}

/// Neighbours by name.
fn by_name(nodes: &[FleetNode]) -> Vec<NamedNodes> {
    let rows = nodes.len().div_ceil(WIDTH).clamp(1, ROWS);
    let row = |range: std::ops::Range<usize>| {
        (nodes[range.start].name.clone(), range.collect())
    };
    parts(nodes.len(), rows).map(row).collect()
}
