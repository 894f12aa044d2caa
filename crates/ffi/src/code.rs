//! Error codes, and which failure of `isolate` becomes which.

use std::ffi::c_int;
use std::fmt::Display;

use units::chain;

/// Success. All errors are below zero.
pub const NF_OK: c_int = 0;
/// Usage error: a null pointer, a number out of range, a handle that was released, a thread that
/// has not entered.
pub const NF_USAGE: c_int = -1;
/// The CPU does not exist, is offline, or is not in this process's cpuset or affinity mask.
pub const NF_NO_CPU: c_int = -2;
/// Insufficient privileges; nf_last_error() names the missing one.
pub const NF_PRIVILEGE: c_int = -3;
/// Not supported by this kernel as it was configured or booted; nf_last_error() says what would
/// help.
pub const NF_UNSUPPORTED: c_int = -4;
/// The tick did not stop within the time limit; nf_last_error() says what prevents it.
pub const NF_LATE: c_int = -5;
/// Refused: another process uses the CPU, or the rest of the machine would be left without one.
pub const NF_UNSAFE: c_int = -6;
/// The journal of changed settings cannot be read or written, so nothing is changed.
pub const NF_JOURNAL: c_int = -7;
/// A system call failed for another reason; nf_last_error() has it.
pub const NF_SYSTEM: c_int = -8;
/// No data: no gap is stored, or none with this index.
pub const NF_NOTHING: c_int = -9;
/// A bug in this library; please report it.
pub const NF_BUG: c_int = -70;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The code that the C function returns.
    pub code: c_int,
    /// What `nf_last_error()` or `tif_last_error()` returns.
    pub text: String,
}

impl Failure {
    /// A failure with that code.
    pub fn new(code: c_int, text: impl Display) -> Self {
        Self { code, text: text.to_string() }
    }

    /// A usage error.
    pub fn usage(text: impl Display) -> Self {
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

/// The code of a failure of `isolate`.
pub fn of(kind: isolate::Kind) -> c_int {
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
