//! What functions return, and which failure of which room is which.

use std::ffi::c_int;
use std::fmt::Display;

use units::chain;

/// It is done. Everything that failed is below.
pub const NF_OK: c_int = 0;
/// The call makes no sense: a null pointer, a number out of range, a handle that was released,
/// a thread that has not entered.
pub const NF_USAGE: c_int = -1;
/// This machine has no such CPU, it is offline, or not this process's to use.
pub const NF_NO_CPU: c_int = -2;
/// A privilege is missing; nf_last_error() says which.
pub const NF_PRIVILEGE: c_int = -3;
/// This kernel cannot do it, as it is built or as it was booted; nf_last_error() says how it
/// could.
pub const NF_UNSUPPORTED: c_int = -4;
/// The tick has not stopped in time; nf_last_error() says what keeps it.
pub const NF_LATE: c_int = -5;
/// The machine would be taken over, or another program has what was asked for.
pub const NF_UNSAFE: c_int = -6;
/// What is to be changed cannot be written down, so it is not changed.
pub const NF_JOURNAL: c_int = -7;
/// The kernel refused for a reason of its own.
pub const NF_SYSTEM: c_int = -8;
/// There is nothing to tell: no gap was seen, so none is the median one.
pub const NF_NOTHING: c_int = -9;
/// A mistake in this library; please report it.
pub const NF_BUG: c_int = -70;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: c_int,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(code: c_int, text: impl Display) -> Self {
        Self { code, text: text.to_string() }
    }

    /// The call makes no sense.
    pub(crate) fn usage(text: impl Display) -> Self {
        Self::new(NF_USAGE, text)
    }
}

impl From<&isolate::Error> for Failure {
    fn from(error: &isolate::Error) -> Self {
        Self::new(of(error.kind()), chain(error))
    }
}

impl From<isolate::Error> for Failure {
    fn from(error: isolate::Error) -> Self {
        (&error).into()
    }
}

impl From<measure::Error> for Failure {
    fn from(error: measure::Error) -> Self {
        let code = match error.kind() {
            measure::Kind::Spec => NF_USAGE,
            measure::Kind::Isolate(kind) => of(kind),
            measure::Kind::NoProgram
            | measure::Kind::NotExecutable
            | measure::Kind::System => NF_SYSTEM,
        };
        Self::new(code, chain(&error))
    }
}

fn of(kind: isolate::Kind) -> c_int {
    use isolate::Kind;
    match kind {
        Kind::NoSuchCpu | Kind::Offline | Kind::Cpuset | Kind::Affinity => NF_NO_CPU,
        Kind::Taken | Kind::Unsafe => NF_UNSAFE,
        Kind::Privilege => NF_PRIVILEGE,
        Kind::Journal => NF_JOURNAL,
        Kind::NoSetting | Kind::NoNohz => NF_UNSUPPORTED,
        Kind::Tuning | Kind::System => NF_SYSTEM,
    }
}
