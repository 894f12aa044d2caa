//! Where instructions go: kinds of interruptions and steps, and whole phases, taken apart by
//! kernel function.
//!
//! Episodes are of one kind if they executed the same number of instructions in the same
//! functions, called the same way. The most frequent kinds are kept, each with how often it
//! was seen; a kind's stacks add up to its total exactly. Of steps the one that cost as much
//! as the median of its phase is kept, too.

use serde::{Deserialize, Serialize};
use units::{Cpu, Instructions};

use crate::Level;

/// The episodes that were kept, and the names of the functions in them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Names of functions; frames are places in this list.
    pub names: Vec<String>,
    /// The kinds of episodes, in the order in which they were first seen.
    pub episodes: Vec<Episode>,
    /// Where all of the kernel's instructions went, of the first phases and each CPU.
    #[serde(default)]
    pub phases: Vec<PhaseCalls>,
}

/// What the kernel executed on one CPU in all of one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseCalls {
    /// The phase, counted from 0.
    pub phase: usize,
    /// The CPU.
    pub cpu: Cpu,
    /// Functions by the way they were called, each after its caller. The outermost are
    /// the kernel's entries, and the functions of its threads. Their own instructions
    /// add up to the CPU's kernel instructions; what took least counts as its caller.
    pub calls: Vec<Called>,
}

/// One function, called that way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(usize, Option<usize>, Instructions)")]
#[serde(into = "(usize, Option<usize>, Instructions)")]
pub struct Called {
    /// The function's place in `Profile::names`.
    pub name: usize,
    /// The caller's place in the list; `None`: nothing called it.
    pub caller: Option<usize>,
    /// Instructions executed in the function itself.
    pub own: Instructions,
}

impl From<(usize, Option<usize>, Instructions)> for Called {
    fn from((name, caller, own): (usize, Option<usize>, Instructions)) -> Self {
        Self { name, caller, own }
    }
}

impl From<Called> for (usize, Option<usize>, Instructions) {
    fn from(Called { name, caller, own }: Called) -> Self {
        (name, caller, own)
    }
}

/// One kind of interruption, or of step of a measurement, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Episode {
    /// The CPU.
    pub cpu: Cpu,
    /// What it is.
    pub what: What,
    /// All its instructions: of an interruption the kernel's; of a step all.
    pub total: Instructions,
    /// How often it was seen: phases, counted from 0 in rising order, and the number in each.
    pub times: Vec<(usize, u64)>,
    /// Where they went. A stack is there once.
    pub stacks: Vec<Stack>,
}

/// What an episode is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// From one step mark to the next.
    Step,
    /// The kernel was entered, and left.
    Interruption {
        /// The kernel's name of the entry.
        entry: String,
        /// What was interrupted.
        from: Level,
    },
}

/// The instructions that were executed in one function, called that way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// From the outermost function to the one that the instructions are in; places in
    /// `Profile::names`.
    pub frames: Vec<usize>,
    /// Instructions executed in the innermost function itself.
    pub own: Instructions,
}
