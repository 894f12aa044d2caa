//! Stacks as nested frames: the data of a flame graph.
//!
//! A frame is a function with its callers; its width is the number of instructions in it and in the
//! functions it called. Equal calls of one caller are one frame, and the callees of one caller are
//! sorted by name, so that a picture does not depend on the order of the stacks.

use std::collections::{BTreeMap, BTreeSet};

use units::{Instructions, Ppm};

use crate::explain::call_stack::{CallStack, based, share};
use crate::explain::explanation::{Explanation, FunctionCost};
use crate::explain::renames::Renames;

/// One frame of a flame graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The function; if it was renamed, its name on the second side.
    pub name: String,
    /// Its name on the first side, if that is another one; only in a comparison.
    pub renamed_from: Option<String>,
    /// The number of its callers: 0 for the root frame, which contains all others.
    pub depth: usize,
    /// Its left edge, in instructions.
    pub start: Instructions,
    /// Its width: its instructions, and those of all functions that it called there.
    pub total: Instructions,
    /// Instructions of the function itself.
    pub own: Instructions,
    /// The difference of the function from the first side; only in a comparison.
    pub change: Option<Change>,
}

/// How many more instructions a function has than on the first side, with all its callers; negative
/// if fewer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// Of the function itself.
    pub own: i128,
    /// Including the functions it called.
    pub total: i128,
}

/// A flame graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlameGraph {
    frames: Vec<Frame>,
    before: Explanation,
}

impl FlameGraph {
    /// The graph of stacks.
    pub fn of(stacks: &[CallStack<'_>]) -> Self {
        let mut root = Node::default();
        stacks.iter().for_each(|stack| root.add(stack));
        Self { frames: root.frames(), before: Explanation::of(&[]) }
    }

    /// The graph of the second side, each frame with the difference of its function from the first
    /// side. Functions are compared, not stacks: with one new or renamed caller, all stacks through
    /// it are new, and everything in them would look new. Functions of the first side only are not in
    /// the graph, but see [`Self::removed`]. Names are those in the source, and a renamed function is
    /// one function, as in [`crate::Difference`].
    pub fn compared(before: &[CallStack<'_>], after: &[CallStack<'_>]) -> Self {
        let [before, after] = [before, after].map(based);
        let renames = Renames::of(&before, &after);
        let old_names = renames.old_names();
        let mut graph = Self::of(&after);
        graph.before = Explanation::of(&renames.rename(&before));
        let (costs_before, after) = (graph.before.costs(), Explanation::of(&after));
        let costs_after = after.costs();
        for frame in graph.frames.iter_mut().skip(1) {
            let before = costs_before.get(frame.name.as_str());
            let after = costs_after.get(frame.name.as_str());
            frame.change = Some(change(before.copied(), after.copied()));
            let old_name = old_names.get(frame.name.as_str());
            frame.renamed_from = old_name.map(|&name| name.to_owned());
        }
        let total = after.total_instructions.more_than(graph.before.total_instructions);
        if let Some(root) = graph.frames.first_mut() {
            root.change = Some(Change { own: 0, total });
        }
        graph
    }

    /// The frames, each after its caller; the first one is the root.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// All instructions.
    pub fn total(&self) -> Instructions {
        self.frames.first().map_or(Instructions::ZERO, |all| all.total)
    }

    /// All instructions of the first side.
    pub fn total_before(&self) -> Instructions {
        self.before.total_instructions
    }

    /// The instructions of the first side in functions without a frame here.
    pub fn removed(&self) -> Instructions {
        let frames = self.frames.iter().skip(1);
        let names: BTreeSet<&str> = frames.map(|frame| frame.name.as_str()).collect();
        let functions = self.before.functions.iter();
        let removed = functions.filter(|cost| !names.contains(cost.name.as_str()));
        removed.map(|cost| cost.own_instructions).sum()
    }

    /// A frame's share of all instructions.
    pub fn share(&self, frame: &Frame) -> Option<Ppm> {
        share(frame.total, self.total())
    }
}

/// The change from the first side to the second; a missing function has no instructions.
fn change(before: Option<&FunctionCost>, after: Option<&FunctionCost>) -> Change {
    let more = |part: fn(&FunctionCost) -> Instructions| {
        let [before, after] =
            [before, after].map(|cost| cost.map_or(Instructions::ZERO, part));
        after.more_than(before)
    };
    Change {
        own: more(|cost| cost.own_instructions),
        total: more(|cost| cost.total_instructions.unwrap_or(cost.own_instructions)),
    }
}

#[derive(Debug, Default)]
struct Node<'a> {
    own: Instructions,
    total: Instructions,
    called: BTreeMap<&'a str, Node<'a>>,
}

impl<'a> Node<'a> {
    fn add(&mut self, stack: &CallStack<'a>) {
        let own = stack.own();
        let mut node = self;
        node.total = node.total + own;
        for &name in stack.frames() {
            node = node.called.entry(name).or_default();
            node.total = node.total + own;
        }
        node.own = node.own + own;
    }

    fn frames(&self) -> Vec<Frame> {
        let mut frames = Vec::new();
        // A list of pending nodes instead of recursion: stacks can be deep.
        let mut left = vec![("all", 0, Instructions::ZERO, self)];
        while let Some((name, depth, start, node)) = left.pop() {
            let mut next = start;
            let mut called = Vec::new();
            for (name, node) in &node.called {
                if node.total > Instructions::ZERO {
                    called.push((*name, depth + 1, next, node));
                    next = next + node.total;
                }
            }
            left.extend(called.into_iter().rev());
            let (total, own) = (node.total, node.own);
            let name = name.to_owned();
            let (renamed_from, change) = (None, None);
            frames.push(Frame { name, renamed_from, depth, start, total, own, change });
        }
        frames
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::explain::example::{any_stacks, stacks};

    fn places(frames: &[Frame]) -> Vec<(&str, usize, u64, u64)> {
        let place = |f: &Frame| (f.depth, f.start.get(), f.total.get());
        let with_name = |f| {
            let (depth, start, total) = place(f);
            (f.name.as_str(), depth, start, total)
        };
        frames.iter().map(with_name).collect()
    }

    /// Check frames by hand: callees are sorted by name, each beside the one before.
    #[test]
    fn by_hand() {
        let found =
            FlameGraph::of(&stacks(&["b;z 3", "a 1", "b 2", "b;y 4", "b;z 5", "c 0"]));
        let expected = [
            ("all", 0, 0, 15),
            ("a", 1, 0, 1),
            ("b", 1, 1, 14),
            ("y", 2, 1, 4),
            ("z", 2, 5, 8),
        ];
        assert_eq!(places(found.frames()), expected);
    }

    /// Check that a comparison has the second side's widths, and that functions are compared
    /// regardless of their callers.
    #[test]
    fn compared() {
        let before = stacks(&["a;old;b.isra.0 5", "a;gone 7"]);
        let found = FlameGraph::compared(&before, &stacks(&["a;b 6", "a;new;b.cold 3"]));
        let expected = [
            ("all", 0, 0, 9),
            ("a", 1, 0, 9),
            ("b", 2, 0, 6),
            ("new", 2, 6, 3),
            ("b", 3, 6, 3),
        ];
        assert_eq!(places(found.frames()), expected);
        let change =
            |frame: &Frame| frame.change.map(|change| (change.own, change.total));
        let changes: Vec<_> = found.frames().iter().filter_map(change).collect();
        assert_eq!(changes, [(0, -3), (0, -3), (4, 4), (0, 3), (4, 4)]);
        assert_eq!(found.removed(), Instructions::new(7));
        assert_eq!(found.share(&found.frames()[0]), Some(Ppm::new(1e6)));
    }

    proptest! {
        /// Check that the functions' own changes minus the removed functions add up to the whole.
        #[test]
        fn changes_add_up(a in any_stacks(), b in any_stacks()) {
            let found = FlameGraph::compared(&a, &b);
            let functions: BTreeMap<&str, i128> = found.frames()[1..]
                .iter()
                .map(|frame| (frame.name.as_str(), frame.change.unwrap().own))
                .collect();
            let whole = found.total().more_than(found.total_before());
            let sum: i128 = functions.values().sum();
            prop_assert_eq!(sum - i128::from(found.removed().get()), whole);
            prop_assert_eq!(found.frames()[0].change.unwrap().total, whole);
        }

        /// Check that every frame lies within its caller's and beside those of the same caller, and
        /// that own instructions add up to the total.
        #[test]
        fn nested(stacks in any_stacks()) {
            let graph = FlameGraph::of(&stacks);
            let found = graph.frames();
            let whole: Instructions = stacks.iter().map(CallStack::own).sum();
            prop_assert_eq!(found[0].total, whole);
            prop_assert_eq!(found.iter().map(|f| f.own).sum::<Instructions>(), whole);
            let mut open: Vec<(Instructions, Instructions)> = Vec::new();
            for frame in found {
                open.truncate(frame.depth);
                prop_assert_eq!(open.len(), frame.depth);
                let end = frame.start + frame.total;
                if let Some((free, end_of_caller)) = open.last_mut() {
                    prop_assert!(frame.start >= *free && end <= *end_of_caller);
                    *free = end;
                }
                open.push((frame.start, end));
            }
        }
    }
}
