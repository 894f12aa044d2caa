//! The instructions of a guest, which the lab's counter plugin counts exactly.
//!
//! A phase is the time between the marks that a measurement sets at its beginning and its end
//! (`measure::mark`); boot, preparation and power-off are outside. Functions have names instead
//! of addresses: nothing here depends on where a kernel was loaded.

use serde::{Deserialize, Serialize};
use units::{Cpu, Instructions, Nanos};

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
    /// The idle stretches: guest time from each `hlt` to the CPU's next instruction, in rising
    /// order, each with its frequency. One in progress when the phase began or ended counts with
    /// its part within the phase. `None` if QEMU does not export its clock, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ns: Option<Vec<(Nanos, u64)>>,
}

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
