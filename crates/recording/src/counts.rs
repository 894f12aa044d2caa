//! What the lab's counter counted in a guest: instructions, to the last one.
//!
//! A phase is the stretch between the marks that a measurement sets at its beginning and
//! its end (`measure::mark`); boot, preparation and power-off are outside. Addresses have
//! become names by then: nothing here depends on where a kernel was loaded.

use serde::{Deserialize, Serialize};
use units::{Cpu, Instructions};

/// How often each number of instructions was seen, in rising order of the number.
pub type Values = Vec<(Instructions, u64)>;

/// What was counted, phase by phase, in the order in which they began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The phases.
    pub phases: Vec<PhaseCounts>,
}

/// What was counted in one phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseCounts {
    /// What each CPU did in it, in rising order.
    pub cpus: Vec<CpuCounts>,
}

/// What one CPU did in one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuCounts {
    /// The CPU.
    pub cpu: Cpu,
    /// Instructions executed by programs.
    pub user: Instructions,
    /// Instructions executed by the kernel.
    pub kernel: Instructions,
    /// Instructions, programs' and kernel's, from one step mark to the next; empty where
    /// the measurement marks no steps.
    pub steps: Values,
    /// How often the kernel was entered, by the way it was entered.
    pub interruptions: Vec<Interruption>,
}

/// One way in which the kernel was entered, and what it then cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruption {
    /// The kernel's name of the entry: `asm_sysvec_apic_timer_interrupt`.
    pub entry: String,
    /// What was interrupted.
    pub from: Level,
    /// Kernel instructions from entering to returning to what was interrupted (from
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
