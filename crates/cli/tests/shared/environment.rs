//! The environment of a program under test. It does not depend on the shell that runs the
//! tests, nor on other users of the machine.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// `make test` sets it, too.
const CLAIMS: &str = "NOISEFLOOR_CLAIMS";

/// Makes a program claim CPUs among these tests only: other users who measure on this machine
/// do not conflict with them.
pub(crate) fn with_own_claims(command: &mut Command) {
    let own = || std::process::id().to_string();
    let claims = std::env::var(CLAIMS).unwrap_or_else(|_| own());
    command.env(CLAIMS, claims);
}

/// Makes a program handle the signals that a shell's background jobs ignore, as these tests may
/// be one.
pub(crate) fn with_usual_signals(command: &mut Command) {
    let usual = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            // SAFETY: takes a signal's number and the default action.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: it makes system calls only, as may be done between fork and exec.
    unsafe { command.pre_exec(usual) };
}

/// Makes a program receive that signal when the test that started it ends, also if the test
/// fails or is killed, so that it neither uses a CPU of another test nor leaves settings
/// changed. `isolate::tether` would also give it a process group of its own.
pub(crate) fn end_with_test(command: &mut Command, signal: libc::c_int) {
    // SAFETY: takes numbers only.
    let tie = move || match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    };
    // SAFETY: it makes one system call.
    unsafe { command.pre_exec(tie) };
}
