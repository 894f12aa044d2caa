//! Programs, among them the system's package client, run so that they can be stopped.
//!
//! Each runs in a process group of its own, out of reach of the terminal's Ctrl-C, and is
//! killed with all its children as soon as `stop` is set. Its standard input is empty, and
//! it ends with this process.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::{ClientError, Error};

/// The interval at which a program is polled.
const LOOK: Duration = Duration::from_millis(10);

/// What a program that has ended wrote.
#[derive(Debug)]
pub struct Written {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub output: String,
    /// Its standard error.
    pub errors: String,
}

/// A running program; killed with its group when the value is dropped.
struct Group(Child);

/// Runs a program to its end, or until `stop` is set: then it is killed with its children, and
/// there is no output. Its standard input is that of the command.
///
/// # Errors
/// It cannot be started, or its output cannot be stored.
pub fn run_or_stop(
    command: &mut Command,
    stop: &AtomicBool,
) -> io::Result<Option<Written>> {
    let [mut output, mut errors] = [tempfile::tempfile()?, tempfile::tempfile()?];
    let [out, err] = [output.try_clone()?, errors.try_clone()?];
    let mut group = Group::start(command.env("LC_ALL", "C").stdout(out).stderr(err))?;
    let status = loop {
        if let Some(status) = group.0.try_wait()? {
            break status;
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        thread::sleep(LOOK);
    };
    let [output, errors] = [read(&mut output)?, read(&mut errors)?];
    Ok(Some(Written { status, output, errors }))
}

/// The same for a program of the package client.
///
/// # Errors
/// `Kind::Unavailable` if it cannot be started, `Kind::Interrupted`.
pub(crate) fn run(command: &mut Command, stop: &AtomicBool) -> Result<Written, Error> {
    let written = run_or_stop(command, stop);
    written.map_err(|error| not_run(command, error))?.ok_or(Error::Interrupted)
}

/// Runs a program without input; the output if it succeeds.
///
/// # Errors
/// `Kind::Unavailable` with the program's message, `Kind::Cache` if the disk is full,
/// `Kind::Interrupted`.
pub(crate) fn output(command: &mut Command, stop: &AtomicBool) -> Result<String, Error> {
    succeed(command.stdin(Stdio::null()), stop)
}

/// The same with the input of the command.
fn succeed(command: &mut Command, stop: &AtomicBool) -> Result<String, Error> {
    let written = run(command, stop)?;
    if written.status.success() {
        return Ok(written.output);
    }
    Err(complained(command, complaint(&written.errors)))
}

/// Runs two programs, the first one's output being the second one's input.
///
/// # Errors
/// As [`output`]; `broken` is the message if the first one fails.
pub(crate) fn pipe(
    from: &mut Command,
    to: &mut Command,
    broken: &str,
    stop: &AtomicBool,
) -> Result<(), Error> {
    from.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut group = Group::start(from).map_err(|error| not_run(from, error))?;
    let Some(output) = group.0.stdout.take() else {
        return Err(complained(from, "no output"));
    };
    succeed(to.stdin(output), stop)?;
    // Its reader has ended, so that it ends by itself (SIGPIPE).
    let ended = group.0.wait().map_err(|error: io::Error| failed(from, error))?;
    if ended.success() { Ok(()) } else { Err(complained(from, broken)) }
}

/// Fails if `stop` is set.
///
/// # Errors
/// `Kind::Interrupted`.
pub(crate) fn refuse_stopped(stop: &AtomicBool) -> Result<(), Error> {
    match stop.load(Ordering::Relaxed) {
        true => Err(Error::Interrupted),
        false => Ok(()),
    }
}

/// The first error in what a program wrote. The package client marks errors; tar writes a line about
/// what it changes in names before.
pub(crate) fn complaint(text: &str) -> &str {
    let mut errors = text.lines().filter_map(|line| line.strip_prefix("E: "));
    let is_reason = |line: &&str| !line.trim().is_empty() && !line.contains(REMOVING);
    let first = || text.lines().find(is_reason).unwrap_or("it prints no reason");
    errors.next().unwrap_or_else(first)
}

/// In a line of tar's that is no error.
const REMOVING: &str = ": Removing leading ";

/// The failure of a program, with its message.
pub(crate) fn complained(command: &Command, why: &str) -> Error {
    let cause = match why.contains("No space left on device") {
        true => ClientError::Full(why.to_owned()),
        false => ClientError::Failed(why.to_owned()),
    };
    failed(command, cause)
}

/// The failure to start a program, or to store its output.
fn not_run(command: &Command, error: io::Error) -> Error {
    let is_missing = error.kind() == ErrorKind::NotFound;
    failed(command, if is_missing { ClientError::Missing } else { error.into() })
}

/// The failure to run a program.
fn failed(command: &Command, cause: impl Into<ClientError>) -> Error {
    let program = command.get_program().to_string_lossy().into_owned();
    Error::Client(program, cause.into())
}

fn read(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Group {
    fn start(command: &mut Command) -> io::Result<Self> {
        isolate::tether(command, None);
        command.spawn().map(Self)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(None)) {
            return; // its PID may have been reused
        }
        // This fails if it is ending already, which is fine.
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use std::time::Instant;
    use units::chain;

    static NO: AtomicBool = AtomicBool::new(false);

    fn shell(script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(script);
        shell
    }

    /// Check that a program that is missing is named, and one that fails is quoted: apt
    /// by its first error, others by their first line.
    #[test]
    fn says_why_a_program_failed() {
        let missing = output(&mut Command::new("/no-such-program"), &NO).unwrap_err();
        assert_eq!(
            chain(&missing),
            "failed to run /no-such-program: it is not installed"
        );
        assert_eq!(missing.kind(), Kind::Unavailable);
        let fail = |text: &str| {
            let mut command = shell(&format!("printf '{text}' >&2; exit 1"));
            chain(&output(&mut command, &NO).unwrap_err())
        };
        assert_eq!(fail("W: a\\nE: b\\nE: c\\n"), "failed to run sh: b");
        assert_eq!(fail("first\\nlast\\n"), "failed to run sh: first");
        let mut full = shell("echo No space left on device >&2; exit 1");
        let error = output(&mut full, &NO).unwrap_err();
        assert_eq!(error.kind(), Kind::Cache);
        assert!(chain(&error).contains("NOISEFLOOR_CACHE"), "{error}");
    }

    /// Check that `stop` kills a program and its children, long before they would end.
    #[test]
    fn stops_with_all_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let script = format!("sleep 600 & echo $! >{}; wait", file.display());
        let stop = AtomicBool::new(false);
        let began = Instant::now();
        let ended = thread::scope(|scope| {
            let running = scope.spawn(|| output(&mut shell(&script), &stop));
            let is_written =
                || std::fs::read_to_string(&file).is_ok_and(|s| s.ends_with('\n'));
            while !is_written() {
                thread::sleep(LOOK);
            }
            stop.store(true, Ordering::Relaxed);
            running.join().unwrap()
        });
        assert_eq!(ended.unwrap_err().kind(), Kind::Interrupted);
        assert!(began.elapsed() < Duration::from_secs(300));
        let pid = std::fs::read_to_string(&file).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        // A zombie may wait for init to reap it.
        let lives =
            || std::fs::read_to_string(&stat).is_ok_and(|text| !text.contains(") Z "));
        while lives() {
            assert!(began.elapsed() < Duration::from_secs(300), "{stat}");
            thread::sleep(LOOK);
        }
    }

    /// Check that one program reads what the other writes, and that the failure of either is
    /// reported.
    #[test]
    fn pipes() {
        let pipe =
            |from: &str, to: &str| pipe(&mut shell(from), &mut shell(to), "damaged", &NO);
        pipe("echo a", "read line && [ $line = a ]").unwrap();
        let error = pipe("exit 1", "cat").unwrap_err();
        assert_eq!(chain(&error), "failed to run sh: damaged");
        let error = pipe("yes", "echo full >&2; exit 1").unwrap_err();
        assert_eq!(chain(&error), "failed to run sh: full");
    }
}
