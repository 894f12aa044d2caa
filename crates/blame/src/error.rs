//! Errors of event sources.

use units::{Cause, Helped};

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request is invalid.
    Spec,
    /// A privilege is missing, or is denied (lockdown, seccomp).
    Privilege,
    /// This kernel does not support it.
    Missing,
    /// Another error of the kernel.
    System,
}

/// A failure; the message names a remedy.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    kind: Kind,
    text: String,
    #[source]
    cause: Option<Cause>,
}

impl Error {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), cause: None }
    }

    /// The same with a cause.
    pub(crate) fn caused_by(self, cause: impl Into<Cause>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    /// The same with a remedy.
    pub(crate) fn with(self, help: &str) -> Self {
        match self.cause {
            Some(cause) => Self { cause: Some(Helped::new(cause, help).into()), ..self },
            None => Self { text: format!("{}; {help}", self.text), ..self },
        }
    }

    /// The same with another kind.
    pub(crate) fn of_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}
