//! The measurement of a cell, its settings and its background load.

use recording::{CallsSpec, NohzSpec, NoiseSpec, SlicesSpec, TicksSpec};
use units::Cpu;

/// The measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measurement {
    /// OS noise on a CPU.
    Noise(NoiseSpec),
    /// Timer interrupts on an idle CPU.
    Ticks(TicksSpec),
    /// The cost of single system calls.
    Calls(CallsSpec),
    /// Whether the tick of a CPU stops.
    Nohz(NohzSpec),
    /// Time slices of CPU-bound processes.
    Slices(SlicesSpec),
}

/// A kernel setting: a file below `/proc/sys` or `/sys`, and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The file.
    pub path: String,
    /// The value.
    pub value: String,
}

/// Threads that compete with the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundLoad {
    /// The CPU that they are pinned to.
    pub cpu: Cpu,
    /// The number of threads that spin there, as ordinary tasks.
    pub spinners: u32,
}
