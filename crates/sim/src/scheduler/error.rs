//! Errors of simulated schedulers.

/// The kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// There are no rules with this name: a usage error.
    Rules,
    /// The rules have no such setting, or the value is invalid: a usage error.
    Setting,
    /// The load or the machine is invalid: a usage error.
    Load,
}

/// An error whose message includes a hint.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    kind: Kind,
    text: String,
}

impl Error {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// The kind of error.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}
