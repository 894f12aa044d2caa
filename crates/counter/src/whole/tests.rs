//! Threads, interruptions and system calls, block by block.

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

/// A machine, its symbols, and how much its CPUs have executed.
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

    /// Each CPU's stacks, in instructions; they add up to what was executed.
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

/// Check that a system call that sleeps, a kernel thread and idle have each their own,
/// whichever ran between, and that a thread's callers become known as it returns.
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

/// Check that an interruption is apart from what it interrupted, which then goes on where
/// it was, and that a switch inside it is another thread's.
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

/// Check that a new thread begins anew, also at the address of one that is gone.
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
    let of =
        |path: &str| stacks.iter().find(|(known, _)| known == path).map(|(_, own)| *own);
    assert_eq!(of("ret_from_fork;kthread;schedule"), Some(20));
    assert_eq!(of("ret_from_fork"), Some(20));
}

/// Check that each CPU has its own, also of a thread that went from one to the other, and
/// that a phase has nothing of what was before it.
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

/// Check that more places than are kept lose no instruction, and no memory.
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
