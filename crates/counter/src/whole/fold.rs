//! A phase's tree as a list that is short enough to be stored: nodes of the same functions
//! are merged, and the smallest are counted as their callers. The sum stays the same.

use std::collections::BTreeMap;

use crate::symbols::{Function, UNKNOWN};

/// Number of functions in the list, without the outermost ones, which are always included.
const CALLED_MAX: usize = 2000;

/// A node of the call tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) usize);

/// A function in its call path.
#[derive(Debug)]
pub(crate) struct Node {
    /// None: the unknown callers of a thread.
    pub(crate) function: Option<Function>,
    pub(crate) parent: Place,
    pub(crate) children: Vec<Place>,
}

/// One function in its call path, and the instructions it executed itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Called {
    pub(crate) function: Function,
    /// The caller's index in the list, before this one; none for the outermost.
    pub(crate) caller: Option<usize>,
    pub(crate) own: u64,
}

#[derive(Debug, Default)]
struct Merged {
    own: u64,
    total: u64,
    below: BTreeMap<Function, Merged>,
}

/// The instructions executed at each node of a tree.
pub(crate) fn folded(nodes: &[Node], own: &[u64]) -> Vec<Called> {
    let mut all = merged(nodes, own);
    // Instructions outside of all functions belong to an unknown function.
    let unknown = std::mem::take(&mut all.own);
    if unknown > 0 {
        all.below.entry(UNKNOWN).or_default().own += unknown;
    }
    sum(&mut all);
    let mut totals = Vec::new();
    all.below.values().for_each(|outermost| collect(outermost, &mut totals));
    totals.sort_unstable_by(|a, b| b.cmp(a));
    let least = totals.get(CALLED_MAX).copied().unwrap_or(0);
    let mut list = Vec::new();
    for (&function, outermost) in all.below.iter().filter(|(_, one)| one.total > 0) {
        write(function, outermost, None, least, &mut list);
    }
    list
}

fn merged(nodes: &[Node], own: &[u64]) -> Merged {
    let mut all = Merged::default();
    for (place, &own) in own.iter().enumerate().filter(|(_, own)| **own > 0) {
        let mut path = Vec::new();
        let mut at = place;
        while at != 0 {
            path.extend(nodes[at].function);
            at = nodes[at].parent.0;
        }
        let mut node = &mut all;
        for function in path.into_iter().rev() {
            node = node.below.entry(function).or_default();
        }
        node.own += own;
    }
    all
}

fn sum(node: &mut Merged) -> u64 {
    node.total = node.own + node.below.values_mut().map(sum).sum::<u64>();
    node.total
}

fn collect(node: &Merged, totals: &mut Vec<u64>) {
    for below in node.below.values() {
        totals.push(below.total);
        collect(below, totals);
    }
}

/// Writes a function and its callees with more instructions than `least`.
fn write(
    function: Function,
    node: &Merged,
    caller: Option<usize>,
    least: u64,
    list: &mut Vec<Called>,
) {
    let place = list.len();
    let (kept, small): (Vec<_>, Vec<_>) =
        node.below.iter().partition(|(_, below)| below.total > least);
    let small = small.iter().map(|(_, below)| below.total).sum::<u64>();
    list.push(Called { function, caller, own: node.own + small });
    for (&function, below) in kept {
        write(function, below, Some(place), least, list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(function: usize, parent: usize) -> Node {
        let function = (function > 0).then_some(Function(function));
        Node { function, parent: Place(parent), children: Vec::new() }
    }

    /// Check that equal paths are merged, that unknown callers are left out, and that
    /// instructions outside of all functions are unknown.
    #[test]
    fn merges() {
        let nodes = [node(0, 0), node(9, 0), node(0, 0), node(9, 2), node(5, 3)];
        let called =
            |function, caller, own| Called { function: Function(function), caller, own };
        let expected =
            [called(UNKNOWN.0, None, 3), called(9, None, 11), called(5, Some(1), 4)];
        assert_eq!(folded(&nodes, &[3, 5, 0, 6, 4]), expected);
    }

    /// Check that in a long list the smallest are added to their callers, without loss.
    #[test]
    fn stays_short() {
        let many = 3 * CALLED_MAX;
        let nodes: Vec<Node> = [node(0, 0), node(2, 0)]
            .into_iter()
            .chain((0..many).map(|i| node(i + 3, 1)))
            .collect();
        let own: Vec<u64> = (0..nodes.len() as u64).collect();
        let list = folded(&nodes, &own);
        assert_eq!(list.iter().map(|one| one.own).sum::<u64>(), own.iter().sum::<u64>());
        assert!(list.len() <= CALLED_MAX + 2 && list.len() > CALLED_MAX / 2);
    }
}
