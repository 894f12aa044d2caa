//! Why a program cannot be packed.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Why a program cannot run in a guest.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// No such program, where it was looked for, and which package has it.
    #[error("no program '{name}' in {path}; hint: {hint}")]
    NoProgram {
        /// Its name.
        name: String,
        /// The folders.
        path: String,
        /// What would help.
        hint: String,
    },
    /// There is no such file.
    #[error("there is no file {}", .0.display())]
    NoFile(PathBuf),
    /// Its permissions do not allow its execution.
    #[error("{} is not executable; hint: chmod +x", .0.display())]
    NotExecutable(PathBuf),
    /// A library is missing.
    #[error("{} needs the library {name}, which was not found; hint: {hint}", .by.display())]
    NoLibrary {
        /// The library.
        name: String,
        /// The program or library that needs it.
        by: PathBuf,
        /// What would help.
        hint: String,
    },
    /// An interpreter is missing.
    #[error("{} needs the interpreter {path}, which does not exist; hint: {hint}", .by.display())]
    NoInterpreter {
        /// The interpreter.
        path: String,
        /// The program or script that needs it.
        by: PathBuf,
        /// What would help.
        hint: String,
    },
    /// It is for another architecture.
    #[error("{} is a program for {architecture}, and guests are x86-64", .path.display())]
    Architecture {
        /// The program.
        path: PathBuf,
        /// Its architecture.
        architecture: String,
    },
    /// An ELF file is damaged.
    #[error("{} is a damaged program: {why}", .path.display())]
    Damaged {
        /// The program.
        path: PathBuf,
        /// Why it cannot be read.
        why: String,
    },
    /// A file cannot be read.
    #[error("failed to read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// A device, a socket or a pipe.
    #[error("{} is neither a file nor a folder nor a link", .0.display())]
    Special(PathBuf),
    /// A directory, a device, a socket or a pipe, where a program is needed.
    #[error("{} is not a file", .0.display())]
    NotFile(PathBuf),
    /// A file that no kernel executes.
    #[error(
        "{} is neither an ELF program nor a script: a script begins with #! and its interpreter",
        .0.display()
    )]
    NotProgram(PathBuf),
    /// The lab uses that path of the guest.
    #[error(
        "{0} in the guest belongs to the lab; hint: use a copy of the file in another folder or \
         with another name (not /init, /order.json or /program, and not in /dev, /proc or /sys)"
    )]
    Owned(String),
    /// A name that is not UTF-8.
    #[error("the name {0:?} is not UTF-8")]
    Name(OsString),
    /// A path is needed as a file and as a directory.
    #[error("{0} is a file and a directory of the guest at once")]
    Conflict(String),
    /// A path has too many links.
    #[error("the links in {0} are circular")]
    Loop(String),
    /// The files do not fit into the guest.
    #[error(
        "the files are {files} MiB, with which a guest needs {least} MiB of memory, and it has \
         {has}; hint: --memory (in an experiment, memory_mib) gives it more, up to 4096 MiB"
    )]
    Memory {
        /// The size of the files, in MiB.
        files: u64,
        /// The memory that they need, in MiB.
        least: u64,
        /// The memory of the guest, in MiB.
        has: u32,
    },
    /// The files fit into no guest: the size that would, in MiB.
    #[error(
        "the files are larger than {0} MiB: the largest guest has 4096 MiB of memory, of which \
         files take three times their size"
    )]
    TooLarge(u64),
    /// The files that a command uses fit into no guest.
    #[error(
        "the files that the command uses are larger than {most} MiB, which is what fits into a guest \
         of 4096 MiB of memory; the largest: {largest}"
    )]
    TooLargeTogether {
        /// The size that would fit, in MiB.
        most: u64,
        /// The largest files, with their sizes.
        largest: String,
    },
    /// The command cannot be observed on this machine.
    #[error(
        "failed to observe the command on this machine; hint: --no-observe does not run it here (the \
         files that it needs are then named: --file, --program)"
    )]
    Observe(#[from] observe::Error),
    /// The archive cannot be made.
    #[error("failed to pack the files")]
    Archive(#[source] io::Error),
}
