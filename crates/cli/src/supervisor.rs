//! Supervision of a process that may crash: noisefloor, started again by itself.
//!
//! The supervised process measures and prints; the supervisor forwards signals to it, waits
//! for it, and returns its exit code. A process that ends by itself first sends a byte through
//! its standard input; without that byte, the library that it ran has ended it. It cannot outlive
//! its supervisor (`isolate::tether`).

use std::env;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{ExitStatusExt, parent_id};
use std::path::Path;
use std::process::{Child, ExitStatus};

use rustix::process::{Signal, kill_process};
use signal_hook::consts::{
    SIGABRT, SIGBUS, SIGFPE, SIGHUP, SIGILL, SIGINT, SIGQUIT, SIGSEGV, SIGSYS, SIGTERM,
    SIGTRAP, SIGUSR1, SIGUSR2,
};
use signal_hook::low_level::signal_name;

use recording::{Code, Doubt};
use units::Nanos;

use crate::forced_end::FORCED_END;
use crate::forwarding::{Forwarding, own_program, start_again};
use crate::outcome::{Failure, Outcome};
use crate::printing;

/// Set for the supervised process, to its supervisor's number.
const SUPERVISOR: &str = "NOISEFLOOR_SUPERVISOR";
/// Set for it, to the reason why its CPU is not isolated as requested.
const NOT_ISOLATED: &str = "NOISEFLOOR_NOT_ISOLATED";
/// The byte that a supervised process sends before it ends by itself,
const ENDED: u8 = b'.';
/// and the one before it is killed because a library does not return.
const GAVE_UP: u8 = b'!';
/// The signals that a process's own errors raise.
const CRASHES: [i32; 7] = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP];

/// Whether this process is supervised.
pub(crate) fn is_supervised() -> bool {
    let supervisor = env::var(SUPERVISOR).ok().and_then(|number| number.parse().ok());
    supervisor == Some(parent_id())
}

/// The doubt about a measurement whose CPU the supervisor could not isolate as requested.
pub(crate) fn not_isolated() -> Option<Doubt> {
    let why = env::var(NOT_ISOLATED).ok().filter(|_| is_supervised())?;
    Some(Doubt::new(Code::NotIsolated, why))
}

/// The main function of a supervised process; it reports its end, successful or not.
pub(crate) fn supervised(
    life: impl FnOnce() -> Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    let ended = life();
    say(ENDED);
    ended
}

/// Ends a supervised process whose library does not return.
pub(crate) fn give_up(library: &Path, after: Nanos) {
    if is_supervised() {
        printing::say(format_args!(
            "failed to end the workload: the function of {} has not returned within {} s after the \
             end; this run is discarded",
            library.display(),
            after.as_secs_f64().round(),
        ));
        say(GAVE_UP);
        let _ = kill_process(rustix::process::getpid(), Signal::KILL);
    }
}

/// Notifies the supervisor; if that has ended, it has ended this process, too.
fn say(word: u8) {
    let _ = rustix::io::write(io::stdin(), &[word]);
}

/// The supervisor; signals do not end it.
pub(crate) struct Supervisor(Forwarding);

impl Supervisor {
    /// A supervisor without a process.
    pub(crate) fn new() -> Result<Self, Failure> {
        Forwarding::new().map(Self).map_err(Failure::refused)
    }

    /// Starts noisefloor again, supervised, with the same arguments and at most one more, and waits
    /// for it. `doubt`: that its CPU is not isolated as requested.
    pub(crate) fn watch_over(
        mut self,
        library: &Path,
        more: Option<&str>,
        doubt: Option<&Doubt>,
    ) -> Result<Outcome, Failure> {
        let (mut end, its_end) = UnixStream::pair().map_err(Failure::refused)?;
        let mut child = start(its_end, more, doubt)?;
        let ended = self.0.until_ended(&mut child, None).map_err(Failure::refused)?;
        let status = ended.ok_or_else(|| Failure::bug("a wait without a limit ended"))?;
        if status.signal().is_some_and(is_forwarded) && self.0.is_interrupted() {
            return Err(Failure::incomplete("interrupted before the measurement began"));
        }
        end.set_nonblocking(true).map_err(Failure::refused)?;
        let mut said = [0];
        match end.read(&mut said).map(|read| (read, said)) {
            Ok((1, [GAVE_UP])) => Ok(Outcome::Doubtful),
            said => outcome(status, matches!(said, Ok((1, _))), library),
        }
    }
}

/// Whether it is one of the signals that end the supervised process only before it handles them.
fn is_forwarded(signal: i32) -> bool {
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2].contains(&signal)
}

fn start(
    its_end: UnixStream,
    more: Option<&str>,
    doubt: Option<&Doubt>,
) -> Result<Child, Failure> {
    let mut command = own_program();
    command.args(env::args_os().skip(1)).args(more);
    command.env(SUPERVISOR, std::process::id().to_string());
    command.env_remove(NOT_ISOLATED).envs(doubt.map(|doubt| (NOT_ISOLATED, &doubt.text)));
    command.stdin(OwnedFd::from(its_end));
    start_again(&mut command)
}

fn outcome(
    status: ExitStatus,
    has_said_so: bool,
    library: &Path,
) -> Result<Outcome, Failure> {
    let library = library.display();
    let what = match (status.signal(), status.code()) {
        (Some(signal), _) => {
            let name = signal_name(signal).unwrap_or("a signal");
            let how = if CRASHES.contains(&signal) { "crashed" } else { "was ended" };
            format!("{how} ({name}, signal {signal})")
        }
        (None, Some(FORCED_END)) if !has_said_so => {
            "was interrupted several times before it returned".to_owned()
        }
        (None, code) => match code.and_then(Outcome::of_code) {
            Some(outcome) if has_said_so || outcome == Outcome::Bug => {
                return Ok(outcome);
            }
            _ => format!("ended its process ({status})"),
        },
    };
    let text = format!("the workload's library {library} {what}; this run is discarded");
    Err(Failure::refused(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(wait_status: i32, has_said_so: bool) -> Result<Outcome, String> {
        let status = ExitStatus::from_raw(wait_status);
        outcome(status, has_said_so, Path::new("./my.so")).map_err(|f| f.to_string())
    }

    /// Check that the exit code is returned if the process ended by itself, and that otherwise
    /// the library is named, with how it ended the process.
    #[test]
    fn ends() {
        for code in [0, 2, 3, 4] {
            assert_eq!(
                ended(code << 8, true).map(|outcome| i32::from(outcome.code())),
                Ok(code)
            );
        }
        assert_eq!(ended(70 << 8, false), Ok(Outcome::Bug));
        for (wait_status, has_said_so, words) in [
            (0, false, "my.so ended its process (exit status: 0)"),
            (99 << 8, true, "my.so ended its process (exit status: 99)"),
            (130 << 8, false, "my.so was interrupted several times"),
            (11, false, "my.so crashed (SIGSEGV, signal 11)"),
            (9, false, "my.so was ended (SIGKILL, signal 9)"),
        ] {
            let said = ended(wait_status, has_said_so).unwrap_err();
            assert!(said.contains(words), "{said}");
        }
    }
}
