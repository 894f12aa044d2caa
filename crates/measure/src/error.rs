//! Why nothing was measured.

use units::Cause;

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
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A CPU cannot be had, or a privilege is missing.
    #[error(transparent)]
    Isolate(#[from] isolate::Error),
    /// Anything else.
    #[error("{text}")]
    Other {
        /// Which of the other kinds.
        kind: Kind,
        /// What failed.
        text: String,
        /// Why, where something else failed first.
        #[source]
        cause: Option<Cause>,
    },
}

impl Error {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self::Other { kind, text: text.into(), cause: None }
    }

    /// The kernel failed at something, for this reason.
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
