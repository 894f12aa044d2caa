//! Why an experiment, a change to it or a limit is refused: always a usage error.
//!
//! An error's own text does not contain that of its source: `units::chain` prints both.

use std::fmt;

use kernels::NameError;
use units::NanosError;

/// Where a mistake is: `tick.toml:12:3`, or the file alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file's name.
    pub file: String,
    /// Line and column, from 1; `None` for what is not from the text.
    pub line_and_column: Option<(usize, usize)>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line_and_column {
            Some((line, column)) => write!(f, "{}:{line}:{column}", self.file),
            None => f.write_str(&self.file),
        }
    }
}

/// Why an experiment is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A mistake in the text of an experiment.
    #[error("{place}: {problem}")]
    Text {
        /// Where it is.
        place: Place,
        /// What is wrong there.
        problem: String,
    },
    /// There is no built-in experiment of that name.
    #[error(
        "no experiment '{name}': there are {builtins}; a file is named with its ending: \
         ./{name}.toml"
    )]
    NoBuiltin {
        /// The name.
        name: String,
        /// Those that there are.
        builtins: String,
    },
    /// A kernel's name is wrong.
    #[error(transparent)]
    Kernel(EntryError),
    /// A change cannot be made.
    #[error("{change}")]
    Change {
        /// The change: `key=value`.
        change: String,
        /// Why not.
        #[source]
        cause: ChangeError,
    },
    /// The experiment is refused after all changes.
    #[error("with {changes}")]
    Changed {
        /// All changes.
        changes: String,
        /// Why.
        #[source]
        cause: Box<Error>,
    },
    /// A limit is for a metric that no cell, or not the named cell, has.
    #[error("{place}: {cells} metric '{metric}': {known}")]
    NoMetric {
        /// Where the limit is.
        place: Place,
        /// What does not have it: `no cell has a`.
        cells: String,
        /// The metric.
        metric: String,
        /// Metrics that there are.
        known: String,
    },
    /// No limit is for what was run.
    #[error("none of the limits (the first: {first}) is for a cell that was run{reason}")]
    NoLimitApplies {
        /// Where the first limit is.
        first: Place,
        /// Which kernels they name, if that is why; may be empty.
        reason: String,
    },
}

/// Why a change from the command line cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// It is not written `key=value`.
    #[error("write key=value; keys are {0}")]
    NoValue(&'static str),
    /// There is no such key.
    #[error("no key '{key}': there are {keys}")]
    NoKey {
        /// The key.
        key: String,
        /// Those that there are.
        keys: &'static str,
    },
    /// The value is wrong.
    #[error(transparent)]
    Value(#[from] EntryError),
    /// The number of seconds has a unit, or is none.
    #[error("'{0}' is not a number of seconds: write seconds=2 or duration=2s")]
    Seconds(String),
    /// No workload takes a length of time.
    #[error("no workload has a duration")]
    NoDuration,
    /// No workload makes calls.
    #[error("no workload makes calls")]
    NoCalls,
    /// There is no such row.
    #[error("no {kind} '{name}': there are {rows}")]
    NoRow {
        /// What kind of row.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The names that there are.
        rows: String,
    },
}

/// Why a single entry of an experiment is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// Not one word.
    #[error("'{}' is not a name: write one word", .0.escape_debug())]
    Name(String),
    /// More than one line.
    #[error("one line is expected here")]
    Line,
    /// Empty, or with control characters.
    #[error(
        "'{}' is not a kernel: write debian:6.1-cloud, a path, or running",
        .0.escape_debug()
    )]
    Kernel(String),
    /// Not a kernel of Debian's.
    #[error(transparent)]
    KernelName(#[from] NameError),
    /// Not what QEMU's `-cpu` takes.
    #[error(
        "'{}' is not a CPU model of QEMU's: write it as in qemu64,-rdrand",
        .0.escape_debug()
    )]
    CpuModel(String),
    /// Longer than a kernel's command line.
    #[error("{0} bytes of parameters are the most")]
    ParametersTooLong(usize),
    /// Not printable ASCII.
    #[error("parameters are one line of printable ASCII")]
    ParametersNotAscii,
    /// An odd number of double quotes.
    #[error("a double quote is not closed")]
    OpenQuote,
    /// What follows `--` is for init, not for the kernel.
    #[error("'--' would hide the lab's own parameters from the kernel")]
    DoubleDash,
    /// A parameter that the lab sets.
    #[error("the lab itself sets {name}=: an experiment must leave {owned} alone")]
    OwnedParameter {
        /// The parameter.
        name: &'static str,
        /// All such parameters.
        owned: String,
    },
    /// Not below `/proc/sys` or `/sys`.
    #[error(
        "'{}' is not a setting: its path must be below /proc/sys/ or /sys/, without . \
         and ..",
        .0.escape_debug()
    )]
    SettingPath(String),
    /// Empty, or more than one line.
    #[error("a setting's value is one line and not empty")]
    SettingValue,
    /// Not the name of a metric.
    #[error("'{}' is not a metric: write it as in tick_instructions", .0.escape_debug())]
    Metric(String),
    /// Not a length of time.
    #[error(transparent)]
    Length(#[from] NanosError),
    /// Not a length of time that a guest can measure.
    #[error("{0} is not a length of more than 0s and at most 1h")]
    LengthRange(String),
    /// Not a whole number within bounds.
    #[error("'{text}' is not a number from {min} to {max}")]
    Number {
        /// The text.
        text: String,
        /// The smallest number.
        min: u32,
        /// The largest one.
        max: u32,
    },
    /// Not a mode.
    #[error("'{}' is no mode: exact or timed", .0.escape_debug())]
    Mode(String),
    /// Not a machine.
    #[error("'{}' is no machine: pc or microvm", .0.escape_debug())]
    Machine(String),
    /// Not an event source.
    #[error(
        "unknown event source '{}' (expected bpf, bpf_classic or tracefs)",
        .0.escape_debug()
    )]
    EventSource(String),
    /// Not a comparison with a number.
    #[error("'{}' is not a limit: write < <= == >= or > and a number", .0.escape_debug())]
    Limit(String),
}
