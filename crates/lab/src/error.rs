//! Why the lab cannot do what was asked, and what would help.

use std::fmt;
use std::io;
use std::path::Path;

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The experiment, or the name of something, makes no sense: a mistake in the question.
    Experiment,
    /// What was named is no kernel that a guest boots.
    Kernel,
    /// The kernel cannot be had here and now: from the archive, or from this machine.
    Archive,
    /// QEMU is missing, too old, or does not start.
    Qemu,
    /// The agent or the counter is not where this program looks for them.
    Parts,
    /// The cache cannot be read or written.
    Cache,
    /// A guest gave no answer.
    Guest,
    /// Somebody ended it early.
    Interrupted,
}

/// A failure, in words that name what would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    text: String,
}

impl Error {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<kernels::Error> for Error {
    fn from(error: kernels::Error) -> Self {
        let kind = match error.kind() {
            kernels::Kind::Experiment => Kind::Experiment,
            kernels::Kind::Kernel => Kind::Kernel,
            kernels::Kind::Archive => Kind::Archive,
            kernels::Kind::Cache => Kind::Cache,
            kernels::Kind::Interrupted => Kind::Interrupted,
        };
        Self::new(kind, error.to_string())
    }
}

/// A failure to read or write below the cache.
pub(crate) fn failed(place: &Path, error: &io::Error) -> Error {
    kernels::cache_failed(place, error).into()
}
