//! A child process, mostly noisefloor again, that gets the signals sent to this one until it has ended.

use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;

use crate::outcome::Failure;
use crate::terminal::heeded;

const FORWARDED: [(i32, Signal); 3] =
    [(SIGHUP, Signal::HUP), (SIGINT, Signal::INT), (SIGTERM, Signal::TERM)];

/// The signals that this process handles: those that it forwards, and the end of its child.
pub(crate) struct Forwarding {
    received: Vec<(Arc<AtomicBool>, Signal)>,
    any: UnixStream,
    count: usize,
}

impl Forwarding {
    /// From here on, the signals do not end this process.
    pub(crate) fn new() -> io::Result<Self> {
        let (any, waker) = UnixStream::pair()?;
        let mut received = Vec::new();
        let heeded: Vec<i32> = heeded().collect();
        for (number, signal) in FORWARDED {
            if !heeded.contains(&number) {
                continue;
            }
            let flag = Arc::new(AtomicBool::new(false));
            // Set before the byte that wakes the reader is written.
            flag::register(number, Arc::clone(&flag))?;
            pipe::register(number, waker.try_clone()?)?;
            received.push((flag, signal));
        }
        pipe::register(SIGCHLD, waker)?;
        Ok(Self { received, any, count: 0 })
    }

    /// Waits for the end of the child and forwards signals to it; `None` if it has not ended by the
    /// deadline.
    pub(crate) fn until_ended(
        &mut self,
        child: &mut Child,
        deadline: Option<Instant>,
    ) -> io::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            // Checked before waiting: a signal may have set its flag, but not yet written its byte.
            for signal in self.take() {
                send(child, signal);
            }
            if !self.wait(deadline)? {
                return Ok(None);
            }
        }
    }

    /// Waits for that long, or until a signal arrives.
    pub(crate) fn pause(&mut self, time: Duration) -> io::Result<()> {
        let end = Instant::now().checked_add(time);
        while !self.is_interrupted() && self.wait(end)? {}
        Ok(())
    }

    /// Whether one of the signals has arrived.
    pub(crate) fn is_interrupted(&mut self) -> bool {
        self.take();
        self.count > 0
    }

    /// The signals that have arrived since the last call.
    fn take(&mut self) -> Vec<Signal> {
        let received = self.received.iter();
        let new = received.filter(|(flag, _)| flag.swap(false, Ordering::Relaxed));
        let new: Vec<Signal> = new.map(|(_, signal)| *signal).collect();
        self.count += new.len();
        new
    }

    /// Waits for any signal; false if the time is over.
    fn wait(&mut self, until: Option<Instant>) -> io::Result<bool> {
        let rest = until.map(|until| until.saturating_duration_since(Instant::now()));
        if rest.is_some_and(|rest| rest.is_zero()) {
            return Ok(false);
        }
        self.any.set_read_timeout(rest)?;
        match self.any.read(&mut [0; 16]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
            _ => Ok(true),
        }
    }
}

/// This program, to be started again. The link refers to it even if its file was replaced.
pub(crate) fn own_program() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("noisefloor");
    command
}

/// Starts it: it ends with this process, and is no target of Ctrl-C.
pub(crate) fn start_again(command: &mut Command) -> Result<Child, Failure> {
    isolate::tether(command, None);
    let started = command.spawn();
    started.map_err(|error| {
        Failure::refused(format!("failed to start noisefloor again: {error}"))
    })
}

/// Sends a signal. The child may have ended, and is then waited for; a stopped process would not
/// handle the signal.
pub(crate) fn send(child: &Child, signal: Signal) {
    let child = Pid::from_child(child);
    let _ = kill_process(child, signal);
    let _ = kill_process(child, Signal::CONT);
}
