//! Why the exporter cannot serve.

use units::Cause;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An address that is none.
    Address,
    /// The address cannot be listened on.
    Listen,
    /// An error of the kernel.
    System,
}

/// An error; its text names the remedy.
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

    pub(crate) fn caused_by(self, cause: impl Into<Cause>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    /// What is wrong.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}
