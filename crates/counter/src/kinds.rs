//! Kinds of episodes: two episodes are of one kind if they executed the same number of
//! instructions in the same functions, called in the same way. So all of a kind cost the same,
//! and its cost depends on the path only, never on how often that path was taken.
//!
//! Two paths through one function with the same length are not distinguished.

use std::collections::{BTreeMap, BTreeSet};

use crate::episode::What;
use crate::tree::{Shape, Tree};

/// Number of stored kinds; episodes of further kinds are counted in the phase's values only.
const KINDS_MAX: usize = 4096;
/// Number of most frequent kinds of a phase that are always reported.
const OF_PHASE: usize = 3;
/// Number of most frequent kinds of all phases that are reported.
const OF_ALL: usize = 8;
/// The same for kinds with more than one episode.
const REPEATED: usize = 48;

/// One kind of episode.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) cpu: usize,
    pub(crate) what: What,
    /// The cost of each episode.
    pub(crate) total: u64,
    pub(crate) tree: Tree,
    /// Its number of episodes, by phase.
    pub(crate) times: BTreeMap<usize, u64>,
}

impl Kind {
    fn times_in_all(&self) -> u64 {
        self.times.values().sum()
    }
}

/// All kinds so far.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    kinds: Vec<Kind>,
    places: BTreeMap<(usize, What, Shape), usize>,
}

impl Kinds {
    /// Adds one episode of a phase.
    pub(crate) fn add(&mut self, phase: usize, cpu: usize, what: What, tree: Tree) {
        let key = (cpu, what, tree.shape());
        let place = match self.places.get(&key) {
            Some(&place) => place,
            None if self.kinds.len() == KINDS_MAX => return,
            None => {
                let place = self.kinds.len();
                let (total, times) = (tree.total(), BTreeMap::new());
                self.kinds.push(Kind { cpu, what, total, tree, times });
                self.places.insert(key, place);
                place
            }
        };
        *self.kinds[place].times.entry(phase).or_default() += 1;
    }

    /// The reported kinds, in the order of their first episodes.
    pub(crate) fn usual(&self) -> Vec<&Kind> {
        let mut groups: BTreeMap<(usize, What), Vec<usize>> = BTreeMap::new();
        for (place, kind) in self.kinds.iter().enumerate() {
            groups.entry((kind.cpu, kind.what)).or_default().push(place);
        }
        let mut usual: Vec<usize> =
            groups.into_values().flat_map(|group| self.usual_of(group)).collect();
        usual.sort_unstable();
        usual.dedup();
        usual.into_iter().map(|place| &self.kinds[place]).collect()
    }

    /// Those of one group.
    fn usual_of(&self, mut group: Vec<usize>) -> Vec<usize> {
        let kind = |place: usize| &self.kinds[place];
        let rank =
            |place: usize, times: u64| (u64::MAX - times, kind(place).total, place);
        let mut usual = Vec::new();
        let phases: BTreeSet<usize> =
            group.iter().flat_map(|&place| kind(place).times.keys().copied()).collect();
        for phase in phases {
            let times = |place: usize| kind(place).times.get(&phase).copied();
            let mut seen: Vec<usize> =
                group.iter().copied().filter(|&place| times(place).is_some()).collect();
            seen.sort_by_key(|&place| rank(place, times(place).unwrap_or(0)));
            usual.extend(seen.iter().copied().take(OF_PHASE));
            usual.extend(self.median(seen, phase));
        }
        group.sort_by_key(|&place| rank(place, kind(place).times_in_all()));
        let is_usual = |&(index, place): &(usize, usize)| {
            index < OF_ALL || (index < REPEATED && kind(place).times_in_all() > 1)
        };
        usual.extend(
            group.into_iter().enumerate().filter(is_usual).map(|(_, place)| place),
        );
        usual
    }
}

impl Kinds {
    /// The kind of step with the median cost of a phase: some steps have a different cost each
    /// time, and only this one is typical.
    fn median(&self, mut seen: Vec<usize>, phase: usize) -> Option<usize> {
        let kind = |place: usize| &self.kinds[place];
        let times = |place: usize| kind(place).times.get(&phase).copied().unwrap_or(0);
        seen.retain(|&place| kind(place).what == What::Step);
        seen.sort_by_key(|&place| (kind(place).total, place));
        let all: u64 = seen.iter().map(|&place| times(place)).sum();
        let mut sum = 0;
        seen.into_iter().find(|&place| {
            sum += times(place);
            sum * 2 >= all
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::Function;

    /// A tree of one function that executed so many instructions.
    fn tree(function: usize, own: u64) -> Tree {
        let mut tree = Tree::new();
        let place = tree.child(Tree::ROOT, Function(function));
        tree.add(place, own);
        tree
    }

    fn totals(kinds: &Kinds) -> Vec<(u64, u64)> {
        kinds.usual().iter().map(|kind| (kind.total, kind.times_in_all())).collect()
    }

    /// Check that equal paths are one kind in all phases, and that paths of equal cost
    /// through different functions are two.
    #[test]
    fn same_path_same_kind() {
        let mut kinds = Kinds::default();
        for (phase, function, own) in [(0, 1, 7), (1, 1, 7), (0, 2, 7), (1, 1, 8)] {
            kinds.add(phase, 0, What::Step, tree(function, own));
        }
        assert_eq!(totals(&kinds), [(7, 2), (7, 1), (8, 1)]);
        assert_eq!(kinds.usual()[0].times, BTreeMap::from([(0, 1), (1, 1)]));
    }

    /// Check that the order of calls within a function does not make another kind.
    #[test]
    fn order_of_children() {
        let both = |first, second| {
            let mut tree = Tree::new();
            for function in [first, second] {
                let place = tree.child(Tree::ROOT, Function(function));
                tree.add(place, function as u64);
            }
            tree
        };
        let mut kinds = Kinds::default();
        kinds.add(0, 0, What::Step, both(3, 4));
        kinds.add(0, 0, What::Step, both(4, 3));
        assert_eq!(totals(&kinds), [(7, 2)]);
    }

    /// Check that of many kinds with one episode a few are reported, and that the most frequent
    /// ones of each phase always are.
    #[test]
    fn usual_kinds() {
        let mut kinds = Kinds::default();
        for own in 1..=100 {
            kinds.add(0, 0, What::Step, tree(1, own));
        }
        kinds.add(1, 0, What::Step, tree(1, 100));
        kinds.add(1, 0, What::Step, tree(1, 99));
        let seen: Vec<u64> = totals(&kinds).iter().map(|(total, _)| *total).collect();
        assert_eq!(seen, [1, 2, 3, 4, 5, 6, 50, 99, 100]);
    }
}
