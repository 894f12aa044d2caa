//! The error of this room: the file, the place in it, and the cause.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use units::{Cause, printable};

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The file cannot be opened or read.
    Read,
    /// The file cannot be written.
    Write,
    /// The file is truncated.
    Truncated,
    /// The file is not a noisefloor recording.
    Foreign,
    /// The file is a recording of a later format.
    Newer,
    /// The file is a recording with an invalid value.
    Corrupt,
    /// The file has no series: it was written with `--json` but without `--series`.
    NoSeries,
}

impl Kind {
    fn verb(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read
            | Self::Truncated
            | Self::Foreign
            | Self::Newer
            | Self::Corrupt
            | Self::NoSeries => "read",
        }
    }
}

/// A failure, with the file and the place in it.
#[derive(Debug, thiserror::Error)]
#[error("failed to {} {}", .kind.verb(), printable(&.file.to_string_lossy()))]
pub struct Error {
    kind: Kind,
    file: PathBuf,
    #[source]
    cause: Cause,
}

impl Error {
    /// A failure to read or write that file.
    pub fn new(kind: Kind, file: &Path, cause: impl Into<Cause>) -> Self {
        Self { kind, file: file.to_owned(), cause: cause.into() }
    }

    /// Whether a signal ended a wait for the reader of a FIFO.
    pub fn is_interruption(&self) -> bool {
        let cause = self.cause.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == ErrorKind::Interrupted)
    }

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}
