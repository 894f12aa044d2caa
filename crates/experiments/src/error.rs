//! Why an experiment, a change to it or a limit is refused: always a usage error.
//!
//! An error's own text does not contain that of its source: `units::chain` prints both.

use std::fmt;

use kernels::NameError;
use units::NanosError;

/// The place of a mistake: `tick.toml:12:3`, or the file alone.
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
    #[error("{0}: {1}")]
    Text(Place, String),
    /// There is no built-in experiment of that name, but these.
    #[error(
        "no experiment '{0}': there are {1}; a file is named with its ending: \
         ./{0}.toml"
    )]
    NoBuiltin(String, String),
    /// A kernel's name is wrong.
    #[error(transparent)]
    Kernel(EntryError),
    /// A change cannot be made.
    #[error("{0}")]
    Change(String, #[source] ChangeError),
    /// The experiment is refused with those changes.
    #[error("with {0}")]
    Changed(String, #[source] Box<Error>),
    /// A limit at that place is for a metric that those cells do not have, but others.
    #[error("{0}: {1} metric '{2}': {3}")]
    NoMetric(Place, String, String, String),
    /// There is no metric of that name, but similar ones.
    #[error("no metric '{0}': {1}")]
    UnknownMetric(String, String),
    /// No built-in experiment is for that metric.
    #[error("no built-in experiment is for {0}; hint: --experiment NAME or FILE")]
    NoExperiment(String),
    /// No limit applies to the cells that were run: the place of the first one, and the reason, if
    /// it is known.
    #[error("none of the limits (the first: {0}) is for a cell that was run{1}")]
    NoLimitApplies(Place, String),
}

/// Why a change from the command line cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// It is not written `key=value`.
    #[error("write key=value; keys are {0}")]
    NoValue(&'static str),
    /// There is no such key, but these.
    #[error("no key '{0}': there are {1}")]
    NoKey(String, &'static str),
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
    /// There is no row of that kind and name, but these.
    #[error("no {0} '{1}': there are {2}")]
    NoRow(&'static str, String, String),
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
        "'{}' is not a kernel: write debian:6.1-cloud, a path, running, or \
         build:debian:6.1,lean",
        .0.escape_debug()
    )]
    Kernel(String),
    /// Not a kernel of Debian's.
    #[error(transparent)]
    KernelName(#[from] NameError),
    /// A part of a kernel to build that its name cannot have.
    #[error("a kernel's source, fragments and options must not contain a comma")]
    KernelPart,
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
    /// A parameter that the lab sets, and all of these.
    #[error("the lab itself sets {0}=: an experiment must leave {1} alone")]
    OwnedParameter(&'static str, String),
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
    /// Not a whole number from the second to the third.
    #[error("'{0}' is not a number from {1} to {2}")]
    Number(String, u32, u32),
    /// Not a number of variations, and not a share.
    #[error(
        "'{}' is not a number of variations: write a number from 1 to 64, or the largest ± as a \
         share of the mean, as 1%",
        .0.escape_debug()
    )]
    Variations(String),
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
    /// Texts for programs end at a NUL.
    #[error("a text for a program has no NUL character")]
    Nul,
    /// There is no program.
    #[error("no program to run")]
    NoCommand,
    /// Not the name of an environment variable.
    #[error("'{}' is not the name of an environment variable", .0.escape_debug())]
    Variable(String),
    /// Not an absolute path, or not in its shortest form.
    #[error(
        "'{}' is not a path in the guest: it must begin with / and have no ., .., empty parts \
         or control characters",
        .0.escape_debug()
    )]
    GuestPath(String),
    /// A path that the lab itself uses.
    #[error(
        "{0} belongs to the lab: a file must not be /init, /order.json or /program, and not be \
         in /dev, /proc or /sys"
    )]
    OwnedPath(String),
    /// Not permissions in octal.
    #[error("'{}' is not the mode of a file: write it in octal, as \"0755\"", .0.escape_debug())]
    FileMode(String),
    /// Not a size, or more than 2 GiB.
    #[error(
        "'{}' is not a size: write it as 512B, 2KB (2000 bytes), 64KiB or 10MB; at most 2GiB",
        .0.escape_debug()
    )]
    Size(String),
    /// Not a comparison with a number.
    #[error("'{}' is not a limit: write < <= == >= or > and a number", .0.escape_debug())]
    Limit(String),
}
