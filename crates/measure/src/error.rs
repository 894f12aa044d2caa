//! Why nothing was measured.

use std::fmt;

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What was asked makes no sense.
    Spec,
    /// A CPU cannot be had, or a privilege is missing.
    Isolate(isolate::Kind),
    /// The program that is to be run is not there.
    NoProgram,
    /// The program that is to be run cannot be.
    NotExecutable,
    /// The kernel does not give what the measurement is made of.
    System,
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

impl From<isolate::Error> for Error {
    fn from(error: isolate::Error) -> Self {
        Self::new(Kind::Isolate(error.kind()), units::chain(&error))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}
