//! What can go wrong with a recording's file: which file, where in it, and why.

use std::fmt;
use std::path::{Path, PathBuf};

use units::printable;

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The file cannot be opened, read or written.
    Io,
    /// The file ends in the middle.
    Truncated,
    /// The file is not a noisefloor recording at all.
    Foreign,
    /// The file is a recording of a later format.
    Newer,
    /// The file is a recording, but something in it is not what it must be.
    Corrupt,
    /// The file was written with `--json` but without `--series`: the raw series is
    /// missing.
    NoSeries,
}

/// A failure, with the file and the place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    file: PathBuf,
    text: String,
}

impl Error {
    pub(crate) fn new(kind: Kind, file: &Path, text: impl Into<String>) -> Self {
        Self { kind, file: file.to_owned(), text: text.into() }
    }

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}: {}", self.file.display(), self.text);
        f.write_str(&printable(&text))
    }
}

impl std::error::Error for Error {}
