//! The machine that a guest has: its board, CPUs and memory.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer};

use crate::error::EntryError;
use crate::from_text::read_from_text;

/// QEMU's oldest 64-bit model, without the instruction that returns random numbers.
const CPU: &str = "qemu64,-rdrand";

/// The CPU of arm64 guests: that of many servers, without an instruction that returns random numbers. Its
/// counter counts nanoseconds, which are instructions in exact mode.
const ARM64_CPU: &str = "neoverse-n1,cntfrq=1000000000";

/// A guest's machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The board.
    pub kind: MachineKind,
    /// The value of QEMU's `-cpu`.
    pub cpu: String,
    /// The number of CPUs, from 1.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
}

impl Machine {
    /// The most memory of a guest, in MiB.
    pub const MEMORY_MAX_MIB: u32 = 4096;

    /// The machine of an arm64 guest with as many CPUs and as much memory: board and CPU of an experiment are
    /// those of x86-64 guests.
    #[must_use]
    pub fn of_arm64(&self) -> Self {
        Self { kind: MachineKind::Virt, cpu: ARM64_CPU.to_owned(), ..self.clone() }
    }
}

impl Default for Machine {
    /// The machine of an experiment that does not specify it.
    fn default() -> Self {
        Self { kind: MachineKind::Pc, cpu: CPU.to_owned(), cpus: 1, memory_mib: 256 }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, cpu, cpus, memory_mib } = self;
        let s = if *cpus == 1 { "" } else { "s" };
        write!(f, "{}, {cpus} CPU{s} of {cpu}, {memory_mib} MiB", kind.name())
    }
}

/// A guest's board.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum MachineKind {
    /// The usual PC, QEMU's `pc`.
    #[default]
    Pc,
    /// QEMU's `microvm`: fewer devices, boots in half the time, and its tick is cheaper.
    Microvm,
    /// QEMU's `virt`, the board of all arm64 guests; not part of experiments.
    Virt,
}

impl MachineKind {
    /// Its name in experiments.
    fn name(self) -> &'static str {
        match self {
            Self::Pc => "pc",
            Self::Microvm => "microvm",
            Self::Virt => "virt",
        }
    }
}

impl FromStr for MachineKind {
    type Err = EntryError;

    fn from_str(text: &str) -> Result<Self, EntryError> {
        let mut kinds = [Self::Pc, Self::Microvm].into_iter();
        let kind = kinds.find(|kind| kind.name() == text);
        kind.ok_or_else(|| EntryError::Machine(text.to_owned()))
    }
}

read_from_text!(MachineKind);
