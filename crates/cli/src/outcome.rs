//! Exit codes, and which failure has which.

use std::fmt;
use std::process::ExitCode;

/// How a command ends; the numbers are documented and tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Done.
    Done = 0,
    /// A limit given was exceeded, or a cell of the lab was lost.
    Exceeded = 1,
    /// The question makes no sense.
    Usage = 2,
    /// This machine or these privileges do not allow it.
    Refused = 3,
    /// Measured, but not trustworthy.
    Doubtful = 4,
    /// A bug.
    Bug = 70,
}

impl Outcome {
    /// The one with that exit code.
    pub(crate) fn of_code(code: i32) -> Option<Self> {
        [
            Self::Done,
            Self::Exceeded,
            Self::Usage,
            Self::Refused,
            Self::Doubtful,
            Self::Bug,
        ]
        .into_iter()
        .find(|outcome| *outcome as i32 == code)
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(outcome as u8)
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    outcome: Outcome,
    text: String,
}

impl Failure {
    /// The question makes no sense.
    pub(crate) fn usage(text: impl fmt::Display) -> Self {
        Self { outcome: Outcome::Usage, text: text.to_string() }
    }

    /// This machine or these privileges do not allow it.
    pub(crate) fn refused(text: impl fmt::Display) -> Self {
        Self { outcome: Outcome::Refused, text: text.to_string() }
    }

    /// What went wrong should not be possible.
    pub(crate) fn bug(text: impl fmt::Display) -> Self {
        Self { outcome: Outcome::Bug, text: text.to_string() }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<isolate::Error> for Failure {
    fn from(error: isolate::Error) -> Self {
        match error.kind() {
            isolate::Kind::NoSuchCpu => Self::usage(error),
            _ => Self::refused(error),
        }
    }
}

impl From<measure::Error> for Failure {
    fn from(error: measure::Error) -> Self {
        match error.kind() {
            measure::Kind::Spec | measure::Kind::Isolate(isolate::Kind::NoSuchCpu) => {
                Self::usage(error)
            }
            _ => Self::refused(error),
        }
    }
}

impl From<blame::Error> for Failure {
    fn from(error: blame::Error) -> Self {
        match error.kind() {
            blame::Kind::Spec => Self::usage(error),
            _ => Self::refused(format!("failed to {error}")),
        }
    }
}

impl From<::lab::Error> for Failure {
    fn from(error: ::lab::Error) -> Self {
        match error.kind() {
            ::lab::Kind::Experiment | ::lab::Kind::Kernel => Self::usage(error),
            _ => Self::refused(error),
        }
    }
}

impl From<recording::Error> for Failure {
    fn from(error: recording::Error) -> Self {
        Self::usage(error)
    }
}

impl From<::facts::Error> for Failure {
    fn from(error: ::facts::Error) -> Self {
        Self::usage(format!("failed to {error}"))
    }
}
