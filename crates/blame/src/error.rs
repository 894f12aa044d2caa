//! Why events cannot be watched, and what would help.

use units::{Cause, Helped};

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

    /// The same, with what caused it.
    pub(crate) fn caused_by(self, cause: impl Into<Cause>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    /// The same, and what would help.
    pub(crate) fn with(self, help: &str) -> Self {
        match self.cause {
            Some(cause) => Self { cause: Some(Helped::new(cause, help).into()), ..self },
            None => Self { text: format!("{}; {help}", self.text), ..self },
        }
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
