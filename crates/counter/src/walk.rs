//! Follows one CPU from block to block, and so from function to function.
//!
//! A call pushes its return address, a return is matched with the pushed addresses, and
//! any other transfer into another function is a tail call. Returns that match nothing
//! (retpolines, stack switches) are treated as tail calls, too: no instruction is ever
//! lost or counted twice; only its position among the callers is then a guess.

use crate::decode::Ending;
use crate::symbols::Function;
use crate::tree::{Place, Tree};

/// The kernel's stack of 16 KiB does not allow deeper nesting: threads were switched, and their
/// calls are no longer known.
const DEPTH_MAX: usize = 128;

/// The description of a block, made at its translation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    /// The address of its first instruction.
    pub(crate) address: u64,
    /// The address after its last.
    pub(crate) after: u64,
    /// Its function.
    pub(crate) function: Function,
    /// Whether it is the function's first block.
    pub(crate) starts_function: bool,
    /// Whether an interrupt or exception enters the kernel here.
    pub(crate) is_entry: bool,
    /// The type of its last instruction.
    pub(crate) ending: Ending,
}

/// A call that has not returned.
#[derive(Debug, Clone, Copy)]
struct Frame {
    returns_to: u64,
    caller: Place,
}

/// The path of one CPU through the kernel, from one entry on.
#[derive(Debug)]
pub(crate) struct Walk {
    tree: Tree,
    at: Place,
    frames: Vec<Frame>,
    last: Option<Block>,
}

impl Walk {
    /// A walk that begins at an entry into the kernel.
    pub(crate) fn new() -> Self {
        Self { tree: Tree::new(), at: Tree::ROOT, frames: Vec::new(), last: None }
    }

    /// Adds instructions that were executed since the last block began.
    pub(crate) fn add(&mut self, instructions: u64) {
        self.tree.add(self.at, instructions);
    }

    /// Adds the instructions of an interruption of this walk.
    pub(crate) fn add_interruption(&mut self, tree: &Tree) {
        self.tree.add_tree(self.at, tree);
    }

    /// Begins a block.
    pub(crate) fn enter(&mut self, block: Block) {
        let last = self.last.replace(block).filter(|last| !last.is_resumed_at(block));
        match last.map(|last| (last.ending, last.after)) {
            Some((Ending::Call, after)) => self.call(after, block),
            Some((Ending::Return, _)) => self.come_back(block.address),
            _ => {}
        }
        self.settle(block.function);
    }

    /// Ends the walk; returns its tree.
    pub(crate) fn into_tree(self) -> Tree {
        self.tree
    }

    fn call(&mut self, returns_to: u64, block: Block) {
        if self.frames.len() >= DEPTH_MAX {
            self.frames.clear();
            self.at = Tree::ROOT;
        }
        self.frames.push(Frame { returns_to, caller: self.at });
        // A call into the middle of its own function only pushes an address.
        if block.starts_function || self.tree.function(self.at) != Some(block.function) {
            self.at = self.tree.child(self.at, block.function);
        }
    }

    fn come_back(&mut self, to: u64) {
        let is_it = |frame: &Frame| frame.returns_to == to;
        if let Some(depth) = self.frames.iter().rposition(is_it) {
            self.at = self.frames[depth].caller;
            self.frames.truncate(depth);
        }
    }

    /// Moves to the node of the function that is actually executed.
    fn settle(&mut self, function: Function) {
        if self.tree.function(self.at) != Some(function) {
            let caller = self.tree.parent(self.at);
            self.at = self.tree.child(caller, function);
        }
    }
}

impl Block {
    /// Whether this block was left by a fault before its end, and continues there.
    pub(crate) fn is_resumed_at(self, next: Self) -> bool {
        self.address < next.address && next.address < self.after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(function: usize, offset: u64, ending: Ending) -> Block {
        let address = function as u64 * 0x1000 + offset;
        Block {
            address,
            after: address + 0x10,
            function: Function(function),
            starts_function: offset == 0,
            is_entry: false,
            ending,
        }
    }

    /// Walks the blocks, one instruction each, and returns each stack.
    fn stacks(blocks: &[Block]) -> Vec<(Vec<usize>, u64)> {
        let mut walk = Walk::new();
        for &block in blocks {
            walk.enter(block);
            walk.add(1);
        }
        let stacks = walk.into_tree().stacks().into_iter();
        stacks.map(|(path, own)| (path.iter().map(|f| f.0).collect(), own)).collect()
    }

    use Ending::{Call, Other, Return};

    /// Check that calls nest, returns match, and a second call is added to the first.
    #[test]
    fn calls_and_returns() {
        let found = stacks(&[
            block(1, 0, Call),
            block(2, 0, Return),
            block(1, 0x10, Call),
            block(2, 0, Return),
            block(1, 0x20, Other),
        ]);
        assert_eq!(found, [(vec![1], 3), (vec![1, 2], 2)]);
    }

    /// Check that a tail call replaces its caller, and returns to its caller's caller.
    #[test]
    fn tail_calls() {
        let found = stacks(&[
            block(1, 0, Call),
            block(2, 0, Other),
            block(3, 0, Return),
            block(1, 0x10, Other),
        ]);
        assert_eq!(found, [(vec![1], 2), (vec![1, 2], 1), (vec![1, 3], 1)]);
    }

    /// Check a retpoline: a call into the thunk, a call inside it, a return that goes to
    /// the real function, and that one's return to the first caller.
    #[test]
    fn retpolines() {
        let found = stacks(&[
            block(1, 0, Call),
            block(8, 0, Call),
            block(8, 0x40, Return),
            block(2, 0, Return),
            block(1, 0x10, Other),
        ]);
        assert_eq!(found, [(vec![1], 2), (vec![1, 8], 2), (vec![1, 2], 1)]);
    }

    /// Check that a block that faults before its call has called no function.
    #[test]
    fn faults() {
        let resumed =
            Block { address: 0x1008, starts_function: false, ..block(1, 0, Call) };
        let found = stacks(&[
            block(1, 0, Call),
            resumed,
            block(2, 0, Return),
            block(1, 0x10, Other),
        ]);
        assert_eq!(found, [(vec![1], 3), (vec![1, 2], 1)]);
    }

    /// Check that calls that never return do not make the tree deeper without limit.
    #[test]
    fn endless_calls() {
        let calls: Vec<Block> = (0..10_000).map(|i| block(i % 2, 0, Call)).collect();
        let found = stacks(&calls);
        assert!(found.iter().all(|(path, _)| path.len() <= DEPTH_MAX + 1));
        assert_eq!(found.iter().map(|(_, own)| own).sum::<u64>(), 10_000);
    }

    /// Check that recursion nests.
    #[test]
    fn recursion() {
        let found =
            stacks(&[block(1, 0, Other), block(1, 0x20, Call), block(1, 0, Return)]);
        assert_eq!(found, [(vec![1], 2), (vec![1, 1], 1)]);
    }
}
