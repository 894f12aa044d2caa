//! The files that a program uses, observed while it runs once on this machine.
//!
//! The program and all processes that it starts are traced (ptrace(2)). A filter (seccomp(2)) stops them
//! at system calls with a path only; before the kernel executes such a call, the tracer reads the path,
//! and stores what is there: so it knows each file as it was before the program changed it.
//!
//! Cannot see: files that the kernel opens by itself (the interpreters of programs and scripts), calls of
//! 32-bit programs, and the memory of programs that may be executed but not read. A program with
//! set-user-ID has the privileges of the caller only. `io_uring_setup(2)` fails with `ENOSYS`, since
//! requests through its queues are no system calls; programs then make the ordinary ones. x86-64 only.

mod calls;
mod error;
mod filter;
mod observation;
mod output;
mod path_walk;
mod process;
mod ptrace;
mod tracee;
mod tracer;
mod uses;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, pidfd_send_signal};

pub use error::{Error, Kind};
pub use observation::{Contents, Ended, FileUse, Listed, Node, Observation};
pub use path_walk::without_dots;

/// How often a signal or the end of the time is looked for.
const INTERVAL: Duration = Duration::from_millis(20);
/// A longer observation is reported, that often.
const REPORTED: Duration = Duration::from_secs(2);

/// A program to observe.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Its file.
    pub program: &'a Path,
    /// Its arguments; the first one is its name.
    pub arguments: &'a [OsString],
    /// All of its environment.
    pub environment: &'a [(String, String)],
    /// Its working directory, an absolute path without links.
    pub folder: &'a Path,
    /// Paths that are not observed, nor what is below them.
    pub ignored: &'a [&'a str],
    /// It is killed after that time.
    pub limit: Duration,
    /// The most of changed files that is stored, in bytes.
    pub contents_max: u64,
    /// Set by another thread to stop early.
    pub stop: &'a AtomicBool,
}

/// What was used so far.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    files: AtomicU64,
    bytes: AtomicU64,
}

/// Runs a program, and returns what it used; `progress` is called with the number of files so far and
/// their size in bytes, if it takes more than two seconds.
///
/// Its input is empty, it has no terminal, and everything that it started ends with it.
///
/// # Errors
/// It could not be started or traced, or `stop` was set.
pub fn observe(
    request: &Request<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Observation, Error> {
    let counts = Counts::default();
    let (started, receiver) = mpsc::channel();
    thread::scope(|scope| {
        // Only the thread that starts a process can trace it, and wait for its children alone.
        let tracer = scope.spawn(|| tracer::run(request, &counts, started));
        let end = watch(request, &counts, &receiver, progress);
        let observation = tracer.join().map_err(|_| Error::Tracer)??;
        match end {
            End::Own => Ok(observation),
            End::Limit => Ok(Observation { ended: Ended::TooLong, ..observation }),
            End::Stopped => Err(Error::Interrupted),
        }
    })
}

/// Why a program ended.
enum End {
    /// By itself, or it was not started.
    Own,
    Limit,
    Stopped,
}

/// Waits for the end of the tracer, which drops its side of the channel, and kills the program if that
/// takes too long.
fn watch(
    request: &Request<'_>,
    counts: &Counts,
    started: &Receiver<OwnedFd>,
    progress: &mut dyn FnMut(u64, u64),
) -> End {
    let Ok(program) = started.recv() else { return End::Own };
    let begin = Instant::now();
    let mut reported = Duration::ZERO;
    while !matches!(started.recv_timeout(INTERVAL), Err(RecvTimeoutError::Disconnected)) {
        let passed = begin.elapsed();
        let end = match request.stop.load(Ordering::Relaxed) {
            true => End::Stopped,
            false if passed > request.limit => End::Limit,
            false => {
                if passed - reported > REPORTED {
                    reported = passed;
                    let [files, bytes] = [&counts.files, &counts.bytes];
                    progress(
                        files.load(Ordering::Relaxed),
                        bytes.load(Ordering::Relaxed),
                    );
                }
                continue;
            }
        };
        let _ = pidfd_send_signal(program, Signal::KILL); // it may have ended
        return end;
    }
    End::Own
}
