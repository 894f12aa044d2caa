//! Exit codes, and the exit code of each failure.

use std::fmt;
use std::process::ExitCode;

/// How a command ends; the numbers are documented and tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Success.
    Done,
    /// A limit was exceeded, or a lab cell failed.
    Exceeded,
    /// Usage error, or unreadable input file.
    Usage,
    /// Not supported on this machine, or insufficient privileges.
    Refused,
    /// Measurement incomplete or unreliable.
    Doubtful,
    /// A bug.
    Bug,
    /// The exit code of the program of `run`.
    Program(u8),
}

/// The exit codes of shells for a program that cannot be executed, and for one that is not found.
const NOT_EXECUTABLE: u8 = 126;
const NO_PROGRAM: u8 = 127;

impl Outcome {
    /// Its exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Exceeded => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Doubtful => 4,
            Self::Bug => 70,
            Self::Program(code) => code,
        }
    }

    /// The outcome with that exit code.
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
        .find(|outcome| i32::from(outcome.code()) == code)
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(outcome.code())
    }
}

/// Why a command failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    outcome: Outcome,
    text: String,
}

impl Failure {
    /// Usage error, or unreadable input file.
    pub(crate) fn usage(text: impl fmt::Display) -> Self {
        Self { outcome: Outcome::Usage, text: text.to_string() }
    }

    /// Not supported on this machine, or insufficient privileges.
    pub(crate) fn refused(text: impl fmt::Display) -> Self {
        Self { outcome: Outcome::Refused, text: text.to_string() }
    }

    /// Ended before the measurement.
    fn incomplete(text: impl fmt::Display) -> Self {
        Self { outcome: Outcome::Doubtful, text: text.to_string() }
    }

    /// An internal error.
    pub(crate) fn bug(text: impl fmt::Display) -> Self {
        Self { outcome: Outcome::Bug, text: text.to_string() }
    }

    /// A program could not be started.
    fn unstarted(code: u8, text: impl fmt::Display) -> Self {
        Self { outcome: Outcome::Program(code), text: text.to_string() }
    }

    /// The same, with a hint where a privilege is missing for the measurement itself.
    pub(crate) fn with_hint(error: session::Error, hint: &str) -> Self {
        use isolate::Kind::Privilege;
        match &error {
            session::Error::Measure(why)
                if why.kind() == measure::Kind::Isolate(Privilege) =>
            {
                Self::refused(format!("{why}; hint: {hint}"))
            }
            _ => error.into(),
        }
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
            isolate::Kind::NoSuchCpu | isolate::Kind::Tuning => Self::usage(error),
            _ => Self::refused(error),
        }
    }
}

impl From<measure::Error> for Failure {
    fn from(error: measure::Error) -> Self {
        match error.kind() {
            measure::Kind::Spec
            | measure::Kind::Isolate(isolate::Kind::NoSuchCpu | isolate::Kind::Tuning) => {
                Self::usage(error)
            }
            measure::Kind::NoProgram => Self::unstarted(NO_PROGRAM, error),
            measure::Kind::NotExecutable => Self::unstarted(NOT_EXECUTABLE, error),
            _ => Self::refused(error),
        }
    }
}

impl From<session::Error> for Failure {
    fn from(error: session::Error) -> Self {
        match error {
            session::Error::Isolate(error) => error.into(),
            session::Error::Measure(error) => error.into(),
            session::Error::Count(error) => error.into(),
            session::Error::Trace(_) | session::Error::NoEvents(_) => {
                Self::refused(error)
            }
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
            ::lab::Kind::Interrupted => Self::incomplete(error),
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
