//! A measurement as a command line: `noise -c 1 -d 10`, `run ./bench`.
//!
//! Runs are made by a process of their own, noisefloor started again: so all options mean the same as
//! they do alone, and a run that crashes or is killed is one run. All runs of a
//! program are made by one process ([`crate::repeating::orders`]), those of any other measurement by one
//! process each.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::forwarding::own_program;

/// A measurement to repeat.
#[derive(Debug, Clone)]
pub(crate) struct Measurement {
    /// The command with its options.
    pub(crate) words: Vec<OsString>,
    /// The number of words of the command's name.
    pub(crate) name: usize,
    /// Whether it runs a program of the user.
    pub(crate) is_run: bool,
}

impl Measurement {
    /// The words, as the user wrote them.
    pub(crate) fn text(&self) -> String {
        let words = self.words.iter().map(|word| word.to_string_lossy());
        words.collect::<Vec<_>>().join(" ")
    }

    /// The process of a run, which saves its recording to that file.
    pub(crate) fn command(&self, saved_to: &Path) -> Command {
        let (name, options) = self.words.split_at(self.name);
        let mut command = own_program();
        command.arg("--quiet").args(name).args(self.is_run.then_some("--again"));
        command.arg("-o").arg(saved_to).args(options);
        command
    }
}
