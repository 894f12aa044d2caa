//! One guest run of the lab: its parameters and its result.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use units::{Cpu, Nanos};

use crate::{Counts, Profile, Recording, Source};

/// A cell: kernel x boot parameters x settings x workload x mode; serialized without its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// The name of its row in the experiment: `fifo`.
    pub name: String,
    /// The kernel's name, as the user wrote it: `debian:6.1-cloud`.
    pub asked: String,
    /// The kernel's release, and its package's version if it is from a package.
    pub kernel: String,
    /// The size of the kernel's image in bytes; `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_bytes: Option<u64>,
    /// A short description of the guest's machine: `pc, 2 CPUs of max, 256 MiB`.
    pub machine: String,
    /// The boot parameters that this cell adds to the lab's own.
    pub params: String,
    /// Kernel settings written before the measurement: `/proc/sys/...=value`.
    pub settings: Vec<String>,
    /// The command lines of services that are no part of the workload and run during it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// A short description of what ran and was measured.
    pub workload: String,
    /// The source of the kernel's events; `None`: events were not traced.
    #[serde(rename = "trace", skip_serializing_if = "Option::is_none")]
    pub watch: Option<Source>,
    /// Whether guest time is instructions or real time.
    pub mode: Mode,
    /// Which repeat of the same cell this is, from 1.
    pub repeat: u32,
    /// The hash of everything that the result depends on, in hexadecimal.
    pub identity: String,
    /// Whether the result is from the cache.
    pub cached: bool,
    /// The result; with several variations, that of the first one that has one.
    #[serde(skip)]
    pub ending: Ending,
    /// The other variations, in their order.
    #[serde(skip)]
    pub variations: Vec<Variation>,
}

/// A further run of a cell, in which inputs that should not matter differ from those of its first
/// run. By itself it is as exact as that.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Variation {
    /// Its number; the cell's first run is number 1.
    pub number: u32,
    /// The hash of everything that its result depends on, in hexadecimal.
    pub identity: String,
    /// Whether the result is from the cache.
    pub cached: bool,
    /// The result.
    #[serde(skip)]
    pub ending: Ending,
}

/// A kernel setting of a guest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestSetting {
    /// A file below `/proc/sys` or `/sys`.
    pub path: String,
    /// The text that is written to it.
    pub value: String,
}

/// Threads that compete with the measurement in a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackgroundLoad {
    /// The CPU that they are pinned to.
    pub cpu: Cpu,
    /// The number of busy threads, which are ordinary tasks.
    pub spinners: u32,
}

/// The programs besides the kernel that a cell's result depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MadeWith {
    /// The SHA-256 of the agent, the program that runs in guests, in hexadecimal.
    pub agent_sha256: String,
    /// The SHA-256 of the counter, QEMU's plugin, in hexadecimal.
    pub counter_sha256: String,
    /// The version of QEMU: `10.0.2 (Debian 1:10.0.2+ds-2)`.
    pub qemu: String,
    /// Those of cells with arm64 kernels; `None` if there are no such cells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arm64: Option<MadeWithArm64>,
}

/// What differs from [`MadeWith`] in guests of arm64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MadeWithArm64 {
    /// The SHA-256 of the agent of arm64 guests, in hexadecimal.
    pub agent_sha256: String,
    /// The version of `qemu-system-aarch64`.
    pub qemu: String,
}

/// The meaning of guest time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The count of guest instructions: the result is a pure function of its inputs.
    Exact,
    /// Real time, which varies.
    Timed,
}

/// The result of a guest's run.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// The guest sent an answer.
    Done(Box<Answer>),
    /// The guest sent no answer.
    Lost {
        /// The reason, as it follows "lost: ".
        why: String,
        /// The file of the guest's console output.
        console: PathBuf,
    },
}

/// A guest's answer, and the instructions that were counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The guest's recording.
    pub recording: Recording,
    /// The counted instructions; `None` in timed mode, or if QEMU does not support plugins.
    pub counts: Option<Counts>,
    /// The instructions by function; `None` as above.
    pub profile: Option<Profile>,
    /// What the guest's process used on the host; only in timed mode.
    pub host: Option<HostUse>,
}

/// What the process of a guest used on the host while the agent executed its order: preparation
/// and measurement, without the boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostUse {
    /// The CPU time of all its threads, in steps of 10 ms.
    pub cpu_ns: Nanos,
    /// The wall time; both ends are noticed up to 50 ms late.
    pub wall_ns: Nanos,
}
