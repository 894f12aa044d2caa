//! The facts of nodes: each pair of a key and a value is stored once, and nodes have numbers of pairs.

use serde_json::Value;

use crate::fleet::doubts::FleetDoubt;
use crate::fleet::fact::FleetFact;
use crate::fleet::interned::Interned;
use crate::fleet::labels::FleetLabels;
use crate::fleet::nodes::FleetNode;

/// The prefix of keys of labels.
pub(crate) const LABEL: &str = "label.";
/// The facts of all nodes.
#[derive(Debug, Default)]
pub(crate) struct NodeFacts {
    keys: Interned<String>,
    /// Key and text of each pair.
    pairs: Interned<(u32, String)>,
    parts: Vec<bool>,
    /// The labels of each node, by its place.
    pub(crate) labels: Vec<Vec<u32>>,
}

impl NodeFacts {
    /// Stores facts; their numbers in rising order.
    pub(crate) fn add(&mut self, facts: Vec<FleetFact>) -> Vec<u32> {
        let mut ids: Vec<u32> = facts.into_iter().map(|fact| self.pair(fact)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn pair(&mut self, fact: FleetFact) -> u32 {
        let key = self.keys.id(fact.key);
        let id = self.pairs.id((key, fact.value.to_string()));
        if id as usize == self.parts.len() {
            self.parts.push(fact.is_part);
        }
        id
    }

    /// Adds the labels of nodes.
    pub(crate) fn label(
        &mut self,
        nodes: &[FleetNode],
        labels: &FleetLabels,
        doubts: &mut Vec<FleetDoubt>,
    ) {
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let all = labels.of_nodes(&names, doubts);
        let own = |labels: Vec<(String, String)>| {
            let fact = |(name, value): (String, String)| FleetFact {
                key: format!("{LABEL}{name}"),
                value: Value::from(value),
                is_part: false,
            };
            labels.into_iter().map(fact).collect::<Vec<_>>()
        };
        self.labels = all.into_iter().map(|labels| self.add(own(labels))).collect();
    }

    /// The number of pairs.
    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// The key of a pair.
    pub(crate) fn key(&self, id: u32) -> &str {
        let key = self.pairs.get(id).and_then(|(key, _)| self.keys.get(*key));
        key.map_or("", String::as_str)
    }

    /// Its value as text, by which pairs are put in order.
    pub(crate) fn text(&self, id: u32) -> &str {
        self.pairs.get(id).map_or("", |(_, text)| text)
    }

    /// Its value.
    pub(crate) fn value(&self, id: u32) -> Value {
        serde_json::from_str(self.text(id)).unwrap_or(Value::Null)
    }

    /// Whether it is a word of a list.
    pub(crate) fn is_part(&self, id: u32) -> bool {
        self.parts.get(id as usize).copied().unwrap_or(false)
    }

    /// The pair.
    pub(crate) fn fact(&self, id: u32) -> FleetFact {
        FleetFact {
            key: self.key(id).to_owned(),
            value: self.value(id),
            is_part: self.is_part(id),
        }
    }

    /// All pairs of a node: labels, then facts.
    pub(crate) fn of<'a>(
        &'a self,
        node: &'a FleetNode,
        at: usize,
    ) -> impl Iterator<Item = u32> + 'a {
        let labels = self.labels.get(at).map_or(&[][..], Vec::as_slice);
        labels.iter().chain(&node.facts).copied()
    }
}
