//! Why events cannot be watched, and what would help.

use std::fmt;

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// What was asked makes no sense.
    Spec,
    /// A privilege is missing, or was taken away (lockdown, seccomp).
    Privilege,
    /// This kernel has no such ability.
    Missing,
    /// The kernel refused for a reason of its own.
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

    /// The same, and what would help.
    pub(crate) fn with(mut self, help: &str) -> Self {
        self.text.push_str("; ");
        self.text.push_str(help);
        self
    }

    /// The same, of another kind.
    pub(crate) fn of_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
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
