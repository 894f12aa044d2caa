//! Why a CPU cannot be had, and what would help.

use units::Cause;

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// This machine has no such CPU, or none was named: a mistake in the question.
    NoSuchCpu,
    /// The CPU is there, but switched off.
    Offline,
    /// The process's cpuset does not contain the CPU.
    Cpuset,
    /// The process's affinity does not contain the CPU.
    Affinity,
    /// Another process spins on the CPU.
    Taken,
    /// A privilege is missing.
    Privilege,
    /// The machine must not be taken over as was asked.
    Unsafe,
    /// What is to be changed cannot be written down, or what is written down not be read.
    Journal,
    /// This kernel has no such setting.
    NoSetting,
    /// What was named is no setting of any scheduler, or cannot be that: a mistake in the
    /// question.
    Tuning,
    /// The tick of that CPU cannot be stopped here.
    NoNohz,
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

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}
