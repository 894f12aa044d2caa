//! What a cell measures, and what is set and runs besides.

use recording::{CallsSpec, NohzSpec, NoiseSpec, SlicesSpec, TicksSpec};
use units::Cpu;

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measurement {
    /// OS noise on a CPU.
    Noise(NoiseSpec),
    /// Timer interrupts on an idle CPU.
    Ticks(TicksSpec),
    /// The cost of single requests to the kernel.
    Calls(CallsSpec),
    /// Whether the tick of a CPU stops.
    Nohz(NohzSpec),
    /// Time slices of CPU-bound processes.
    Slices(SlicesSpec),
}

/// A kernel setting: a file below `/proc/sys` or `/sys`, and what to write to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The file.
    pub path: String,
    /// What to write.
    pub value: String,
}

/// Threads that compete with what is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundLoad {
    /// The CPU that they are pinned to.
    pub cpu: Cpu,
    /// The number of threads that spin there, as ordinary tasks.
    pub spinners: u32,
}
