//! Why a kernel cannot be built, with hints.

use std::io;
use std::path::{Path, PathBuf};

/// Why a kernel cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The source is no kernel's: its path, and why.
    #[error("{} is no source of a Linux kernel: {why}", .path.display())]
    NotKernel {
        /// The tree, or the archive.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// Kbuild refuses such a tree.
    #[error(
        "{} has the files of a build in place, with which make cannot build in another \
         folder; hint: run make mrproper there, or build a copy (git worktree add)",
        .0.display()
    )]
    BuiltInPlace(PathBuf),
    /// Kbuild refuses the path of a tree, or of the folder of a build.
    #[error(
        "make of the Linux kernel accepts no path with spaces, colons or characters that are \
         special to a shell: {}; hint: move the source, or set NOISEFLOOR_CACHE to another \
         directory", .0.display()
    )]
    Spaces(PathBuf),
    /// The tree changed while it was built.
    #[error("{} changed during the build; hint: build it again", .0.display())]
    Changed(PathBuf),
    /// A file that cannot be read.
    #[error("failed to read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// A directory, a pipe or a device, or a file that is too large for one with options.
    #[error("{} is not a file with options", .0.display())]
    NotText(PathBuf),
    /// A file that cannot be written.
    #[error("failed to write {}", .0.display())]
    Write(PathBuf, #[source] io::Error),
    /// A line of a fragment that is no option.
    #[error(
        "{}:{number}: '{text}' is not an option: write CONFIG_NAME=VALUE, or \
         # CONFIG_NAME is not set", .file.display()
    )]
    Line {
        /// The file.
        file: PathBuf,
        /// The line's number, from 1.
        number: usize,
        /// The line.
        text: String,
    },
    /// A fragment asks for a module: where, and the option.
    #[error("{0}: {1}=m: guests load no modules; hint: write {1}=y")]
    Module(String, String),
    /// An option that this kernel does not have: where it is requested, its name, similar ones.
    #[error("{0}: Linux {1} has no option {2}; {3}")]
    NoOption(String, String, String, String),
    /// A value of another type: where it is requested, the option, and its values.
    #[error("{0}: the value of {1} must be {2}")]
    Value(String, String, &'static str),
    /// Options that Kconfig gave other values, and why.
    #[error("Kconfig does not accept {}", .0.join("; "))]
    Dropped(Vec<String>),
    /// The headers refuse a frequency of the tick, with the compiler's message.
    #[error("HZ={0} is refused by the kernel's headers: {1}")]
    Hz(u32, String),
    /// Missing programs and headers, and their packages.
    #[error("{0} not installed; hint: apt install {1}")]
    Tools(String, String),
    /// A program failed, with the first error, and the file with all of its output.
    #[error("{error}; all messages are in {}", .log.display())]
    Failed {
        /// The first error.
        error: String,
        /// The file.
        log: PathBuf,
    },
    /// A program failed because the disk is full.
    #[error(
        "no space left on device for {}; hint: free some space (a lean kernel needs 500 MB, \
         its source 1.6 GB), or set NOISEFLOOR_CACHE to another directory", .0.display()
    )]
    Full(PathBuf),
    /// A program cannot be started or awaited.
    #[error("failed to run {0}")]
    Run(&'static str, #[source] io::Error),
}

impl BuildError {
    /// The failure to write a file in the folder of a build.
    pub(crate) fn of_writing(file: &Path, error: io::Error) -> Self {
        match error.kind() == io::ErrorKind::StorageFull {
            true => Self::Full(file.parent().unwrap_or(file).to_owned()),
            false => Self::Write(file.to_owned(), error),
        }
    }

    /// Whether another commit of the same source may build.
    pub(crate) fn is_of_source(&self) -> bool {
        match self {
            Self::NoOption(..)
            | Self::Value(..)
            | Self::Dropped(_)
            | Self::Hz(..)
            | Self::Failed { .. } => true,
            Self::NotKernel { .. }
            | Self::BuiltInPlace(_)
            | Self::Spaces(_)
            | Self::Changed(_)
            | Self::Read(..)
            | Self::NotText(_)
            | Self::Line { .. }
            | Self::Module(..)
            | Self::Tools(..)
            | Self::Write(..)
            | Self::Full(_)
            | Self::Run(..) => false,
        }
    }
}
