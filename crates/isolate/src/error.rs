//! Errors: why a CPU cannot be used or a setting not be changed, with a hint.

use units::Cause;

/// The kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// This machine has no such CPU, or none was specified: a usage error.
    NoSuchCpu,
    /// The CPU exists, but is offline.
    Offline,
    /// The process's cpuset does not contain the CPU.
    Cpuset,
    /// The process's affinity does not contain the CPU.
    Affinity,
    /// Another process measures on the CPU, or a real-time task occupies it.
    Taken,
    /// Insufficient privileges.
    Privilege,
    /// The request would make the machine unusable.
    Unsafe,
    /// A change cannot be recorded in the journal, or the journal cannot be read.
    Journal,
    /// This kernel has no such setting.
    NoSetting,
    /// The name is not a setting of any scheduler, or the value is invalid: a usage error.
    Tuning,
    /// The tick of this CPU cannot be stopped on this machine.
    NoNohz,
    /// Any other error of a system call.
    System,
}

/// An error whose message includes a hint.
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

    /// Adds the cause.
    pub(crate) fn caused_by(self, cause: impl Into<Cause>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    /// The kind of error.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}
