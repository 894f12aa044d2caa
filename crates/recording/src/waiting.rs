//! Waiting for the other end of a FIFO.
//!
//! A FIFO is opened and used without blocking (`O_NONBLOCK`), and a wait is a loop of short polls: so it
//! can be reported, and a signal with a handler ends it, which does not end a blocking open(2) that is
//! restarted.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The length of one poll.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// A wait is reported after this time.
const REPORT_AFTER: Duration = Duration::from_secs(1);

/// How a program waits for the other end of a FIFO.
#[derive(Debug, Clone, Copy)]
pub struct FileWait {
    /// Reports the wait once, after a second: a sentence without a period.
    pub report: fn(&str),
    /// The number of signals so far that request the program to stop.
    pub signals: fn() -> u32,
}

static FILE_WAIT: OnceLock<FileWait> = OnceLock::new();

/// Sets how this program waits for FIFOs; only the first call has an effect. Without it nothing is
/// reported, and a wait ends with the process.
pub fn on_file_wait(wait: FileWait) {
    let _ = FILE_WAIT.set(wait);
}

/// The waits for one file.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// What is waited for: "a reader of the FIFO x".
    what: String,
    /// The begin of the current wait.
    began: Option<Instant>,
    is_reported: bool,
    /// A request to stop does not end a wait: the other end is there, and a result is not lost. Who
    /// insists ends the process.
    is_connected: bool,
}

impl Waiting {
    /// Waits that a request to stop ends, also one that was made before: the other end may never come.
    pub(crate) fn new(what: String) -> Self {
        Self { what, began: None, is_reported: false, is_connected: false }
    }

    /// From now on the other end is there, and gets the rest after a request to stop, too.
    pub(crate) fn is_connected(&mut self) {
        self.is_connected = true;
        self.began = None;
    }

    /// Waits a moment, or until the file is ready; returns whether it is.
    ///
    /// # Errors
    /// `Interrupted` if the program was requested to stop.
    pub(crate) fn pause(&mut self, file: Option<(&File, PollFlags)>) -> io::Result<bool> {
        let mut ends: Vec<_> =
            file.iter().map(|(file, how)| PollFd::new(*file, *how)).collect();
        let polled = poll(&mut ends, Some(&PAUSE));
        if !self.is_connected && is_stopped() {
            let text = format!("interrupted while waiting for {}", self.what);
            return Err(io::Error::new(ErrorKind::Interrupted, text));
        }
        if polled.is_ok_and(|ready| ready > 0) {
            self.began = None;
            return Ok(true);
        }
        self.report();
        Ok(false)
    }

    fn report(&mut self) {
        let began = *self.began.get_or_insert_with(Instant::now);
        if self.is_reported || began.elapsed() < REPORT_AFTER {
            return;
        }
        self.is_reported = true;
        if let Some(wait) = FILE_WAIT.get() {
            (wait.report)(&format!("waiting for {}", self.what));
        }
    }
}

fn is_stopped() -> bool {
    FILE_WAIT.get().is_some_and(|wait| (wait.signals)() > 0)
}
