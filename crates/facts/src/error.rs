//! Errors of recorded trees. A fact that cannot be read is not an error, but an unknown value.

use std::path::{Path, PathBuf};

use units::{Cause, printable};

/// The kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The directory is not a recorded tree, or cannot be read.
    Tree,
    /// The tree could not be written.
    Record,
}

impl Kind {
    fn verb(self) -> &'static str {
        match self {
            Self::Tree => "read",
            Self::Record => "write",
        }
    }
}

/// An error with its path.
#[derive(Debug, thiserror::Error)]
#[error("failed to {} {}", .kind.verb(), printable(&.path.to_string_lossy()))]
pub struct Error {
    kind: Kind,
    path: PathBuf,
    #[source]
    cause: Cause,
}

impl Error {
    pub(crate) fn new(kind: Kind, path: &Path, cause: impl Into<Cause>) -> Self {
        Self { kind, path: path.to_owned(), cause: cause.into() }
    }

    /// The kind of error.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}
