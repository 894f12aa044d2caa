//! Errors of the lab, with hints.
//!
//! An error's own text does not contain that of its source: `units::chain` prints both.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::DecodeError;
use kernels::{CACHE_VARIABLE, CacheError};

use crate::installation::{
    AGENT, AGENT_ARM64, COUNTER, PARTS_VARIABLE, QEMU_ARM64_PACKAGE, QEMU_PACKAGE,
};
use crate::pack_error::PackError;

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A cell was named that is not in the cache: a usage error.
    Cell,
    /// A kernel is not available or unusable, for that kind of reason.
    Kernel(kernels::Kind),
    /// QEMU is missing, too old, or does not start.
    Qemu,
    /// The agent or the counter is not where this program looks for them.
    Parts,
    /// The cache cannot be read or written.
    Cache,
    /// A program, a library or a file of a cell is missing, or cannot run in a guest.
    Program,
    /// Slurm is missing, does not answer, or refuses a job.
    Slurm,
    /// A guest gave no answer.
    Guest,
    /// The user stopped it.
    Interrupted,
}

/// Why the lab cannot run cells.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A kernel is not available.
    #[error(transparent)]
    Kernel(Arc<kernels::Error>),
    /// No guest with that kernel can send an answer.
    #[error("failed to use kernel {0} in a guest")]
    NoExit(String, #[source] NoExit),
    /// The cache cannot be read or written.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// There is no directory for the cache.
    #[error(
        "failed to find a place for the cache: HOME and {CACHE_VARIABLE} are not set"
    )]
    NoCache,
    /// A cached result cannot be decoded.
    #[error("failed to read the result {}", .0.display())]
    Result(PathBuf, #[source] ResultError),
    /// The cached result of a cell is damaged.
    #[error("the cached result of {0} is damaged")]
    Damaged(String),
    /// No cached cell has that hash.
    #[error("no cached cell has a hash that begins with '{0}'")]
    NoCell(String),
    /// Several cached cells have a hash with that prefix.
    #[error("'{0}' is the beginning of {1} hashes: write more digits")]
    AmbiguousCell(String, usize),
    /// QEMU cannot be run.
    #[error("failed to run QEMU {}", .0.display())]
    NoQemu(PathBuf, #[source] WithPackage),
    /// The program is not QEMU: what it printed instead of a version.
    #[error("failed to use {program} as QEMU: {1}", program = .0.display())]
    NotQemu(PathBuf, String),
    /// QEMU did not start for a guest.
    #[error("failed to start {}", .0.display())]
    StartQemu(PathBuf, #[source] io::Error),
    /// A cell, its CPUs, the version of a QEMU that hangs with several of them in exact mode,
    /// and the first major version that does not.
    #[error(
        "{0} needs {1} CPUs, and QEMU {2} hangs in exact mode with more than \
         one, QEMU {3} does not: {QEMU_PACKAGE}, or use one CPU: --set cpus=1"
    )]
    SeveralCpus(String, u32, String, u32),
    /// A cell, the version of a QEMU without a second serial port for arm64 guests, and the first major
    /// version that has one.
    #[error(
        "{0} has an arm64 kernel, and QEMU {1} has no second serial port for its answer, QEMU {2} does: \
         {QEMU_ARM64_PACKAGE}"
    )]
    OldForArm64(String, String, u32),
    /// A cell with programs of this machine, and its kernel of another architecture.
    #[error(
        "{0} runs programs of this machine, which are for x86-64, and kernel {1} is for arm64: name \
         other kernels"
    )]
    ForeignProgram(String, String),
    /// The agent of arm64 guests is not in that folder, which has the other parts.
    #[error(
        "guests of arm64 need {AGENT_ARM64}, and it is not in {folder}: build it with Debian's cargo: \
         cargo xtask guest --arch arm64",
        folder = .0.display()
    )]
    NoArm64Agent(PathBuf),
    /// A cell, its CPUs, the version of a QEMU that does not load the counter, without which the
    /// cell has no result, and QEMU's reason.
    #[error(
        "{0} needs {1} CPUs, whose instructions only the counter separates, and \
         QEMU {2} does not load it ({3}): {QEMU_PACKAGE}, or use one CPU: --set \
         cpus=1"
    )]
    NoCounter(String, u32, String, String),
    /// It could not be determined whether QEMU loads the counter.
    #[error("failed to start QEMU with the counter: {0}")]
    ProbeCounter(String),
    /// The folder that is named for the parts lacks one.
    #[error(
        "{PARTS_VARIABLE} is {folder}, and there is no {1}: set it to the folder that `make \
         lab` fills, or unset it",
        folder = .0.display()
    )]
    NoPart(PathBuf, &'static str),
    /// The parts are not beside this program.
    #[error(
        "the programs of guests ({AGENT} and {COUNTER}) are not built: run `make lab` in the \
         clone of noisefloor, or set {PARTS_VARIABLE} to their folder"
    )]
    NoParts,
    /// A program of a cell cannot be packed.
    #[error("failed to pack the program of {0}")]
    Pack(String, #[source] Arc<PackError>),
    /// A file of guests cannot be read.
    #[error("failed to read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// The guest's first file system cannot be made.
    #[error("failed to build the initramfs")]
    Initramfs(#[source] io::Error),
    /// The inputs of a cell cannot be written as JSON.
    #[error("failed to write the inputs of a cell")]
    Inputs(#[source] serde_json::Error),
    /// A command of Slurm's cannot be run.
    #[error(
        "failed to run {0}: {1}; hint: --slurm needs a machine from which jobs are submitted (Debian: \
         slurm-client); without it, cells run here"
    )]
    NoSlurm(&'static str, io::Error),
    /// A command of Slurm's failed, with its message.
    #[error("{0} failed: {1}")]
    Slurm(&'static str, String),
    /// A path that cannot be part of a batch script.
    #[error(
        "failed to write a script for Slurm: {} has a character that is impossible there (a backslash, a \
         control character, or one that is not UTF-8); hint: set {CACHE_VARIABLE} to another folder",
        .0.display()
    )]
    SlurmPath(PathBuf),
    /// The path of this program is not known.
    #[error("failed to find the path of this program")]
    NoProgramPath(#[source] io::Error),
    /// A file of an array is not there, or cannot be decoded.
    #[error(
        "failed to read {path}: {1}; hint: nodes need the cache of the machine that submits: set \
         {CACHE_VARIABLE} to a folder on a file system that all of them share",
        path = .0.display()
    )]
    Array(PathBuf, io::Error),
    /// An array has no task of that number.
    #[error("the array in {folder} has no task {1}", folder = .0.display())]
    NoTask(PathBuf, usize),
    /// A node would run another cell than the one that it got: what is different there.
    #[error(
        "this node would run another cell: it has another {0} than the machine that submitted it; hint: \
         install the same versions of QEMU and noisefloor on all nodes"
    )]
    OtherNode(String),
    /// The image of a kernel has changed since it was found.
    #[error("the kernel {} was changed meanwhile: run the command again", .0.display())]
    ChangedKernel(PathBuf),
    /// A guest that should have run a program gave no answer.
    #[error("the guest failed: {0}")]
    Guest(String),
    /// The user stopped it.
    #[error("interrupted before a result was complete")]
    Interrupted,
}

/// What is wrong with the files of a result.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no answer of an agent.
    #[error(transparent)]
    Answer(#[from] DecodeError),
    /// It is the answer to another task.
    #[error("it is no recording")]
    NoRecording,
    /// It is not the counter's output.
    #[error(transparent)]
    Counts(#[from] serde_json::Error),
}

/// Why a guest cannot send an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "its answer cannot leave the guest: {closed}, and with {option}={ports} it has no \
     second serial port"
)]
pub struct NoExit {
    /// What keeps programs from I/O ports.
    pub(crate) closed: String,
    /// The option of the kernel's configuration.
    pub(crate) option: String,
    /// How many serial ports it has.
    pub(crate) ports: u32,
}

/// An error with the remedy to install QEMU.
#[derive(Debug, thiserror::Error)]
#[error("{0}; hint: {1}")]
pub struct WithPackage(pub(crate) io::Error, pub(crate) &'static str);

impl Error {
    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Kernel(error) => Kind::Kernel(error.kind()),
            Self::NoExit(..) => Kind::Kernel(kernels::Kind::Kernel),
            Self::Cache(_)
            | Self::NoCache
            | Self::Result(..)
            | Self::Damaged(_)
            | Self::Inputs(_) => Kind::Cache,
            Self::NoCell(_) | Self::AmbiguousCell(..) => Kind::Cell,
            Self::NoQemu(..)
            | Self::NotQemu(..)
            | Self::StartQemu(..)
            | Self::SeveralCpus(..)
            | Self::OldForArm64(..)
            | Self::NoCounter(..)
            | Self::ProbeCounter(_) => Kind::Qemu,
            Self::NoPart(..)
            | Self::NoParts
            | Self::NoArm64Agent(_)
            | Self::Read(..)
            | Self::Initramfs(_) => Kind::Parts,
            Self::Pack(..) | Self::ForeignProgram(..) => Kind::Program,
            Self::NoSlurm(..)
            | Self::Slurm(..)
            | Self::SlurmPath(_)
            | Self::NoProgramPath(_)
            | Self::Array(..)
            | Self::NoTask(..)
            | Self::OtherNode(_)
            | Self::ChangedKernel(_) => Kind::Slurm,
            Self::Guest(_) => Kind::Guest,
            Self::Interrupted => Kind::Interrupted,
        }
    }
}

impl From<kernels::Error> for Error {
    fn from(error: kernels::Error) -> Self {
        Self::Kernel(Arc::new(error))
    }
}

/// A failure to read or write a path in the cache, for `map_err`.
pub(crate) fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error + Copy {
    move |error| CacheError::new(path, error).into()
}
