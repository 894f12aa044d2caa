//! Instructions by kernel function: of kinds of interruptions and steps, and of whole phases.
//!
//! Episodes are of one kind if they executed the same number of instructions in the same
//! functions, called the same way. The most frequent kinds are stored, each with how often it
//! occurred; a kind's stacks add up to its total exactly. Of steps the one that cost as much as
//! the median of its phase is stored, too.

use serde::{Deserialize, Serialize};
use units::{Cpu, Instructions};

use crate::Level;
use crate::tuple::tuple_form;

/// The stored episodes, and the names of the functions in them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Names of functions; frames are indices into this list.
    pub names: Vec<String>,
    /// The kinds of episodes, in the order of their first occurrence.
    pub episodes: Vec<Episode>,
    /// All of the kernel's instructions in the first phases, by CPU and function.
    #[serde(default)]
    pub phases: Vec<PhaseCalls>,
    /// Of a program, instead: all of the kernel's instructions by context, on all CPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<Context>,
    /// Of a program: all of the kernel's instructions by function, on all CPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionOwn>,
}

/// The instructions of the kernel in a context: for a system call, an interrupt, a softirq, the
/// tick, a kernel thread, or the idle loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, Vec<usize>, Instructions, u64)")]
#[serde(into = "(u32, Vec<usize>, Instructions, u64)")]
pub struct Context {
    /// The group of the threads, as in [`crate::GroupCounts`].
    pub group: u32,
    /// The functions at which it began, the outermost first; indices into `Profile::names`.
    pub frames: Vec<usize>,
    /// Instructions in it, without those in contexts that begin with these frames.
    pub own: Instructions,
    /// How often it began.
    pub times: u64,
}

tuple_form!(Context { group: u32, frames: Vec<usize>, own: Instructions, times: u64 });

/// The instructions of a function itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, usize, Instructions)")]
#[serde(into = "(u32, usize, Instructions)")]
pub struct FunctionOwn {
    /// The group of the threads.
    pub group: u32,
    /// The function's index in `Profile::names`.
    pub name: usize,
    /// Its instructions.
    pub own: Instructions,
}

tuple_form!(FunctionOwn { group: u32, name: usize, own: Instructions });

/// All instructions of the kernel on one CPU in one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseCalls {
    /// The phase, counted from 0.
    pub phase: usize,
    /// The CPU.
    pub cpu: Cpu,
    /// Functions by call path, each after its caller. The outermost are the kernel's entry
    /// points, and the functions of its threads. Their own instructions add up to the CPU's
    /// kernel instructions; the cheapest functions are counted as part of their callers.
    pub calls: Vec<Called>,
}

/// One function on one call path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(usize, Option<usize>, Instructions)")]
#[serde(into = "(usize, Option<usize>, Instructions)")]
pub struct Called {
    /// The function's index in `Profile::names`.
    pub name: usize,
    /// The caller's index in the list; `None`: an outermost function.
    pub caller: Option<usize>,
    /// Instructions executed in the function itself.
    pub own: Instructions,
}

tuple_form!(Called { name: usize, caller: Option<usize>, own: Instructions });

/// One kind of interruption, or of step of a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Episode {
    /// The CPU.
    pub cpu: Cpu,
    /// Interruption or step.
    pub what: What,
    /// Its instructions: those of the kernel for an interruption, all for a step.
    pub total: Instructions,
    /// How often it occurred: phases, counted from 0 in rising order, and the number in each.
    pub times: Vec<(usize, u64)>,
    /// Its instructions by stack; each stack occurs once.
    pub stacks: Vec<Stack>,
}

/// The type of an episode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// From one step mark to the next.
    Step,
    /// From entry to the kernel until exit.
    Interruption {
        /// The kernel's name of the entry point.
        entry: String,
        /// The interrupted level.
        from: Level,
    },
}

/// The instructions of one function on one call path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// From the outermost function to the innermost; indices into `Profile::names`.
    pub frames: Vec<usize>,
    /// Instructions executed in the innermost function itself.
    pub own: Instructions,
}
