//! Facts and labels that differ within a fleet, and whether they go with noise.
//!
//! Each value that some nodes have and others have not divides the fleet; facts that divide it in the same way are
//! one group. A group is tested twice with Fisher's exact test: whether more of its nodes are noisy, and whether
//! more of them are above the median of the fleet (which also finds what makes half of a fleet noisier). Of all
//! tests, the probability that any of the reported groups is chance is 5 % at most (Holm).
//!
//! Cannot see which of the facts of a group is the cause, nor a cause that is no fact.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::Value;
use stats::{adjusted_for_any, together_by_chance};

use crate::fleet::fact::FleetFact;
use crate::fleet::facts::{LABEL, NodeFacts};
use crate::fleet::nodes::{self, FleetNode};

/// The probability that a group is reported by chance.
pub(crate) const FALSE_GROUPS: f64 = 0.05;
/// A fact with more values than this, and than a part of the nodes, is different on each node: a serial number.
const VALUES_MAX: usize = 8;
const NODES_PER_VALUE: usize = 5;
/// The most rare facts of a node, values of a fact, and named nodes of a value.
const RARE: usize = 12;
const VALUES: usize = 12;
const NAMES: usize = 8;

/// Facts that the same nodes have, and that go with noise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetGroup {
    /// The facts and labels.
    pub facts: Vec<FleetFact>,
    /// The number of nodes that have them.
    pub nodes: usize,
    /// The number of noisy ones among them.
    pub noisy: usize,
    /// The median of these nodes.
    pub median: f64,
    /// The median of the others.
    pub others: f64,
    /// The probability that so many of them are noisy, or above the median, by chance: the smaller one, adjusted for
    /// all tests.
    pub p_value: f64,
    /// Whether that is the one about noisy nodes.
    pub by_noisy: bool,
    #[serde(skip)]
    pub(crate) members: Vec<u32>,
    #[serde(skip)]
    pub(crate) ids: Vec<u32>,
}

/// A fact that does not have one value on all nodes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DifferingFact {
    /// Its key.
    pub key: String,
    /// The number of its values, or of the words of its lists that not all nodes have.
    pub count: usize,
    /// Whether so many nodes have a value of their own that it was not tested.
    pub is_individual: bool,
    /// The values, the most frequent first; of individual ones none.
    pub values: Vec<FactNodes>,
}

/// A value, and the nodes that have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactNodes {
    /// The value, or a word of a list.
    pub value: Value,
    /// The number of nodes.
    pub nodes: usize,
    /// The first of them.
    pub names: Vec<String>,
}

/// A fact that few nodes have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RareFact {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// The number of nodes that have it.
    pub nodes: usize,
}

/// Nodes, and the facts that these and no others have.
type Cell = (Vec<u32>, Vec<u32>);

/// What differs within a fleet.
pub(crate) struct Found {
    pub(crate) groups: Vec<FleetGroup>,
    pub(crate) tested: usize,
    pub(crate) differing: Vec<DifferingFact>,
    /// The number of nodes that have each value which was tested.
    counts: HashMap<u32, usize>,
    nodes: usize,
}

impl Found {
    /// The places of the groups of a node.
    pub(crate) fn groups_of(&self, at: usize) -> Vec<usize> {
        let groups = self.groups.iter().enumerate();
        let has = |members: &[u32]| {
            u32::try_from(at).is_ok_and(|at| members.binary_search(&at).is_ok())
        };
        groups.filter(|(_, group)| has(&group.members)).map(|(place, _)| place).collect()
    }

    /// The values of a node that most others do not have, the rarest first, without those of groups.
    pub(crate) fn rare(
        &self,
        facts: &NodeFacts,
        node: &FleetNode,
        at: usize,
    ) -> Vec<RareFact> {
        let is_in_group =
            |id: u32| self.groups.iter().any(|group| group.ids.contains(&id));
        let mut rare: Vec<(usize, u32)> = facts
            .of(node, at)
            .filter_map(|id| Some((*self.counts.get(&id)?, id)))
            .filter(|(count, id)| 2 * count < self.nodes && !is_in_group(*id))
            .collect();
        rare.sort_by(|a, b| (a.0, order(facts, a.1)).cmp(&(b.0, order(facts, b.1))));
        let fact = |(nodes, id): (usize, u32)| RareFact {
            key: facts.key(id).to_owned(),
            value: facts.value(id),
            nodes,
        };
        rare.into_iter().take(RARE).map(fact).collect()
    }
}

/// Labels first, then by key and value.
fn order(facts: &NodeFacts, id: u32) -> (bool, &str, &str) {
    let key = facts.key(id);
    (!key.starts_with(LABEL), key, facts.text(id))
}

/// What differs, and what goes with noise.
pub(crate) fn found(facts: &NodeFacts, nodes: &[FleetNode], noisy: &[bool]) -> Found {
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); facts.len()];
    for (at, node) in (0..).zip(nodes) {
        for id in facts.of(node, at as usize) {
            members[id as usize].push(at);
        }
    }
    let mut keys: BTreeMap<(bool, &str), Vec<u32>> = BTreeMap::new();
    for (id, own) in (0..).zip(&members) {
        let (is_fact, key, _) = order(facts, id);
        let is_everywhere = own.len() == nodes.len() && facts.is_part(id);
        if !own.is_empty() && !is_everywhere {
            keys.entry((is_fact, key)).or_default().push(id);
        }
    }
    let mut differing = Vec::new();
    let (mut tested, mut counts) = (Vec::new(), HashMap::new());
    for ((_, key), mut ids) in keys {
        // A value that is merely unknown elsewhere is no difference.
        let differs = ids.len() > 1 || ids.iter().any(|id| facts.is_part(*id));
        if !differs {
            continue;
        }
        ids.sort_by(|a, b| {
            let by_count = members[*b as usize].len().cmp(&members[*a as usize].len());
            by_count.then_with(|| facts.text(*a).cmp(facts.text(*b)))
        });
        let is_individual = ids.len() > VALUES_MAX.max(nodes.len() / NODES_PER_VALUE);
        differing.push(differing_fact(facts, nodes, key, &ids, &members, is_individual));
        if !is_individual {
            counts.extend(ids.iter().map(|id| (*id, members[*id as usize].len())));
            tested.extend(ids);
        }
    }
    let cells = cells(&tested, &members, nodes.len());
    let count = cells.len();
    let groups = groups(facts, cells, nodes, noisy);
    Found { groups, tested: count, differing, counts, nodes: nodes.len() }
}

fn differing_fact(
    facts: &NodeFacts,
    nodes: &[FleetNode],
    key: &str,
    ids: &[u32],
    members: &[Vec<u32>],
    is_individual: bool,
) -> DifferingFact {
    let value = |id: &u32| {
        let own = &members[*id as usize];
        let names = own.iter().take(NAMES).map(|at| nodes[*at as usize].name.clone());
        FactNodes { value: facts.value(*id), nodes: own.len(), names: names.collect() }
    };
    let shown = if is_individual { 0 } else { VALUES };
    DifferingFact {
        key: key.to_owned(),
        count: ids.len(),
        is_individual,
        values: ids.iter().take(shown).map(value).collect(),
    }
}

/// The nodes of each way in which facts divide the fleet, with these facts.
fn cells(tested: &[u32], members: &[Vec<u32>], nodes: usize) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut places: HashMap<&[u32], usize> = HashMap::new();
    for id in tested {
        let own = &members[*id as usize];
        if own.len() == nodes {
            continue;
        }
        let place = *places.entry(own).or_insert_with(|| {
            cells.push((own.clone(), Vec::new()));
            cells.len() - 1
        });
        cells[place].1.push(*id);
    }
    cells
}

/// The groups that go with noise, the most certain first.
fn groups(
    facts: &NodeFacts,
    cells: Vec<Cell>,
    nodes: &[FleetNode],
    noisy: &[bool],
) -> Vec<FleetGroup> {
    let values: Vec<f64> = nodes.iter().map(|node| node.value.value).collect();
    let median = nodes::median(&values);
    let above: Vec<bool> = values.iter().map(|value| *value > median).collect();
    let p_value = |members: &[u32], is: &[bool]| {
        let all = is.iter().filter(|is| **is).count();
        let both = count(members, is);
        let [nodes, all, members, both] =
            [is.len(), all, members.len(), both].map(|count| count as u64);
        together_by_chance(nodes, all, members, both)
    };
    let tests = cells
        .iter()
        .flat_map(|(members, _)| [p_value(members, noisy), p_value(members, &above)]);
    let tests = adjusted_for_any(&tests.collect::<Vec<f64>>());
    let mut found = Vec::new();
    for ((members, ids), tests) in cells.into_iter().zip(tests.chunks_exact(2)) {
        let p = tests[0].min(tests[1]);
        if p > FALSE_GROUPS {
            continue;
        }
        let mut is_member = vec![false; nodes.len()];
        members.iter().for_each(|at| is_member[*at as usize] = true);
        let of = |own: bool| {
            let values = values.iter().zip(&is_member).filter(|(_, is)| **is == own);
            nodes::median(&values.map(|(value, _)| *value).collect::<Vec<f64>>())
        };
        found.push(FleetGroup {
            facts: ids.iter().map(|id| facts.fact(*id)).collect(),
            nodes: members.len(),
            noisy: count(&members, noisy),
            median: of(true),
            others: of(false),
            p_value: p,
            by_noisy: tests[0] <= tests[1],
            members,
            ids,
        });
    }
    found.sort_by(|a, b| a.p_value.total_cmp(&b.p_value));
    found
}

fn count(members: &[u32], is: &[bool]) -> usize {
    members.iter().filter(|at| is[**at as usize]).count()
}
