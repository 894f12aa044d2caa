//! Exit codes, and the exit code of each failure.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use units::chain;

/// How a command ends; the numbers are documented and tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Success.
    Done,
    /// A limit was exceeded, a lab cell failed, or a kernel does not build.
    Exceeded,
    /// Usage error, or unreadable input file.
    Usage,
    /// Not supported on this machine, or insufficient privileges.
    Refused,
    /// Measurement incomplete or unreliable.
    Doubtful,
    /// A bug.
    Bug,
    /// A source that cannot be tested, for `git bisect run`.
    Untestable,
    /// The code of one of the above that ends `git bisect run`, which would take it for a bad
    /// source.
    EndsBisection(u8),
    /// The exit code of the program of `run`.
    Program(u8),
}

/// The exit codes of shells for a program that cannot be executed, and for one that is not found.
const NOT_EXECUTABLE: u8 = 126;
const NO_PROGRAM: u8 = 127;

/// The codes of `git-bisect(1)`: skip this source; and from here on, end.
const UNTESTABLE: u8 = 125;
const END_BISECTION: u8 = 128;

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
            Self::Untestable => UNTESTABLE,
            Self::EndsBisection(code) => END_BISECTION + code,
            Self::Program(code) => code,
        }
    }

    /// The outcome of a check of a source: one that says nothing about it ends a bisection.
    pub(crate) fn or_end_of_bisection(self) -> Self {
        match self {
            Self::Usage | Self::Refused | Self::Doubtful | Self::Bug => {
                self.end_of_bisection()
            }
            Self::Done
            | Self::Exceeded
            | Self::Untestable
            | Self::EndsBisection(_)
            | Self::Program(_) => self,
        }
    }

    /// The outcome of a check of a source that failed, and so says nothing about it.
    pub(crate) fn end_of_bisection(self) -> Self {
        Self::EndsBisection(self.code())
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
    /// An error with its causes, and how the command ends because of it.
    fn new(outcome: Outcome, error: &(dyn Error + 'static)) -> Self {
        Self { outcome, text: chain(error) }
    }

    /// Usage error, or unreadable input file.
    pub(crate) fn usage(text: impl fmt::Display) -> Self {
        Self { outcome: Outcome::Usage, text: text.to_string() }
    }

    /// Not supported on this machine, or insufficient privileges.
    pub(crate) fn refused(text: impl fmt::Display) -> Self {
        Self { outcome: Outcome::Refused, text: text.to_string() }
    }

    /// Ended before the measurement.
    pub(crate) fn incomplete(text: impl fmt::Display) -> Self {
        Self { outcome: Outcome::Doubtful, text: text.to_string() }
    }

    /// A limit was exceeded, or a program failed.
    pub(crate) fn exceeded(text: impl fmt::Display) -> Self {
        Self { outcome: Outcome::Exceeded, text: text.to_string() }
    }

    /// That of another noisefloor, with its exit code; `None`: it was killed.
    pub(crate) fn with_code(code: Option<i32>, text: impl fmt::Display) -> Self {
        let outcome = code.and_then(Outcome::of_code).unwrap_or(Outcome::Refused);
        Self { outcome, text: text.to_string() }
    }

    /// An internal error.
    pub(crate) fn bug(text: impl fmt::Display) -> Self {
        Self { outcome: Outcome::Bug, text: text.to_string() }
    }

    /// A file could not be written after the measurement.
    pub(crate) fn of_writing(error: &recording::Error) -> Self {
        match error.is_interruption() {
            true => Self::incomplete(chain(error)),
            false => Self::refused(chain(error)),
        }
    }

    /// The same, with a hint if a privilege is missing for the measurement itself.
    pub(crate) fn with_hint(error: session::Error, hint: &str) -> Self {
        let session::Error::Measure(why) = &error else { return error.into() };
        match why.kind() == measure::Kind::Isolate(isolate::Kind::Privilege) {
            true => Self::refused(format!("{}; hint: {hint}", chain(why))),
            false => error.into(),
        }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// The same with another outcome.
    pub(crate) fn map_outcome(self, map: impl FnOnce(Outcome) -> Outcome) -> Self {
        Self { outcome: map(self.outcome), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<isolate::Kind> for Outcome {
    fn from(kind: isolate::Kind) -> Self {
        use isolate::Kind;
        match kind {
            Kind::NoSuchCpu | Kind::Tuning => Self::Usage,
            Kind::Offline
            | Kind::Cpuset
            | Kind::Affinity
            | Kind::Taken
            | Kind::Privilege
            | Kind::Unsafe
            | Kind::Journal
            | Kind::NoSetting
            | Kind::NoNohz
            | Kind::System => Self::Refused,
        }
    }
}

impl From<isolate::Error> for Failure {
    fn from(error: isolate::Error) -> Self {
        Self::new(error.kind().into(), &error)
    }
}

impl From<measure::Error> for Failure {
    fn from(error: measure::Error) -> Self {
        let outcome = match error.kind() {
            measure::Kind::Spec => Outcome::Usage,
            measure::Kind::Isolate(kind) => kind.into(),
            measure::Kind::NoProgram => Outcome::Program(NO_PROGRAM),
            measure::Kind::NotExecutable => Outcome::Program(NOT_EXECUTABLE),
            measure::Kind::System => Outcome::Refused,
        };
        Self::new(outcome, &error)
    }
}

impl From<session::Error> for Failure {
    fn from(error: session::Error) -> Self {
        match error {
            session::Error::Isolate(error) => error.into(),
            session::Error::Measure(error) => error.into(),
            session::Error::Trace(error) | session::Error::Count(error) => error.into(),
            session::Error::NotIsolated { needs_root, .. } => {
                let is_root = rustix::process::geteuid().is_root();
                let root = if needs_root && !is_root { "run as root, or " } else { "" };
                let hint = format!("{root}go on with a warning, without --require");
                Self::refused(format!("{error}; hint: {hint}"))
            }
            session::Error::NoEvents(_) => Self::refused(error),
        }
    }
}

impl From<blame::Error> for Failure {
    fn from(error: blame::Error) -> Self {
        use blame::Kind;
        let outcome = match error.kind() {
            Kind::Spec => Outcome::Usage,
            Kind::Privilege | Kind::Missing | Kind::System => Outcome::Refused,
        };
        Self::new(outcome, &error)
    }
}

impl From<exporter::Error> for Failure {
    fn from(error: exporter::Error) -> Self {
        use exporter::Kind;
        let outcome = match error.kind() {
            Kind::Address => Outcome::Usage,
            Kind::Listen | Kind::System => Outcome::Refused,
        };
        Self::new(outcome, &error)
    }
}

impl From<experiments::Error> for Failure {
    fn from(error: experiments::Error) -> Self {
        Self::usage(chain(&error))
    }
}

impl From<kernels::Error> for Failure {
    fn from(error: kernels::Error) -> Self {
        Self::from(::lab::Error::from(error))
    }
}

impl From<::lab::Error> for Failure {
    fn from(error: ::lab::Error) -> Self {
        use ::lab::Kind;
        use kernels::Kind as Kernel;
        let text = chain(&error);
        match error.kind() {
            Kind::Cell | Kind::Program | Kind::Kernel(Kernel::Name | Kernel::Kernel) => {
                Self::usage(text)
            }
            Kind::Kernel(Kernel::Build) => Self { outcome: Outcome::Exceeded, text },
            Kind::Interrupted | Kind::Kernel(Kernel::Interrupted) => {
                Self::incomplete(text)
            }
            Kind::Kernel(Kernel::Unavailable | Kernel::Cache)
            | Kind::Qemu
            | Kind::Parts
            | Kind::Cache
            | Kind::Slurm
            | Kind::Guest => Self::refused(text),
        }
    }
}

impl From<history::Error> for Failure {
    fn from(error: history::Error) -> Self {
        use history::Kind;
        let outcome = match error.kind() {
            Kind::Damaged | Kind::Newer | Kind::NoEntry => Outcome::Usage,
            Kind::Access | Kind::Busy | Kind::Full => Outcome::Refused,
        };
        Self::new(outcome, &error)
    }
}

impl From<recording::Error> for Failure {
    fn from(error: recording::Error) -> Self {
        Self::new(Outcome::Usage, &error)
    }
}

impl From<::facts::Error> for Failure {
    fn from(error: ::facts::Error) -> Self {
        Self::new(Outcome::Usage, &error)
    }
}
