//! The kernel's instructions by what they are executed for: a system call, an exception, an
//! interrupt, the tick, a softirq, a kernel thread, or the idle loop, without the functions
//! between.
//!
//! Only the borders are observed: entries into the kernel and returns from it, and the starts and
//! returns of the few functions in [`Point`]. What is executed between two borders belongs to the
//! context before the second, so the sum is exact. A context is a path: `entry_SYSCALL_64`,
//! `__x64_sys_sendto`, `__do_softirq`, `net_rx_action`. Contexts belong to threads, as in
//! `whole`; interrupts have one of their own, on top of the interrupted one.
//!
//! A region that is left by a tail call ends with the interrupt or system call around it.

use std::collections::BTreeMap;

use crate::episode::Count;
use crate::symbols::{Function, Symbols, UNKNOWN};
use crate::walk::Block;

/// A function that begins a part of the kernel's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// The function of a system call.
    Call,
    /// It executes the pending softirqs.
    Softirqs,
    /// The function of a softirq.
    Softirq,
    /// The tick.
    Tick,
    /// The idle loop.
    Idle,
    /// It calls the function of a kernel thread.
    Thread,
}

/// Of system calls: the prefixes of their functions on x86-64 and arm64, of which calls without parameters
/// have several (since 4.17, and before).
const CALLS: [&str; 5] = ["__x64_sys_", "__arm64_sys_", "__do_sys_", "__se_sys_", "SyS_"];
/// kernel/softirq.c: since 6.9, before, and the latter's name in symbols since 4.12.
const SOFTIRQS: [&str; 3] =
    ["handle_softirqs", "__do_softirq", "__softirqentry_text_start"];
/// The functions in `open_softirq` calls.
const SOFTIRQ: [&str; 15] = [
    "net_rx_action",
    "net_tx_action",
    "run_timer_softirq",
    "hrtimer_run_softirq",
    "rcu_core_si",
    "rcu_process_callbacks",
    "tasklet_action",
    "tasklet_hi_action",
    "workqueue_softirq_action",
    "run_rebalance_domains",
    "sched_balance_softirq",
    "blk_done_softirq",
    "irq_poll_softirq",
    "blk_iopoll_softirq",
    "timer_expire_remote",
];
/// kernel/time/tick-sched.c and tick-common.c, see `summary`.
const TICK: [&str; 5] = [
    "tick_sched_timer",
    "tick_nohz_handler",
    "tick_nohz_lowres_handler",
    "tick_handle_periodic",
    "tick_periodic",
];
const IDLE: &str = "do_idle";
const THREAD: &str = "kthread";
/// The kernel's entries for system calls begin with this.
const CALL_ENTRY: &str = "entry_";

impl Point {
    /// The point that a function of this name is.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            IDLE => Some(Self::Idle),
            THREAD => Some(Self::Thread),
            name if SOFTIRQS.contains(&name) => Some(Self::Softirqs),
            name if SOFTIRQ.contains(&name) => Some(Self::Softirq),
            name if TICK.contains(&name) => Some(Self::Tick),
            name if CALLS.iter().any(|start| name.starts_with(start)) => Some(Self::Call),
            _ => None,
        }
    }

    /// Whether the part ends where the function returns.
    pub(crate) fn is_left(self) -> bool {
        matches!(self, Self::Softirqs | Self::Softirq | Self::Tick)
    }
}

/// Where a CPU comes from when it begins a block of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// User mode.
    User,
    /// An interrupt or exception, which returned before that address.
    Returned,
    /// Another block of the kernel.
    Kernel,
}

/// The instructions of a context, and how often it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) own: u64,
    pub(crate) times: u64,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.own += other.own;
        self.times += other.times;
    }
}

/// A path's place in the list of paths.
type Place = usize;
/// The path of instructions outside of all contexts.
const NOWHERE: Place = 0;

#[derive(Debug)]
struct Context {
    place: Place,
    /// The instructions since its beginning, or since that of the phase.
    executed: u64,
}

#[derive(Debug, Default)]
struct OnCpu {
    thread: Option<u64>,
    /// Of the current thread; empty in user mode.
    contexts: Vec<Context>,
    /// The address after the return of the last interrupt: a return to the next instruction only
    /// discards prefetched ones (`cpu`).
    after: u64,
    counted: u64,
    group: u32,
    costs: BTreeMap<(u32, Place), Cost>,
}

/// The contexts of a machine.
#[derive(Debug)]
pub(crate) struct Contexts {
    cpus: Vec<OnCpu>,
    /// The contexts of threads that are not running, by address.
    threads: BTreeMap<u64, Vec<Context>>,
    paths: Vec<Vec<Function>>,
    places: BTreeMap<Vec<Function>, Place>,
    call_entries: Vec<Function>,
    /// The functions of softirqs, and those that execute them.
    points: BTreeMap<Function, Point>,
    idle: Function,
    thread: Function,
    new_task: Function,
}

impl Contexts {
    /// A machine of that many CPUs, with a kernel of those functions.
    pub(crate) fn new(cpus: usize, symbols: &Symbols) -> Self {
        let one = |name| symbols.named(&[name]).first().copied().unwrap_or(UNKNOWN);
        let named = |names: &[&str], point| {
            symbols.named(names).into_iter().map(move |function| (function, point))
        };
        let unknown = vec![UNKNOWN];
        Self {
            cpus: (0..cpus).map(|_| OnCpu::default()).collect(),
            threads: BTreeMap::new(),
            paths: vec![unknown.clone()],
            places: BTreeMap::from([(unknown, NOWHERE)]),
            call_entries: symbols.with_prefix(CALL_ENTRY),
            points: named(&SOFTIRQ, Point::Softirq)
                .chain(named(&SOFTIRQS, Point::Softirqs))
                .collect(),
            idle: one(IDLE),
            thread: one(THREAD),
            new_task: one("ret_from_fork"),
        }
    }

    /// A CPU begins a block of the kernel, which is a point or an entry, or follows user mode or
    /// the return from an interrupt.
    pub(crate) fn kernel(
        &mut self,
        cpu: usize,
        block: Block,
        point: Option<Point>,
        from: From,
        now: Count,
    ) {
        self.count(cpu, now);
        if from == From::Returned && self.cpus[cpu].after != block.address {
            self.cpus[cpu].contexts.pop();
        }
        if from == From::User || block.is_entry {
            let context = self.context(&[block.function]);
            self.began(cpu, context.place);
            self.cpus[cpu].contexts.push(context);
        } else if self.cpus[cpu].contexts.is_empty() {
            let context = self.context(&[self.thread]);
            self.cpus[cpu].contexts.push(context);
        }
        if let Some(point) = point {
            self.pass(cpu, point, block.function);
        }
    }

    /// A point is passed in the current context.
    fn pass(&mut self, cpu: usize, point: Point, function: Function) {
        let Some(frames) = self.frames(cpu) else { return };
        match point {
            Point::Call
                if frames.len() == 1 && self.call_entries.contains(&frames[0]) =>
            {
                self.name_call(cpu, function);
            }
            Point::Softirq if frames.len() > 1 => self.extend(cpu, function, point),
            // `__do_softirq` continues in `handle_softirqs` with a jump.
            Point::Softirqs | Point::Tick => self.extend(cpu, function, point),
            Point::Idle => self.rename(cpu, self.idle),
            Point::Thread => self.rename(cpu, self.thread),
            Point::Call | Point::Softirq => {}
        }
    }

    /// The path of the current context.
    fn frames(&self, cpu: usize) -> Option<&[Function]> {
        let context = self.cpus[cpu].contexts.last()?;
        Some(&self.paths[context.place])
    }

    /// The current context continues on another path.
    fn go_on(&mut self, cpu: usize, frames: &[Function]) -> Place {
        let place = self.place(frames);
        if let Some(context) = self.cpus[cpu].contexts.last_mut() {
            context.place = place;
        }
        place
    }

    /// The current context continues in that function, which replaces one of its own kind.
    fn extend(&mut self, cpu: usize, function: Function, point: Point) {
        let Some(frames) = self.frames(cpu) else { return };
        let last = frames.last().unwrap_or(&UNKNOWN);
        let is_replaced = frames.len() > 1 && self.points.get(last) == Some(&point);
        let known = frames.iter().position(|&frame| frame == function);
        let end = known.unwrap_or(frames.len() - usize::from(is_replaced));
        let frames = [&frames[..end], &[function]].concat();
        let place = self.go_on(cpu, &frames);
        self.began(cpu, place);
    }

    /// The system call of the current context is known: its instructions so far belong to it.
    fn name_call(&mut self, cpu: usize, function: Function) {
        let Some(context) = self.cpus[cpu].contexts.last() else { return };
        let (before, executed) = (context.place, context.executed);
        let frames = [&self.paths[before][..], &[function]].concat();
        let place = self.go_on(cpu, &frames);
        let OnCpu { group, costs, .. } = &mut self.cpus[cpu];
        if let Some(cost) = costs.get_mut(&(*group, before)) {
            cost.own = cost.own.saturating_sub(executed);
            cost.times = cost.times.saturating_sub(1);
        }
        costs.entry((*group, place)).or_default().add(Cost { own: executed, times: 1 });
    }

    /// The thread is in that function, whatever it was in before.
    fn rename(&mut self, cpu: usize, function: Function) {
        let context = self.context(&[function]);
        if let Some(base) = self.cpus[cpu].contexts.first_mut() {
            *base = context;
        }
    }

    /// A function that is a point returns.
    pub(crate) fn leave(&mut self, cpu: usize, function: Function, now: Count) {
        self.count(cpu, now);
        let Some(frames) = self.frames(cpu) else { return };
        let end = frames.iter().rposition(|&frame| frame == function);
        if let Some(end) = end.filter(|&end| end > 0) {
            let frames = frames[..end].to_vec();
            self.go_on(cpu, &frames);
        }
    }

    /// An interrupt or exception returns; the next instruction in memory is at that address.
    pub(crate) fn return_from(&mut self, cpu: usize, after: u64) {
        self.cpus[cpu].after = after;
    }

    /// A CPU returns to user mode.
    pub(crate) fn user(&mut self, cpu: usize, now: Count) {
        self.count(cpu, now);
        self.cpus[cpu].contexts.clear();
    }

    /// A CPU switches to the thread at that address.
    pub(crate) fn switch(&mut self, cpu: usize, thread: u64, now: Count) {
        self.count(cpu, now);
        let known = self.threads.remove(&thread);
        let contexts = known.unwrap_or_else(|| vec![self.context(&[self.thread])]);
        let on = &mut self.cpus[cpu];
        let left = std::mem::replace(&mut on.contexts, contexts);
        if let Some(previous) = on.thread.replace(thread) {
            self.threads.insert(previous, left);
        }
    }

    /// The thread at that address is new.
    pub(crate) fn create(&mut self, thread: u64) {
        let context = self.context(&[self.new_task]);
        self.threads.insert(thread, vec![context]);
    }

    /// The current thread belongs to that group from here on.
    pub(crate) fn set_group(&mut self, cpu: usize, group: u32, now: Count) {
        self.count(cpu, now);
        self.cpus[cpu].group = group;
    }

    /// A phase begins with those counts.
    pub(crate) fn begin_phase(&mut self, counts: &[Count]) {
        for (on, now) in self.cpus.iter_mut().zip(counts) {
            on.counted = now.kernel;
            on.costs.clear();
        }
        let running = self.cpus.iter_mut().flat_map(|on| &mut on.contexts);
        let all = running.chain(self.threads.values_mut().flatten());
        all.for_each(|context| context.executed = 0);
    }

    /// A phase ends with those counts; adds the costs of each path by group, of all CPUs.
    pub(crate) fn end_phase(
        &mut self,
        counts: &[Count],
        costs: &mut BTreeMap<(u32, Vec<Function>), Cost>,
    ) {
        for (cpu, &now) in counts.iter().enumerate() {
            self.count(cpu, now);
        }
        let all = self.cpus.iter().flat_map(|on| &on.costs);
        for (&(group, place), &cost) in all.filter(|(_, cost)| **cost != Cost::default())
        {
            costs.entry((group, self.paths[place].clone())).or_default().add(cost);
        }
    }

    fn count(&mut self, cpu: usize, now: Count) {
        let on = &mut self.cpus[cpu];
        let since = now.kernel - on.counted;
        on.counted = now.kernel;
        let place = on.contexts.last_mut().map_or(NOWHERE, |context| {
            context.executed += since;
            context.place
        });
        if since > 0 {
            on.costs.entry((on.group, place)).or_default().own += since;
        }
    }

    /// A context begins on that path.
    fn began(&mut self, cpu: usize, place: Place) {
        let on = &mut self.cpus[cpu];
        on.costs.entry((on.group, place)).or_default().times += 1;
    }

    fn context(&mut self, frames: &[Function]) -> Context {
        Context { place: self.place(frames), executed: 0 }
    }

    fn place(&mut self, frames: &[Function]) -> Place {
        if let Some(&place) = self.places.get(frames) {
            return place;
        }
        let place = self.paths.len();
        self.paths.push(frames.to_vec());
        self.places.insert(frames.to_vec(), place);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Ending;

    const SYMBOLS: &str = "ffffffff80001000 T entry_SYSCALL_64
ffffffff80002000 T __x64_sys_write
ffffffff80003000 T __do_softirq
ffffffff80004000 T handle_softirqs
ffffffff80005000 T net_rx_action
ffffffff80006000 T run_timer_softirq
ffffffff80007000 T asm_sysvec_apic_timer_interrupt
ffffffff80008000 T tick_nohz_handler
ffffffff80009000 T do_idle
ffffffff8000a000 T kthread
ffffffff8000b000 T ret_from_fork";
    const WRITE: u64 = 2;
    const DO_SOFTIRQ: u64 = 3;
    const HANDLE: u64 = 4;
    const RECEIVE: u64 = 5;
    const TIMERS: u64 = 6;
    const INTERRUPT: u64 = 7;
    const TICK: u64 = 8;
    const DO_IDLE: u64 = 9;
    const KTHREAD: u64 = 10;

    /// A machine with one CPU.
    struct Machine {
        symbols: Symbols,
        contexts: Contexts,
        now: Count,
    }

    impl Machine {
        fn new() -> Self {
            let symbols = Symbols::parse(SYMBOLS);
            let contexts = Contexts::new(1, &symbols);
            Self { symbols, contexts, now: Count::default() }
        }

        fn function(&self, number: u64) -> Function {
            self.symbols.find(0xffff_ffff_8000_0000 + number * 0x1000)
        }

        /// Begins a function, and executes ten instructions.
        fn begin(&mut self, number: u64, from: From) {
            let function = self.function(number);
            let address = 0xffff_ffff_8000_0000 + number * 0x1000;
            let block = Block {
                address,
                after: address + 0x10,
                function,
                starts_function: true,
                is_entry: number == INTERRUPT,
                ending: Ending::Other,
            };
            let point = Point::of(self.symbols.name(function));
            self.contexts.kernel(0, block, point, from, self.now);
            self.now.kernel += 10;
        }

        /// Returns from a function, and executes one instruction.
        fn leave(&mut self, number: u64) {
            self.contexts.leave(0, self.function(number), self.now);
            self.now.kernel += 1;
        }

        /// The paths with their instructions and frequency; they add up to all instructions.
        fn costs(&mut self) -> Vec<(String, u64, u64)> {
            let mut costs = BTreeMap::new();
            self.contexts.end_phase(&[self.now], &mut costs);
            let sum: u64 = costs.values().map(|cost| cost.own).sum();
            assert_eq!(sum, self.now.kernel);
            let name = |path: &[Function]| {
                let names = path.iter().map(|&function| self.symbols.name(function));
                names.collect::<Vec<_>>().join(";")
            };
            costs.iter().map(|((_, path), of)| (name(path), of.own, of.times)).collect()
        }
    }

    fn owned(costs: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
        costs.iter().map(|&(path, own, times)| (path.to_owned(), own, times)).collect()
    }

    /// Check that a system call has its entry's instructions, and that softirqs in it are apart,
    /// each for itself, also after a jump from one function to the next.
    #[test]
    fn softirqs_in_a_call() {
        let mut machine = Machine::new();
        machine.begin(1, From::User);
        machine.begin(WRITE, From::Kernel);
        machine.begin(DO_SOFTIRQ, From::Kernel);
        machine.begin(HANDLE, From::Kernel);
        machine.begin(RECEIVE, From::Kernel);
        machine.begin(TIMERS, From::Kernel);
        machine.leave(TIMERS);
        machine.leave(HANDLE);
        machine.contexts.user(0, machine.now);
        let call = "entry_SYSCALL_64;__x64_sys_write";
        let soft = format!("{call};__do_softirq");
        let handled = format!("{call};handle_softirqs");
        let expected = owned(&[
            (call, 21, 1),
            (&soft, 10, 1),
            (&handled, 11, 1),
            (&format!("{handled};net_rx_action"), 10, 1),
            (&format!("{handled};run_timer_softirq"), 10, 1),
        ]);
        assert_eq!(machine.costs(), expected);
    }

    /// Check that the tick is apart from its interrupt, and that the interrupted context continues
    /// after the return, but not after a return to the next instruction.
    #[test]
    fn interrupts() {
        let mut machine = Machine::new();
        machine.begin(1, From::User);
        machine.begin(WRITE, From::Kernel);
        machine.begin(INTERRUPT, From::Kernel);
        machine.begin(TICK, From::Kernel);
        machine.leave(TICK);
        machine.contexts.return_from(0, 0xffff_ffff_8000_1000);
        machine.begin(1, From::Returned);
        machine.contexts.return_from(0, 0);
        machine.begin(11, From::Returned);
        let expected = owned(&[
            ("entry_SYSCALL_64;__x64_sys_write", 30, 1),
            ("asm_sysvec_apic_timer_interrupt", 21, 1),
            ("asm_sysvec_apic_timer_interrupt;tick_nohz_handler", 10, 1),
        ]);
        assert_eq!(machine.costs(), expected);
    }

    /// Check that threads have contexts of their own: a system call continues after others ran, the
    /// idle loop and a kernel thread are known by their functions, and a new task begins at its own
    /// start.
    #[test]
    fn threads() {
        let mut machine = Machine::new();
        machine.contexts.switch(0, 0xa0, machine.now);
        machine.begin(1, From::User);
        machine.begin(WRITE, From::Kernel);
        machine.contexts.switch(0, 0xb0, machine.now);
        machine.begin(DO_IDLE, From::Kernel);
        machine.contexts.create(0xc0);
        machine.contexts.switch(0, 0xc0, machine.now);
        machine.now.kernel += 3;
        machine.begin(KTHREAD, From::Kernel);
        machine.contexts.create(0xd0);
        machine.contexts.switch(0, 0xd0, machine.now);
        machine.now.kernel += 5;
        machine.contexts.switch(0, 0xa0, machine.now);
        machine.now.kernel += 7;
        let expected = owned(&[
            ("entry_SYSCALL_64;__x64_sys_write", 27, 1),
            ("do_idle", 10, 0),
            ("kthread", 10, 0),
            ("ret_from_fork", 8, 0),
        ]);
        let mut costs = machine.costs();
        costs.sort_by_key(|(_, own, _)| std::cmp::Reverse(*own));
        assert_eq!(costs, expected);
    }
}
