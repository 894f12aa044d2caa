//! All instructions of a phase, by the entry into the kernel or the kernel thread, and by function.
//!
//! The entry is derived from the names of a stack's outermost functions: the kernel's entries
//! (arch/x86/entry), and the first functions of its threads. On arm64 the entries are the vectors that the
//! counter names, and the functions below tell system calls from exceptions
//! (arch/arm64/kernel/entry-common.c).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;
use units::{Instructions, Nanos, PerSecond, Ppm};

use crate::explain::call_stack::CallStack;
use crate::explain::explanation::Explanation;

/// Stands for all code of programs.
pub const PROGRAM: &str = "[program]";
/// The prefix of the kernel's entries for system calls.
const SYSTEM_CALL: &str = "entry_SYSCALL";
/// The prefixes of the kernel's functions of system calls.
const CALLS: [&str; 5] =
    ["__x64_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_", "__ia32_sys_"];
/// The prefix and the ends of the counter's names of arm64's vectors.
const VECTOR: &str = "vector_";
const VECTOR_INTERRUPTS: [&str; 2] = ["_irq", "_fiq"];
/// The function of arm64 kernels for all system calls.
const ARM64_CALL: &str = "el0_svc";
/// The prefix and the end of the functions before the one that tells what an exception is: `el0t_64_sync`,
/// `el0t_64_sync_handler`.
const ARM64_LEVEL: &str = "el";
const ARM64_COMMON: [&str; 2] = ["_sync", "_sync_handler"];
/// The function that calls a kernel thread's own function.
const KERNEL_THREAD: &str = "kthread";
/// The first functions of a task: a kernel thread continues in `KERNEL_THREAD`, a process in user
/// mode. The last two lead there from another task.
const NEW_TASK: [&str; 4] =
    ["ret_from_fork_asm", "ret_from_fork", "__switch_to_asm", "__switch_to"];
/// The functions that call the functions of softirqs (kernel/softirq.c): since 6.9, before, and
/// the latter's name in symbols from 4.12 on.
const SOFTIRQS: [&str; 3] =
    ["handle_softirqs", "__do_softirq", "__softirqentry_text_start"];
/// The functions of the tick (kernel/time/tick-sched.c, tick-common.c): of high-resolution timers
/// before 6.9, of both modes since, and of periodic clock event devices.
const TICKS: [&str; 5] = [
    "tick_sched_timer",
    "tick_nohz_handler",
    "tick_nohz_lowres_handler",
    "tick_handle_periodic",
    "tick_periodic",
];
/// These functions, and those of idle CPUs, are among so many outermost ones.
const OUTERMOST: usize = 3;
/// Functions in which a CPU is only while it is idle.
const IDLE: [&str; 5] = [
    "do_idle",
    "cpu_startup_entry",
    "start_secondary",
    "secondary_startup_64",
    "rest_init",
];

/// What executed the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Programs, in user mode.
    Program,
    /// The kernel, for a system call.
    SystemCall,
    /// The kernel, for an interrupt, without softirqs and the tick.
    Interrupt,
    /// The kernel, for the tick, within a timer interrupt.
    Tick,
    /// The kernel, for a softirq, in any context.
    Softirq,
    /// The kernel, for an exception: a page fault.
    Exception,
    /// A kernel thread.
    Thread,
    /// A new task: a process before it is in user mode.
    NewTask,
    /// An idle CPU.
    Idle,
}

/// The instructions of a part of a guest for one system call, interrupt, softirq or thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EntryCost {
    /// What executed them.
    pub kind: EntryKind,
    /// The name of the system call, of the interrupt's entry, or of the softirq's function.
    pub name: String,
    /// The instructions.
    pub instructions: Instructions,
    /// How often it began; 0 if that is not known.
    pub times: u64,
}

impl EntryCost {
    /// Adds up instructions and frequencies by what executed them, in descending order of instructions.
    pub(crate) fn added_up<'a>(
        parts: impl Iterator<Item = ((EntryKind, &'a str), Instructions, u64)>,
    ) -> Vec<Self> {
        let mut costs: BTreeMap<(EntryKind, &str), (Instructions, u64)> = BTreeMap::new();
        for (entry, instructions, times) in parts {
            let cost = costs.entry(entry).or_default();
            *cost = (cost.0 + instructions, cost.1 + times);
        }
        let cost = |((kind, name), (instructions, times)): ((EntryKind, &str), _)| Self {
            kind,
            name: name.to_owned(),
            instructions,
            times,
        };
        let mut costs: Vec<Self> = costs.into_iter().map(cost).collect();
        costs.retain(|cost| cost.instructions > Instructions::ZERO);
        costs.sort_by_key(|cost| Reverse(cost.instructions));
        costs
    }
}

/// One entry into the kernel, or one kernel thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseEntry {
    /// What executed them.
    pub kind: EntryKind,
    /// The name of the system call, the entry or the thread's function.
    pub name: String,
    /// All its instructions.
    pub instructions: Instructions,
    /// That per second; null if the phase's length is unknown.
    pub instructions_hz: Option<PerSecond>,
}

/// All instructions of a phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseExplanation {
    /// The phase's length, in guest time; null if unknown.
    pub elapsed_ns: Option<Nanos>,
    /// All instructions per second.
    pub instructions_hz: Option<PerSecond>,
    /// Those of programs.
    pub user_instructions: Instructions,
    /// Those of the kernel.
    pub kernel_instructions: Instructions,
    /// By what executed them, in descending order; they add up to all.
    pub entries: Vec<PhaseEntry>,
    /// All of them, and by function.
    #[serde(flatten)]
    pub explanation: Explanation,
}

impl PhaseExplanation {
    /// Adds up stacks by entry, beside their explanation by function; the outermost function of
    /// programs is [`PROGRAM`].
    pub fn of(
        elapsed: Option<Nanos>,
        stacks: &[CallStack<'_>],
        explanation: Explanation,
    ) -> Self {
        let hz = |part: Instructions| {
            elapsed.and_then(|elapsed| PerSecond::of(part.get(), elapsed))
        };
        let parts = stacks.iter().map(|stack| (entry(stack.frames()), stack.own(), 0));
        let one = |EntryCost { kind, name, instructions, .. }| PhaseEntry {
            kind,
            name,
            instructions,
            instructions_hz: hz(instructions),
        };
        let costs = EntryCost::added_up(parts).into_iter();
        let entries: Vec<PhaseEntry> = costs.map(one).collect();
        let of = |is_program| {
            let of_kind =
                |entry: &&PhaseEntry| (entry.kind == EntryKind::Program) == is_program;
            entries.iter().filter(of_kind).map(|entry| entry.instructions).sum()
        };
        Self {
            elapsed_ns: elapsed,
            instructions_hz: hz(explanation.total_instructions),
            user_instructions: of(true),
            kernel_instructions: of(false),
            entries,
            explanation,
        }
    }

    /// A part of all instructions.
    pub fn share(&self, part: Instructions) -> Option<Ppm> {
        self.explanation.share(part)
    }
}

/// What executed a stack's instructions.
pub(crate) fn entry<'a>(frames: &[&'a str]) -> (EntryKind, &'a str) {
    let outermost = frames.first().copied().unwrap_or_default();
    if outermost == PROGRAM {
        return (EntryKind::Program, PROGRAM);
    }
    if let Some(place) = frames.iter().rposition(|name| SOFTIRQS.contains(name)) {
        return (EntryKind::Softirq, frames.get(place + 1).unwrap_or(&frames[place]));
    }
    if frames.iter().any(|name| TICKS.contains(name)) {
        return (EntryKind::Tick, "tick");
    }
    let below = &frames[..frames.len().min(OUTERMOST)];
    if below.iter().any(|name| IDLE.contains(name)) {
        return (EntryKind::Idle, "do_idle");
    }
    if outermost.starts_with(SYSTEM_CALL) {
        return (EntryKind::SystemCall, system_call(frames).unwrap_or(outermost));
    }
    if outermost.starts_with(VECTOR) {
        return of_vector(frames, outermost);
    }
    if outermost.starts_with("asm_exc_") {
        return (EntryKind::Exception, outermost);
    }
    if outermost.starts_with("asm_") || outermost.ends_with("_entries_start") {
        return (EntryKind::Interrupt, outermost);
    }
    let thread = below.iter().position(|&name| name == KERNEL_THREAD);
    match thread.and_then(|place| frames.get(place + 1)) {
        Some(function) => (EntryKind::Thread, function),
        None if thread.is_none() && NEW_TASK.contains(&outermost) => {
            (EntryKind::NewTask, "ret_from_fork")
        }
        None => (EntryKind::Thread, outermost),
    }
}

/// What executed the instructions of an arm64 stack that begins with that vector.
fn of_vector<'a>(frames: &[&'a str], vector: &'a str) -> (EntryKind, &'a str) {
    if VECTOR_INTERRUPTS.iter().any(|end| vector.ends_with(end)) {
        return (EntryKind::Interrupt, vector);
    }
    if frames.contains(&ARM64_CALL) {
        return (EntryKind::SystemCall, system_call(frames).unwrap_or(ARM64_CALL));
    }
    let is_common = |name: &str| ARM64_COMMON.iter().any(|end| name.ends_with(end));
    let tells = |name: &&&'a str| name.starts_with(ARM64_LEVEL) && !is_common(name);
    (EntryKind::Exception, frames.iter().find(tells).unwrap_or(&vector))
}

/// The name of a system call, without the kernel's prefix.
fn system_call<'a>(frames: &[&'a str]) -> Option<&'a str> {
    let named = |name: &&'a str| CALLS.iter().find_map(|start| name.strip_prefix(start));
    frames.iter().find_map(named)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::explain::example::{any_stacks, stacks};

    fn explained(elapsed: Option<Nanos>, stacks: &[CallStack<'_>]) -> PhaseExplanation {
        PhaseExplanation::of(elapsed, stacks, Explanation::of(stacks))
    }

    /// Check the entries of stacks.
    #[test]
    fn entries() {
        use EntryKind::{
            Exception, Idle, Interrupt, NewTask, Program, Softirq, SystemCall, Thread,
            Tick,
        };
        for (frames, expected) in [
            ("[program]", (Program, "[program]")),
            ("entry_SYSCALL_64;do_syscall_64;__x64_sys_pipe2;f", (SystemCall, "pipe2")),
            ("entry_SYSCALL_64;do_syscall_64", (SystemCall, "entry_SYSCALL_64")),
            (
                "vector_el0t_64_sync;el0t_64_sync;el0t_64_sync_handler;el0_svc;do_el0_svc;\
                 invoke_syscall;__arm64_sys_pipe2;f",
                (SystemCall, "pipe2"),
            ),
            (
                "vector_el0t_64_sync;el0t_64_sync;el0t_64_sync_handler;el0_svc",
                (SystemCall, "el0_svc"),
            ),
            (
                "vector_el0t_64_sync;el0t_64_sync;el0t_64_sync_handler;el0_da;f",
                (Exception, "el0_da"),
            ),
            ("vector_el0t_64_sync;el0t_64_sync", (Exception, "vector_el0t_64_sync")),
            (
                "vector_el1h_64_irq;el1h_64_irq;el1_interrupt",
                (Interrupt, "vector_el1h_64_irq"),
            ),
            (
                "vector_el1h_64_irq;el1h_64_irq;arch_timer_handler_virt;tick_nohz_handler",
                (Tick, "tick"),
            ),
            ("asm_exc_page_fault;f", (Exception, "asm_exc_page_fault")),
            ("asm_sysvec_reschedule_ipi", (Interrupt, "asm_sysvec_reschedule_ipi")),
            ("irq_entries_start;f", (Interrupt, "irq_entries_start")),
            (
                "ret_from_fork_asm;ret_from_fork;kthread;kdamond_fn;f",
                (Thread, "kdamond_fn"),
            ),
            ("kdamond_fn;f", (Thread, "kdamond_fn")),
            ("ret_from_fork;kthread;worker_thread", (Thread, "worker_thread")),
            ("ret_from_fork", (NewTask, "ret_from_fork")),
            ("ret_from_fork;schedule_tail", (NewTask, "ret_from_fork")),
            ("__switch_to", (NewTask, "ret_from_fork")),
            ("start_secondary;cpu_startup_entry;do_idle;f", (Idle, "do_idle")),
            ("do_idle;schedule_idle", (Idle, "do_idle")),
            (
                "asm_sysvec_apic_timer_interrupt;hrtimer_interrupt;tick_sched_timer;f",
                (Tick, "tick"),
            ),
            (
                "asm_sysvec_apic_timer_interrupt;__do_softirq;rcu_core",
                (Softirq, "rcu_core"),
            ),
            (
                "entry_SYSCALL_64;__x64_sys_sendto;handle_softirqs;net_rx_action;f",
                (Softirq, "net_rx_action"),
            ),
            ("ret_from_fork;kthread;handle_softirqs", (Softirq, "handle_softirqs")),
        ] {
            let frames: Vec<&str> = frames.split(';').collect();
            assert_eq!(entry(&frames), expected, "{frames:?}");
        }
    }

    /// Check the keys: this is the JSON contract.
    #[test]
    fn contract() {
        let stacks = stacks(&["[program] 30", "kdamond_fn;f 70"]);
        let found = explained(Some(Nanos::from_secs(2)), &stacks);
        let expected = serde_json::json!({
            "elapsed_ns": 2_000_000_000_u64, "instructions_hz": 50.0,
            "user_instructions": 30, "kernel_instructions": 70,
            "entries": [
                {"kind": "thread", "name": "kdamond_fn", "instructions": 70,
                 "instructions_hz": 35.0},
                {"kind": "program", "name": "[program]", "instructions": 30,
                 "instructions_hz": 15.0},
            ],
            "total_instructions": 100,
            "functions": [
                {"name": "f", "own_instructions": 70, "total_instructions": 70},
                {"name": "[program]", "own_instructions": 30, "total_instructions": 30},
                {"name": "kdamond_fn", "own_instructions": 0, "total_instructions": 70},
            ],
        });
        assert_eq!(serde_json::to_value(found).unwrap(), expected);
    }

    proptest! {
        /// Check that entries add up to all instructions, and so do programs and kernel.
        #[test]
        fn adds_up(stacks in any_stacks(), user in 0u64..99) {
            let program = CallStack::new(vec![PROGRAM], Instructions::new(user));
            let stacks = [stacks, vec![program]].concat();
            let found = explained(None, &stacks);
            let whole: Instructions = stacks.iter().map(CallStack::own).sum();
            prop_assert_eq!(found.explanation.total_instructions, whole);
            prop_assert_eq!(found.user_instructions.get(), user);
            prop_assert_eq!(found.user_instructions + found.kernel_instructions, whole);
            let sum: Instructions = found.entries.iter().map(|one| one.instructions).sum();
            prop_assert_eq!(sum, whole);
        }
    }
}
