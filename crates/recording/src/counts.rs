//! The instructions of a guest, which the lab's counter plugin counts exactly.
//!
//! A phase is the time between the marks that a measurement sets at its beginning and its end
//! (`measure::mark`); boot, preparation and power-off are outside. Functions have names instead
//! of addresses: nothing here depends on where a kernel was loaded.

use serde::{Deserialize, Serialize};
use units::{Cpu, Instructions, Nanos};

use crate::tuple::tuple_form;

/// Numbers of instructions in rising order, each with how often it occurred.
pub type Values = Vec<(Instructions, u64)>;

/// The counts of all phases, in the order in which they began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The phases.
    pub phases: Vec<PhaseCounts>,
}

/// The counts of one phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseCounts {
    /// The counts of each CPU, in rising order.
    pub cpus: Vec<CpuCounts>,
}

/// The counts of one CPU in one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuCounts {
    /// The CPU.
    pub cpu: Cpu,
    /// Instructions executed by programs.
    pub user: Instructions,
    /// Instructions executed by the kernel.
    pub kernel: Instructions,
    /// Instructions, programs' and kernel's, from one step mark to the next; empty if
    /// the measurement marks no steps.
    pub steps: Values,
    /// The entries to the kernel, by entry point and interrupted level.
    pub interruptions: Vec<Interruption>,
    /// The instructions of each group of threads, in rising order; empty if the measurement has
    /// no groups. They add up to all instructions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupCounts>,
    /// The idle stretches: guest time from each `hlt` to the CPU's next instruction, in rising
    /// order, each with its frequency. One in progress when the phase began or ended counts with
    /// its part within the phase. `None` if QEMU does not export its clock, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ns: Option<Vec<(Nanos, u64)>>,
}

/// The instructions of a group of threads: those that a program has started, directly or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, Instructions, Instructions)")]
#[serde(into = "(u32, Instructions, Instructions)")]
pub struct GroupCounts {
    /// The group: counted from 1 in the order in which the measurement has begun them; 0 are all
    /// other threads, and idle CPUs.
    pub group: u32,
    /// Instructions in user mode.
    pub user: Instructions,
    /// Instructions of the kernel while such a thread was current, interrupts included.
    pub kernel: Instructions,
}

tuple_form!(GroupCounts { group: u32, user: Instructions, kernel: Instructions });

/// The entries to the kernel at one entry point, and their cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruption {
    /// The kernel's name of the entry point: `asm_sysvec_apic_timer_interrupt`.
    pub entry: String,
    /// The interrupted level.
    pub from: Level,
    /// Kernel instructions from entry until the return to the interrupted code (from
    /// `User`: until any program runs again).
    pub kernel: Values,
}

/// A privilege level.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Programs.
    User,
    /// The kernel.
    Kernel,
}
