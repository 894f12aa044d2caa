//! The environment of a tool under test: the same whoever runs the tests, and beside whom.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// `make test` sets it, too.
const CLAIMS: &str = "NOISEFLOOR_CLAIMS";

/// Has a program claim CPUs among these tests only: a user who measures on this machine meanwhile
/// does not keep them from theirs.
pub(crate) fn with_own_claims(command: &mut Command) {
    let own = || std::process::id().to_string();
    let claims = std::env::var(CLAIMS).unwrap_or_else(|_| own());
    command.env(CLAIMS, claims);
}

/// Has a program get the signals that a shell's background jobs ignore, as these tests may be one.
pub(crate) fn with_usual_signals(command: &mut Command) {
    let usual = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
            // SAFETY: takes a signal's number and the default action.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: it makes system calls only, as may be done between fork and exec.
    unsafe { command.pre_exec(usual) };
}
