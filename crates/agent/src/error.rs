//! Errors of the agent. The lab receives them as text, with their causes.

use units::Cause;

/// A failure, and its cause.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The measurement itself.
    #[error(transparent)]
    Session(#[from] session::Error),
    /// Anything else.
    #[error("{what}")]
    Other {
        what: String,
        #[source]
        cause: Cause,
    },
}

impl Error {
    /// `what` is lowercase, such as `failed to read FILE`.
    pub(crate) fn new(what: impl Into<String>, cause: impl Into<Cause>) -> Self {
        Self::Other { what: what.into(), cause: cause.into() }
    }
}
