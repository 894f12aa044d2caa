//! What can go wrong with a tree. A fact that cannot be read is no error but a value.

use std::path::{Path, PathBuf};

use units::{Cause, printable};

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The directory given is not a recorded tree, or cannot be read.
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

/// A failure, with the place it happened at.
#[derive(Debug, thiserror::Error)]
#[error("failed to {} {}", .kind.verb(), printable(&.place.to_string_lossy()))]
pub struct Error {
    kind: Kind,
    place: PathBuf,
    #[source]
    cause: Cause,
}

impl Error {
    pub(crate) fn new(kind: Kind, place: &Path, cause: impl Into<Cause>) -> Self {
        Self { kind, place: place.to_owned(), cause: cause.into() }
    }

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}
