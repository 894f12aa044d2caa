//! What a program used: the result of its observation.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

/// What a program used, as it was before the program changed it. Paths have no links and no `..`.
#[derive(Debug, Default)]
pub struct Observation {
    /// Files and directories, and the names that were looked for in vain.
    pub files: BTreeMap<PathBuf, FileUse>,
    /// The links on the way to them, and their targets.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// The entries of directories that were listed.
    pub listings: BTreeMap<PathBuf, Vec<Listed>>,
    /// The programs that were executed, as they were named, in this order; paths may have links.
    pub executed: Vec<PathBuf>,
    /// Paths outside of the folder of the program that were reached through its `..`: the first
    /// directory or file outside.
    pub above: BTreeSet<PathBuf>,
    /// Whether a path below the folder was named from the root.
    pub names_folder: bool,
    /// How the program ended.
    pub ended: Ended,
    /// The end of what it wrote.
    pub output: Vec<u8>,
    /// The names of processes that had not ended with it, and were killed.
    pub outlived: Vec<String>,
    /// System calls whose path could not be read.
    pub unread_calls: u64,
}

/// What a file was, and how it was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUse {
    /// What it was before.
    pub node: Node,
    /// Whether it was executed.
    pub is_executed: bool,
    /// Whether it was looked up by its name, opened or executed; otherwise only its existence mattered.
    pub is_used: bool,
    /// Whether it was opened or executed.
    pub is_opened: bool,
    /// Whether the program replaced it, before it used it in any other way; of a directory: whether it
    /// tried to create it.
    pub is_replaced: bool,
    /// Whether the program created it, or tried to, where there was nothing.
    pub is_created: bool,
    /// What it contained before.
    pub contents: Contents,
}

/// What was found at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// Nothing.
    Missing,
    /// A directory, with its permissions.
    Directory(u32),
    /// A regular file.
    File {
        /// Its permissions.
        mode: u32,
        /// Its size, in bytes.
        size: u64,
        /// The time of its last change, in seconds since 1970.
        modified: i64,
    },
    /// A symbolic link, with its target.
    Link(PathBuf),
    /// A device, a pipe or a socket.
    Special,
}

/// The contents of a file before the program changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    /// It was not changed: those that it has.
    Same,
    /// These.
    Stored(Vec<u8>),
    /// They were changed, and could not be stored.
    Lost,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: OsString,
    /// What it was.
    pub node: Node,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ended {
    /// With that code.
    Exited(u8),
    /// By that signal.
    Killed(i32),
    /// It was killed at the limit of its time.
    #[default]
    TooLong,
}
