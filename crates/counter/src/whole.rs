//! The profile of a phase: all instructions of the kernel by call path, on each CPU, in
//! interruptions, system calls, kernel threads and the idle loop.
//!
//! An interruption's own walk (`cpu`) ends with it, and follows a CPU. This one
//! never ends, and follows threads: `__switch_to_asm` loads the next thread's stack
//! pointer from its `task_struct`, and the address it is loaded from identifies the thread.
//! Every instruction is added to the current node of its CPU, so the sum is exact.
//!
//! The callers of a thread from before counting began are unknown until it returns to
//! them.

pub(crate) mod fold;

use std::collections::BTreeMap;

use crate::decode::Ending;
use crate::episode::Count;
use crate::symbols::{Function, Symbols};
use crate::walk::Block;
pub(crate) use crate::whole::fold::Called;
use crate::whole::fold::{Node, Place, folded};

/// Number of separate nodes; further callees are counted as their callers.
const PLACES_MAX: usize = 1 << 17;
/// Depth of calls of one thread or interruption; no kernel stack is deeper.
const DEPTH_MAX: usize = 256;
/// The kernel's assembly functions that begin a new thread: on x86-64 since 6.5, and before that and on arm64.
const THREAD_STARTS: [&str; 2] = ["ret_from_fork_asm", "ret_from_fork"];

/// The parent of the outermost functions.
const ROOT: Place = Place(0);

/// A call that has not returned.
#[derive(Debug)]
struct Frame {
    returns_to: u64,
    caller: Place,
}

/// The path of a thread through the kernel, or that of an interruption on top of it.
#[derive(Debug)]
struct Context {
    /// Its outermost node: that of its entry, or of its unknown callers.
    base: Place,
    at: Place,
    frames: Vec<Frame>,
    last: Option<Block>,
}

#[derive(Debug, Default)]
struct OnCpu {
    /// The thread's address; unknown before the first switch.
    thread: Option<u64>,
    /// The path of the thread's system call or of a kernel thread, and interruptions on top.
    contexts: Vec<Context>,
    is_in_user_mode: bool,
    counted: u64,
    /// The instructions executed at each node.
    own: Vec<u64>,
}

/// The whole machine.
#[derive(Debug)]
pub(crate) struct Whole {
    nodes: Vec<Node>,
    cpus: Vec<OnCpu>,
    /// Threads that are not running, by address.
    threads: BTreeMap<u64, Vec<Context>>,
    thread_starts: Vec<Function>,
    /// A node of unknown callers that a new thread did not need.
    spare: Option<Place>,
}

impl Whole {
    /// A machine of that many CPUs, with a kernel of those functions.
    pub(crate) fn new(cpus: usize, symbols: &Symbols) -> Self {
        let root = Node { function: None, parent: ROOT, children: Vec::new() };
        Self {
            nodes: vec![root],
            cpus: (0..cpus).map(|_| OnCpu::default()).collect(),
            threads: BTreeMap::new(),
            thread_starts: symbols.named(&THREAD_STARTS),
            spare: None,
        }
    }

    /// A phase begins with those counts.
    pub(crate) fn begin(&mut self, counts: &[Count]) {
        for (cpu, now) in self.cpus.iter_mut().zip(counts) {
            cpu.counted = now.kernel;
            cpu.own.clear();
        }
    }

    /// A phase ends with those counts; returns the kernel's instructions by call path and CPU.
    pub(crate) fn end(&mut self, counts: &[Count]) -> Vec<Vec<Called>> {
        let of_cpu = |(cpu, now): (usize, &Count)| {
            self.count(cpu, *now);
            folded(&self.nodes, &self.cpus[cpu].own)
        };
        counts.iter().enumerate().map(of_cpu).collect()
    }

    /// A CPU begins a block of the kernel.
    pub(crate) fn kernel(&mut self, cpu: usize, block: Block, now: Count) {
        self.count(cpu, now);
        let mut contexts = std::mem::take(&mut self.cpus[cpu].contexts);
        if contexts.last().is_some_and(|context| context.has_returned_to(block)) {
            contexts.pop();
        }
        let from_user = std::mem::take(&mut self.cpus[cpu].is_in_user_mode);
        if from_user || block.is_entry {
            contexts.push(self.entered(block.function));
        } else if self.is_new_thread(&contexts, block) {
            let unused = contexts.drain(..).next().map(|context| context.base);
            self.spare = unused.filter(|&base| self.nodes[base.0].function.is_none());
            contexts.push(self.entered(block.function));
        } else if contexts.is_empty() {
            contexts.push(self.unknown());
        }
        if let Some(context) = contexts.last_mut() {
            self.enter(context, block);
        }
        self.cpus[cpu].contexts = contexts;
    }

    /// A CPU returns to user mode.
    pub(crate) fn user(&mut self, cpu: usize, now: Count) {
        self.count(cpu, now);
        let cpu = &mut self.cpus[cpu];
        cpu.contexts.clear();
        cpu.is_in_user_mode = true;
    }

    /// A CPU switches to another thread, whose stack pointer was at that address.
    pub(crate) fn switch(&mut self, cpu: usize, thread: u64, now: Count) {
        self.count(cpu, now);
        let on = &mut self.cpus[cpu];
        let left = std::mem::take(&mut on.contexts);
        if let Some(previous) = on.thread.replace(thread) {
            self.threads.insert(previous, left);
        }
        self.cpus[cpu].contexts = self.threads.remove(&thread).unwrap_or_default();
    }

    fn count(&mut self, cpu: usize, now: Count) {
        let cpu = &mut self.cpus[cpu];
        let Place(at) = cpu.contexts.last().map_or(ROOT, |context| context.at);
        if at >= cpu.own.len() {
            cpu.own.resize(at + 1, 0);
        }
        cpu.own[at] += now.kernel - cpu.counted;
        cpu.counted = now.kernel;
    }

    /// A new thread begins where `__switch_to` returns to the start of a function.
    fn is_new_thread(&self, contexts: &[Context], block: Block) -> bool {
        let last = contexts.last().and_then(|context| context.last);
        block.starts_function
            && last.is_none_or(|last| last.ending == Ending::Return)
            && self.thread_starts.contains(&block.function)
    }

    fn entered(&mut self, function: Function) -> Context {
        Context::at(self.child(ROOT, function))
    }

    fn unknown(&mut self) -> Context {
        let base = self.spare.take().unwrap_or_else(|| self.add(ROOT, None));
        Context::at(base)
    }

    fn enter(&mut self, context: &mut Context, block: Block) {
        let last = context.last.replace(block).filter(|last| !last.is_resumed_at(block));
        match last.map(|last| (last.ending, last.after)) {
            Some((Ending::Call, after)) => self.call(context, after, block),
            Some((Ending::Return, _)) => self.come_back(context, block),
            _ => {}
        }
        if self.nodes[context.at.0].function != Some(block.function) {
            let is_base = context.at == context.base;
            let caller = if is_base { context.at } else { self.parent(context.at) };
            context.at = self.child(caller, block.function);
        }
    }

    fn call(&mut self, context: &mut Context, returns_to: u64, block: Block) {
        let is_own = self.nodes[context.at.0].function == Some(block.function);
        // A call into the middle of its own function only pushes an address, to which nothing
        // returns (retpolines, filling the return stack buffer).
        if is_own && !block.starts_function {
            return;
        }
        if context.frames.len() >= DEPTH_MAX {
            context.frames.clear();
            context.at = context.base;
        }
        context.frames.push(Frame { returns_to, caller: context.at });
        context.at = self.child(context.at, block.function);
    }

    fn come_back(&mut self, context: &mut Context, block: Block) {
        let is_it = |frame: &Frame| frame.returns_to == block.address;
        if let Some(depth) = context.frames.iter().rposition(is_it) {
            context.at = context.frames[depth].caller;
            context.frames.truncate(depth);
        } else if context.frames.is_empty()
            && !block.starts_function
            && self.nodes[context.base.0].function.is_none()
            && self.nodes[context.at.0].function != Some(block.function)
        {
            context.at = self.caller_of_all(context.base, block.function);
        }
    }

    /// Inserts a function that turned out to be an unknown caller above its callees.
    fn caller_of_all(&mut self, base: Place, function: Function) -> Place {
        if base == ROOT || self.nodes.len() >= PLACES_MAX {
            return base;
        }
        let called = std::mem::take(&mut self.nodes[base.0].children);
        let place = self.add(base, Some(function));
        called.iter().for_each(|below| self.nodes[below.0].parent = place);
        self.nodes[place.0].children = called;
        place
    }

    fn parent(&self, place: Place) -> Place {
        self.nodes[place.0].parent
    }

    fn child(&mut self, parent: Place, function: Function) -> Place {
        let is_it = |place: &&Place| self.nodes[place.0].function == Some(function);
        let known = self.nodes[parent.0].children.iter().find(is_it).copied();
        known.unwrap_or_else(|| self.add(parent, Some(function)))
    }

    fn add(&mut self, parent: Place, function: Option<Function>) -> Place {
        if self.nodes.len() >= PLACES_MAX {
            return parent;
        }
        let place = Place(self.nodes.len());
        self.nodes.push(Node { function, parent, children: Vec::new() });
        if function.is_some() {
            self.nodes[parent.0].children.push(place);
        }
        place
    }
}

impl Context {
    fn at(base: Place) -> Self {
        Self { base, at: base, frames: Vec::new(), last: None }
    }

    /// Whether the interruption has ended; not if it returns to the next instruction (`cpu`).
    fn has_returned_to(&self, block: Block) -> bool {
        self.last.is_some_and(|last| {
            last.ending == Ending::InterruptReturn && last.after != block.address
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "ffffffff80001000 T entry_SYSCALL_64
ffffffff80002000 T schedule
ffffffff80003000 T __switch_to_asm
ffffffff80004000 T kdamond_fn
ffffffff80005000 T asm_sysvec_apic_timer_interrupt
ffffffff80006000 T do_idle
ffffffff80007000 T ret_from_fork
ffffffff80008000 T kthread";

    const SYSCALL: u64 = 1;
    const SCHEDULE: u64 = 2;
    const SWITCH: u64 = 3;
    const KDAMOND: u64 = 4;
    const TIMER: u64 = 5;
    const IDLE: u64 = 6;
    const FORK: u64 = 7;
    const KTHREAD: u64 = 8;

    use Ending::{Call, InterruptReturn, Other, Return};

    /// A machine, its symbols, and the counts of its CPUs.
    struct Machine {
        symbols: Symbols,
        whole: Whole,
        now: Vec<Count>,
    }

    impl Machine {
        fn new(cpus: usize) -> Self {
            let symbols = Symbols::parse(SYMBOLS);
            let now = vec![Count::default(); cpus];
            let mut whole = Whole::new(cpus, &symbols);
            whole.begin(&now);
            Self { symbols, whole, now }
        }

        /// Executes one block of ten instructions.
        fn run(&mut self, cpu: usize, function: u64, offset: u64, ending: Ending) {
            let address = 0xffff_ffff_8000_0000 + function * 0x1000 + offset;
            let block = Block {
                address,
                after: address + 0x10,
                function: self.symbols.find(address),
                starts_function: offset == 0,
                is_entry: self.symbols.is_entry(address),
                ending,
            };
            self.whole.kernel(cpu, block, self.now[cpu]);
            self.now[cpu].kernel += 10;
        }

        fn switch(&mut self, cpu: usize, thread: u64) {
            self.whole.switch(cpu, thread, self.now[cpu]);
        }

        fn user(&mut self, cpu: usize) {
            self.whole.user(cpu, self.now[cpu]);
            self.now[cpu].user += 5;
        }

        /// Each CPU's stacks, in instructions; they add up to the executed ones.
        fn stacks(mut self) -> Vec<Vec<(String, u64)>> {
            let ended = self.whole.end(&self.now);
            for (list, now) in ended.iter().zip(&self.now) {
                assert_eq!(list.iter().map(|one| one.own).sum::<u64>(), now.kernel);
            }
            let stack = |list: &[Called], one: &Called| {
                let mut path = vec![self.symbols.name(one.function)];
                let mut caller = one.caller;
                while let Some(place) = caller {
                    path.push(self.symbols.name(list[place].function));
                    caller = list[place].caller;
                }
                path.reverse();
                (path.join(";"), one.own)
            };
            ended
                .iter()
                .map(|list| list.iter().map(|one| stack(list, one)).collect())
                .collect()
        }
    }

    fn owned(stacks: &[(&str, u64)]) -> Vec<(String, u64)> {
        stacks.iter().map(|&(path, own)| (path.to_owned(), own)).collect()
    }

    /// Check that a system call that sleeps, a kernel thread and idle have separate
    /// instructions, and that a thread's callers become known as it returns.
    #[test]
    fn threads() {
        let mut machine = Machine::new(1);
        machine.user(0);
        machine.run(0, SYSCALL, 0, Call);
        machine.run(0, SCHEDULE, 0, Call);
        machine.run(0, SWITCH, 0, Other);
        machine.switch(0, 0xaa);
        machine.run(0, SWITCH, 0x20, Return);
        machine.run(0, SCHEDULE, 0x10, Return);
        machine.run(0, KDAMOND, 0x40, Call);
        machine.run(0, SCHEDULE, 0, Call);
        machine.run(0, SWITCH, 0, Other);
        machine.switch(0, 0xbb);
        machine.run(0, SWITCH, 0x20, Return);
        machine.run(0, SCHEDULE, 0x10, Return);
        machine.run(0, IDLE, 0x40, Call);
        machine.run(0, SCHEDULE, 0, Call);
        machine.run(0, SWITCH, 0, Other);
        machine.switch(0, 0xaa);
        machine.run(0, SWITCH, 0x20, Return);
        machine.run(0, SCHEDULE, 0x10, Return);
        machine.run(0, KDAMOND, 0x50, Other);
        let expected = owned(&[
            ("entry_SYSCALL_64", 10),
            ("entry_SYSCALL_64;schedule", 10),
            ("entry_SYSCALL_64;schedule;__switch_to_asm", 10),
            ("kdamond_fn", 20),
            ("kdamond_fn;schedule", 30),
            ("kdamond_fn;schedule;__switch_to_asm", 30),
            ("do_idle", 10),
            ("do_idle;schedule", 20),
            ("do_idle;schedule;__switch_to_asm", 20),
        ]);
        assert_eq!(machine.stacks(), [expected]);
    }

    /// Check that an interruption is separate from the interrupted code, which then continues,
    /// and that a switch inside it changes the thread.
    #[test]
    fn interruptions() {
        let mut machine = Machine::new(1);
        machine.user(0);
        machine.run(0, SYSCALL, 0, Call);
        machine.run(0, KTHREAD, 0, Other);
        machine.run(0, TIMER, 0, InterruptReturn);
        machine.run(0, KTHREAD, 0x20, Return);
        machine.run(0, SYSCALL, 0x10, Other);
        machine.user(0);
        machine.run(0, TIMER, 0, InterruptReturn);
        let expected = owned(&[
            ("entry_SYSCALL_64", 20),
            ("entry_SYSCALL_64;kthread", 20),
            ("asm_sysvec_apic_timer_interrupt", 20),
        ]);
        assert_eq!(machine.stacks(), [expected]);
    }

    /// Check that a new thread begins with an empty path, also at the address of an ended one.
    #[test]
    fn new_threads() {
        let mut machine = Machine::new(1);
        for _ in 0..2 {
            machine.switch(0, 0xaa);
            machine.run(0, SWITCH, 0x20, Return);
            machine.run(0, FORK, 0, Call);
            machine.run(0, KTHREAD, 0, Call);
            machine.run(0, SCHEDULE, 0, Other);
            machine.switch(0, 0xbb);
        }
        let stacks = machine.stacks().concat();
        let of = |path: &str| {
            stacks.iter().find(|(known, _)| known == path).map(|(_, own)| *own)
        };
        assert_eq!(of("ret_from_fork;kthread;schedule"), Some(20));
        assert_eq!(of("ret_from_fork"), Some(20));
    }

    /// Check that each CPU has separate counts, also of a thread that was migrated, and that a
    /// phase does not include earlier instructions.
    #[test]
    fn two_cpus() {
        let mut machine = Machine::new(2);
        machine.run(1, IDLE, 0, Other);
        machine.run(0, IDLE, 0, Other);
        machine.whole.begin(&machine.now);
        machine.now = vec![Count { user: 0, kernel: 10 }; 2];
        machine.switch(0, 0xaa);
        machine.run(0, KDAMOND, 0, Other);
        machine.switch(0, 0xbb);
        machine.switch(1, 0xaa);
        machine.run(1, KDAMOND, 0x10, Other);
        let ended = machine.whole.end(&machine.now);
        let kdamond = machine.symbols.find(0xffff_ffff_8000_4000);
        let expected = [Called { function: kdamond, caller: None, own: 10 }];
        assert_eq!(ended, [expected, expected]);
    }

    /// Check that nodes beyond the limit lose no instruction, and use no memory.
    #[test]
    fn bounded() {
        let mut machine = Machine::new(1);
        for thread in 0..PLACES_MAX as u64 {
            machine.switch(0, thread);
            machine.run(0, KDAMOND, 0x40, Call);
            machine.run(0, SCHEDULE, 0, Other);
        }
        assert!(machine.whole.nodes.len() <= PLACES_MAX);
        let [stacks] = machine.stacks().try_into().unwrap();
        assert!(stacks.len() <= 4, "{stacks:?}");
    }
}
