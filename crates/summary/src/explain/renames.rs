//! Functions that have another name on the second side: `tick_sched_timer` became
//! `tick_nohz_handler` in Linux 6.10, with the same work and the same caller.
//!
//! Pairs are found in the stacks, not in a list of known names. Candidates are functions that ran on
//! one side only, under a caller that is on both sides or paired itself. They are compared by the
//! functions they call and by the words of their names. A pair must be clearly more similar than any
//! other with one of its functions; all others remain functions of one side.
//!
//! Cannot see a function that was split, merged, or moved to another caller.

use std::collections::{BTreeMap, BTreeSet};

use units::Instructions;

use crate::explain::call_stack::CallStack;

/// Similarities are in thousandths.
const SAME: usize = 1000;
/// Functions that share at least this part of their callees are the same,
const CALLS_ALIKE: usize = 500;
/// if that is at least so many functions.
const CALLS_SHARED: usize = 2;
/// Names that share this part of their words are similar.
const NAMES_ALIKE: usize = 600;
/// The part of their callees that functions with such names must share, if both call any.
const CALLS_LEAST: usize = 200;
/// A pair must be so much more similar than any other with one of its functions.
const MARGIN: usize = 150;
/// Words are the same if one is a prefix of the other (`sched`, `scheduler`) of so many letters.
const BEGINNING: usize = 4;

/// One side's functions, by name.
type Side<'a> = BTreeMap<&'a str, Function<'a>>;

#[derive(Debug, Default)]
struct Function<'a> {
    /// `None` if it is outermost.
    callers: BTreeSet<Option<&'a str>>,
    /// All functions that it called, at any depth.
    below: BTreeSet<&'a str>,
    own: Instructions,
}

/// The old names of functions, and their new ones, one to one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Renames<'a> {
    new: BTreeMap<&'a str, &'a str>,
}

impl<'a> Renames<'a> {
    /// Finds the renamed functions of two sides, whose names are those in the source.
    pub(crate) fn of(a: &[CallStack<'a>], b: &[CallStack<'a>]) -> Self {
        let (a, b) = (side(a), side(b));
        let mut found = Self::default();
        // A new pair makes its callees candidates, and its callers more similar.
        loop {
            let pairs = best(&found.candidates(&a, &b));
            if pairs.is_empty() {
                return found;
            }
            found.new.extend(pairs);
        }
    }

    /// The stacks of the first side, with the second side's names.
    pub(crate) fn rename(&self, stacks: &[CallStack<'a>]) -> Vec<CallStack<'a>> {
        let rename = |stack: &CallStack<'a>| {
            let names = stack.frames().iter().map(|name| self.new_name(name)).collect();
            CallStack::new(names, stack.own())
        };
        stacks.iter().map(rename).collect()
    }

    /// The old names of the functions that have new ones, by the new ones.
    pub(crate) fn old_names(&self) -> BTreeMap<&'a str, &'a str> {
        self.new.iter().map(|(old, new)| (*new, *old)).collect()
    }

    fn new_name(&self, name: &'a str) -> &'a str {
        self.new.get(name).copied().unwrap_or(name)
    }

    fn candidates(&self, a: &Side<'a>, b: &Side<'a>) -> Vec<Candidate<'a>> {
        let paired: BTreeSet<&str> = self.new.values().copied().collect();
        let is_old = |name: &&str| !b.contains_key(name) && !self.new.contains_key(name);
        let is_new = |name: &&str| !a.contains_key(name) && !paired.contains(name);
        let news: Vec<_> = b.iter().filter(|(name, _)| is_new(name)).collect();
        let mut candidates = Vec::new();
        for (&old, one) in a.iter().filter(|(name, _)| is_old(name)) {
            let callers: BTreeSet<Option<&str>> = one
                .callers
                .iter()
                .map(|&name| name.map(|name| self.new_name(name)))
                .collect();
            for &(&new, other) in &news {
                if !callers.is_disjoint(&other.callers) {
                    let alike = self.alike((old, one), (new, other));
                    candidates.extend(alike.map(|alike| Candidate { old, new, alike }));
                }
            }
        }
        candidates
    }

    /// The similarity of two functions; `None` if it is not enough to be the same.
    fn alike(
        &self,
        (old, a): (&'a str, &Function<'a>),
        (new, b): (&'a str, &Function<'a>),
    ) -> Option<usize> {
        let below: BTreeSet<&str> =
            a.below.iter().map(|name| self.new_name(name)).collect();
        let shared = below.intersection(&b.below).count();
        let calls = part(shared, below.union(&b.below).count());
        let names = names_alike(old, new);
        let is_leaf = below.is_empty() && b.below.is_empty();
        let by_calls = calls >= CALLS_ALIKE && shared >= CALLS_SHARED;
        let by_name = names == SAME
            && (calls >= CALLS_LEAST || below.is_empty() || b.below.is_empty());
        let by_both = names >= NAMES_ALIKE
            && if is_leaf { are_near(a.own, b.own) } else { calls >= CALLS_LEAST };
        (by_calls || by_name || by_both).then_some(calls + names)
    }
}

/// Two functions that may be the same.
#[derive(Debug)]
struct Candidate<'a> {
    old: &'a str,
    new: &'a str,
    alike: usize,
}

/// The candidates that are clearly better than all others with one of their functions.
fn best<'a>(candidates: &[Candidate<'a>]) -> Vec<(&'a str, &'a str)> {
    let is_best = |one: &&Candidate<'_>| {
        candidates.iter().all(|other| {
            let rivals = (one.old == other.old) != (one.new == other.new);
            !rivals || one.alike >= other.alike + MARGIN
        })
    };
    candidates.iter().filter(is_best).map(|pair| (pair.old, pair.new)).collect()
}

fn side<'a>(stacks: &[CallStack<'a>]) -> Side<'a> {
    let mut side = Side::new();
    for stack in stacks {
        let frames = stack.frames();
        for (depth, &name) in frames.iter().enumerate() {
            let function = side.entry(name).or_default();
            let caller = depth.checked_sub(1).map(|above| frames[above]);
            function.callers.insert(caller);
            function.below.extend(&frames[depth + 1..]);
            if depth + 1 == frames.len() {
                function.own = function.own + stack.own();
            }
        }
    }
    side
}

/// The part of all words that two names share; [`SAME`] if one has every word of the other.
fn names_alike(one: &str, other: &str) -> usize {
    let [one, other] = [one, other].map(words);
    let is_same = |a: &str, b: &str| {
        let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
        a == b || (short.len() >= BEGINNING && long.starts_with(short))
    };
    let mut left = other.clone();
    let mut shared = 0;
    for word in &one {
        if let Some(place) = left.iter().position(|other| is_same(word, other)) {
            left.swap_remove(place);
            shared += 1;
        }
    }
    if shared >= 2 && shared == one.len().min(other.len()) {
        return SAME;
    }
    part(2 * shared, one.len() + other.len())
}

fn words(name: &str) -> Vec<&str> {
    name.split('_').filter(|word| !word.is_empty()).collect()
}

/// Whether one size is at most a quarter more than the other.
fn are_near(one: Instructions, other: Instructions) -> bool {
    let (less, more) = (one.get().min(other.get()), one.get().max(other.get()));
    more - less <= less / 4
}

fn part(shared: usize, of: usize) -> usize {
    (SAME * shared).checked_div(of).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::explain::example::{any_stacks, stacks};

    fn pairs<'a>(a: &[&'a str], b: &[&'a str]) -> Vec<(&'a str, &'a str)> {
        let renames = Renames::of(&stacks(a), &stacks(b));
        renames.new.into_iter().collect()
    }

    /// Check that a function with the same callees under the same caller is paired, and then one of
    /// its callees.
    #[test]
    fn by_calls() {
        let before = [
            "run;tick_sched_timer;get 1",
            "run;tick_sched_timer;jiffies 2",
            "run;tick_sched_timer;scheduler_tick 3",
        ];
        let after = [
            "run;tick_nohz_handler;get 1",
            "run;tick_nohz_handler;jiffies 2",
            "run;tick_nohz_handler;sched_tick 4",
        ];
        let expected =
            [("scheduler_tick", "sched_tick"), ("tick_sched_timer", "tick_nohz_handler")];
        assert_eq!(pairs(&before, &after), expected);
    }

    /// Check that names alone pair only under the same caller, and only if the name is not on both
    /// sides.
    #[test]
    fn by_name() {
        let before = ["wall;timekeeping_advance 9"];
        let pair = [("timekeeping_advance", "__timekeeping_advance")];
        assert_eq!(pairs(&before, &["wall;__timekeeping_advance 99"]), pair);
        assert_eq!(pairs(&before, &["other;__timekeeping_advance 9"]), []);
        let both = ["wall;timekeeping_advance;__timekeeping_advance 9"];
        assert_eq!(pairs(&before, &both), []);
        // Half of the words are the same, but one is four times as large.
        assert_eq!(pairs(&["f;rcu_ready_cbs 9"], &["f;rcu_empty_cbs 36"]), []);
        assert_eq!(pairs(&["f;rcu_ready 9"], &["f;timer_fires 9"]), []);
    }

    /// Check that neither of two equally good pairs is chosen.
    #[test]
    fn ambiguous() {
        let before = ["f;load_balance 9"];
        assert_eq!(pairs(&before, &["f;__load_balance 9", "f;do_load_balance 9"]), []);
        let one = [("load_balance", "__load_balance")];
        assert_eq!(pairs(&before, &["f;__load_balance 9", "f;other 9"]), one);
    }

    proptest! {
        /// Check that pairs are one to one, of names that are on one side only and in any order of
        /// the stacks, and that renaming does not change a sum.
        #[test]
        fn one_to_one(a in any_stacks(), b in any_stacks()) {
            let renames = Renames::of(&a, &b);
            prop_assert_eq!(renames.old_names().len(), renames.new.len());
            let (in_a, in_b) = (side(&a), side(&b));
            for (old, new) in &renames.new {
                prop_assert!(in_a.contains_key(old) && !in_b.contains_key(old));
                prop_assert!(in_b.contains_key(new) && !in_a.contains_key(new));
            }
            let [turned_a, turned_b] = [&a, &b].map(|side| side.iter().rev().cloned().collect::<Vec<_>>());
            prop_assert_eq!(&Renames::of(&turned_a, &turned_b), &renames);
            let renamed = renames.rename(&a);
            prop_assert!(a.iter().zip(&renamed).all(|(a, b)| a.own() == b.own()));
            prop_assert_eq!(side(&renamed).len(), in_a.len());
        }
    }
}
