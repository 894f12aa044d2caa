//! One CPU: its position, since when, and the interruptions in progress.
//!
//! From user mode the kernel is entered once and left once, whichever thread then
//! continues. In kernel mode interruptions nest; each ends with its `iretq`. Interruptions that a
//! context switch leaves unfinished are dropped when user mode is reached.

use crate::decode::Ending;
use crate::episode::{Count, Level, What};
use crate::phase::Phase;
use crate::symbols::{Function, PROGRAM};
use crate::tree::Tree;
use crate::walk::{Block, Walk};

/// An interruption that has not ended.
#[derive(Debug)]
struct Open {
    entry: Function,
    from: Level,
    began: u64,
    walk: Walk,
    /// Whether it began in the current phase.
    is_whole: bool,
}

impl Open {
    /// It is named after that handler, unless it is after another one.
    fn name(&mut self, handler: Function, handlers: &[Function]) {
        if !handlers.contains(&self.entry) {
            self.entry = handler;
        }
    }
}

/// A step that has not ended.
#[derive(Debug)]
struct Step {
    began: Count,
    tree: Tree,
}

/// One CPU.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    number: usize,
    /// The functions that tell what an interruption is, where all have one entry.
    handlers: Vec<Function>,
    /// Interruptions, the outermost first; empty in user mode.
    open: Vec<Open>,
    /// The kernel's count when the current block began.
    counted: u64,
    last: Option<Block>,
    step: Option<Step>,
}

impl Cpu {
    /// A CPU in user mode.
    pub(crate) fn new(number: usize) -> Self {
        Self { number, ..Self::default() }
    }

    /// The same, with functions that tell what an interruption is: it is named after the first of them that it
    /// executes, instead of after its entry.
    pub(crate) fn with_handlers(self, handlers: Vec<Function>) -> Self {
        Self { handlers, ..self }
    }

    /// Begins a block of the kernel, having executed `now` in total.
    pub(crate) fn kernel(
        &mut self,
        block: Block,
        now: Count,
        mut phase: Option<&mut Phase>,
    ) {
        self.count(now);
        if self.has_returned_to(block) && self.open.len() > 1 {
            self.close(now, phase.as_deref_mut());
        }
        let is_whole = phase.is_some();
        match self.open.is_empty() {
            true => self.interrupt(block, Level::User, now, is_whole),
            false if block.is_entry => {
                self.interrupt(block, Level::Kernel, now, is_whole)
            }
            false => {}
        }
        self.last = Some(block);
        if let Some(open) = self.open.last_mut() {
            open.walk.enter(block);
            if block.starts_function && self.handlers.contains(&block.function) {
                open.name(block.function, &self.handlers);
            }
        }
    }

    /// Returns to user mode, having executed `now` in total.
    pub(crate) fn user(&mut self, now: Count, phase: Option<&mut Phase>) {
        self.count(now);
        // A switch to another thread left those inside the first unfinished.
        while self.open.len() > 1 {
            self.abandon();
        }
        self.close(now, phase);
        self.last = None;
    }

    /// Executes a step mark.
    pub(crate) fn step(&mut self, now: Count, phase: Option<&mut Phase>) {
        let ended = self.step.replace(Step { began: now, tree: Tree::new() });
        let Some((ended, phase)) = ended.zip(phase) else { return };
        let did = now.since(ended.began);
        let mut tree = ended.tree;
        let program = tree.child(Tree::ROOT, PROGRAM);
        tree.add(program, did.user);
        phase.add(self.number, What::Step, did.all(), tree);
    }

    /// A phase begins: interruptions in progress are incomplete, and the first step begins.
    pub(crate) fn begin(&mut self, now: Count) {
        self.open.iter_mut().for_each(|open| open.is_whole = false);
        self.step = Some(Step { began: now, tree: Tree::new() });
    }

    /// A phase ends.
    pub(crate) fn end(&mut self) {
        self.step = None;
    }

    /// Whether an interruption has just ended. The kernel also uses `iretq` to the next
    /// instruction, to make the processor discard prefetched instructions (`sync_core`).
    fn has_returned_to(&self, block: Block) -> bool {
        let returned = |last: Block| {
            last.ending == Ending::InterruptReturn && last.after != block.address
        };
        self.last.is_some_and(returned)
    }

    fn count(&mut self, now: Count) {
        if let Some(open) = self.open.last_mut() {
            open.walk.add(now.kernel - self.counted);
        }
        self.counted = now.kernel;
    }

    fn interrupt(&mut self, block: Block, from: Level, now: Count, is_whole: bool) {
        let (entry, began) = (block.function, now.kernel);
        self.open.push(Open { entry, from, began, walk: Walk::new(), is_whole });
    }

    /// Ends the innermost interruption.
    fn close(&mut self, now: Count, phase: Option<&mut Phase>) {
        let Some(open) = self.open.pop() else { return };
        let tree = open.walk.into_tree();
        match (self.open.last_mut(), &mut self.step) {
            (Some(outer), _) => outer.walk.add_interruption(&tree),
            (None, Some(step)) => step.tree.add_tree(Tree::ROOT, &tree),
            (None, None) => {}
        }
        if let Some(phase) = phase.filter(|_| open.is_whole) {
            let what = What::Interruption(open.entry, open.from);
            phase.add(self.number, what, now.kernel - open.began, tree);
        }
    }

    /// Merges an interruption that will never end into the one around it.
    fn abandon(&mut self) {
        let Some(open) = self.open.pop() else { return };
        if let Some(outer) = self.open.last_mut() {
            outer.walk.add_interruption(&open.walk.into_tree());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;

    /// The kinds of episodes of a phase that ends.
    fn kinds(phase: Phase) -> Kinds {
        phase.end(&[Count::default()]).1
    }

    fn block(function: usize, is_entry: bool, ending: Ending) -> Block {
        let address = function as u64 * 0x1000;
        let (after, function) = (address + 0x10, Function(function));
        Block { address, after, function, starts_function: true, is_entry, ending }
    }

    fn kernel(count: u64) -> Count {
        Count { user: 0, kernel: count }
    }

    fn costs(phase: &Phase) -> Vec<(What, Vec<(u64, u64)>)> {
        let values = phase.cpus[0].values.iter();
        values
            .map(|(&what, costs)| (what, costs.iter().map(|(&c, &n)| (c, n)).collect()))
            .collect()
    }

    /// Check that an interruption is counted from its first instruction to its last, also a
    /// nested one, and that the outer one's tree has the inner one's instructions.
    #[test]
    fn nested_interruptions() {
        let mut phase = Phase::begin(0, &[Count::default()], Kinds::default());
        let mut cpu = Cpu::new(0);
        cpu.begin(kernel(100));
        cpu.kernel(block(1, false, Ending::Other), kernel(100), Some(&mut phase));
        cpu.kernel(
            block(2, true, Ending::InterruptReturn),
            kernel(110),
            Some(&mut phase),
        );
        cpu.kernel(block(1, false, Ending::Other), kernel(130), Some(&mut phase));
        cpu.user(kernel(135), Some(&mut phase));
        let user = What::Interruption(Function(1), Level::User);
        let inner = What::Interruption(Function(2), Level::Kernel);
        assert_eq!(costs(&phase), [(user, vec![(35, 1)]), (inner, vec![(20, 1)])]);
        let kinds = kinds(phase);
        let totals: Vec<u64> = kinds.usual().iter().map(|kind| kind.total).collect();
        assert_eq!(totals, [20, 35]);
    }

    /// Check that interruptions in progress when the phase began are not counted, and that a
    /// switch out of an interruption leaves none unfinished.
    #[test]
    fn unfinished_interruptions() {
        let mut phase = Phase::begin(0, &[Count::default()], Kinds::default());
        let mut cpu = Cpu::new(0);
        cpu.kernel(block(1, false, Ending::Other), kernel(0), None);
        cpu.begin(kernel(5));
        cpu.kernel(block(2, true, Ending::Other), kernel(10), Some(&mut phase));
        cpu.user(kernel(20), Some(&mut phase));
        assert_eq!(costs(&phase), []);
        cpu.kernel(block(1, false, Ending::Other), kernel(20), Some(&mut phase));
        cpu.user(kernel(24), Some(&mut phase));
        let user = What::Interruption(Function(1), Level::User);
        assert_eq!(costs(&phase), [(user, vec![(4, 1)])]);
    }

    /// Check that a step has the instructions of both levels, and its tree all of them.
    #[test]
    fn steps() {
        let mut phase = Phase::begin(0, &[Count::default()], Kinds::default());
        let mut cpu = Cpu::new(0);
        cpu.begin(Count { user: 3, kernel: 0 });
        cpu.kernel(
            block(1, false, Ending::Other),
            Count { user: 5, kernel: 0 },
            Some(&mut phase),
        );
        cpu.user(Count { user: 5, kernel: 40 }, Some(&mut phase));
        cpu.step(Count { user: 9, kernel: 40 }, Some(&mut phase));
        let kinds = kinds(phase);
        let usual = kinds.usual();
        let step = usual.iter().find(|kind| kind.what == What::Step).unwrap();
        assert_eq!((step.total, step.tree.total()), (46, 46));
    }

    /// Check that an interruption is named after the first handler that it executes, and not after one inside
    /// another interruption.
    #[test]
    fn handlers() {
        let mut phase = Phase::begin(0, &[Count::default()], Kinds::default());
        let mut cpu = Cpu::new(0).with_handlers(vec![Function(7), Function(8)]);
        cpu.kernel(block(1, true, Ending::Other), kernel(0), Some(&mut phase));
        cpu.kernel(block(2, true, Ending::Other), kernel(10), Some(&mut phase));
        cpu.kernel(block(7, false, Ending::Other), kernel(11), Some(&mut phase));
        cpu.kernel(
            block(8, false, Ending::InterruptReturn),
            kernel(12),
            Some(&mut phase),
        );
        cpu.kernel(block(3, false, Ending::Other), kernel(20), Some(&mut phase));
        cpu.user(kernel(25), Some(&mut phase));
        let user = What::Interruption(Function(1), Level::User);
        let inner = What::Interruption(Function(7), Level::Kernel);
        assert_eq!(costs(&phase), [(user, vec![(25, 1)]), (inner, vec![(10, 1)])]);
    }

    /// Check that an `iretq` to the next instruction ends nothing.
    #[test]
    fn returns_to_itself() {
        let mut phase = Phase::begin(0, &[Count::default()], Kinds::default());
        let mut cpu = Cpu::new(0);
        let to_itself = block(2, true, Ending::InterruptReturn);
        let next = Block { address: to_itself.after, is_entry: false, ..to_itself };
        cpu.kernel(block(1, false, Ending::Other), kernel(0), Some(&mut phase));
        cpu.kernel(to_itself, kernel(1), Some(&mut phase));
        cpu.kernel(next, kernel(2), Some(&mut phase));
        cpu.kernel(block(1, false, Ending::Other), kernel(4), Some(&mut phase));
        let inner = What::Interruption(Function(2), Level::Kernel);
        assert_eq!(costs(&phase), [(inner, vec![(3, 1)])]);
    }
}
