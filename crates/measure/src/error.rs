//! Errors of measurements.

use units::Cause;

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The specification is invalid.
    Spec,
    /// A CPU or a privilege is not available.
    Isolate(isolate::Kind),
    /// The program to run does not exist.
    NoProgram,
    /// The program to run cannot be executed.
    NotExecutable,
    /// A system call or a required kernel feature failed.
    System,
}

/// A failure; the message names a remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A CPU or a privilege is not available.
    #[error(transparent)]
    Isolate(#[from] isolate::Error),
    /// Anything else.
    #[error("{text}")]
    Other {
        /// One of the other kinds.
        kind: Kind,
        /// What failed.
        text: String,
        /// The cause, if another error came first.
        #[source]
        cause: Option<Cause>,
    },
}

impl Error {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self::Other { kind, text: text.into(), cause: None }
    }

    /// A failed system call or kernel feature.
    pub(crate) fn system(text: impl Into<String>, cause: impl Into<Cause>) -> Self {
        Self::caused(Kind::System, text, cause)
    }

    pub(crate) fn caused(
        kind: Kind,
        text: impl Into<String>,
        cause: impl Into<Cause>,
    ) -> Self {
        Self::Other { kind, text: text.into(), cause: Some(cause.into()) }
    }

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Isolate(error) => Kind::Isolate(error.kind()),
            Self::Other { kind, .. } => *kind,
        }
    }
}
