//! What can go wrong with a tree. A fact that cannot be read is no error but a value.

use std::fmt;
use std::path::{Path, PathBuf};

use units::printable;

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The directory given is not a recorded tree, or cannot be read.
    Tree,
    /// The tree could not be written.
    Record,
}

/// A failure, with the place it happened at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    place: PathBuf,
    text: String,
}

impl Error {
    pub(crate) fn new(kind: Kind, place: &Path, text: impl Into<String>) -> Self {
        Self { kind, place: place.to_owned(), text: text.into() }
    }

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.kind {
            Kind::Tree => "read",
            Kind::Record => "write",
        };
        let text = format!("{}: {}", self.place.display(), self.text);
        write!(f, "{verb} {}", printable(&text))
    }
}

impl std::error::Error for Error {}
