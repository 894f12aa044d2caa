//! A child process, mostly noisefloor again, that gets the signals sent to this one until it has ended.
//!
//! However often they are repeated, they do not end this process, which may have changed settings: the
//! child ends, and this process after it.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use measure::{Received, Relay};
use rustix::process::{Pid, Signal, kill_process};

use crate::forced_end;
use crate::outcome::Failure;

/// The signals that this process handles: those that it forwards, and the end of its child.
///
/// They do not end this process after this is dropped either: settings are then restored, and results
/// written.
pub(crate) struct Forwarding {
    relay: Arc<Relay>,
    is_interrupted: bool,
}

impl Forwarding {
    /// From here on, signals do not end this process.
    pub(crate) fn new() -> io::Result<Self> {
        let relay = Arc::new(Relay::of_own_work(None)?);
        Ok(Self { relay, is_interrupted: false })
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
            if is_over(deadline) {
                return Ok(None);
            }
            self.forward_next(child, None, deadline)?;
        }
    }

    /// Waits for the next signal, until `other` is readable, or until the deadline, and forwards the
    /// signal to the child.
    pub(crate) fn forward_next(
        &mut self,
        child: &Child,
        other: Option<BorrowedFd<'_>>,
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        if let Some(signal) = self.next_or(other, deadline)? {
            send(child, signal);
        }
        Ok(())
    }

    /// Waits for the next signal, until `others` is readable, or until the deadline, and forwards the signal to all
    /// of these children.
    pub(crate) fn forward_next_to_all(
        &mut self,
        children: &[&Child],
        others: BorrowedFd<'_>,
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        if let Some(signal) = self.next_or(Some(others), deadline)? {
            children.iter().for_each(|child| send(child, signal));
        }
        Ok(())
    }

    /// Waits for that long, or until a signal arrives.
    pub(crate) fn pause(&mut self, time: Duration) -> io::Result<()> {
        let end = Instant::now().checked_add(time);
        while !self.is_interrupted() && !is_over(end) {
            self.next(end)?;
        }
        Ok(())
    }

    /// Whether one of the signals has arrived.
    pub(crate) fn is_interrupted(&mut self) -> bool {
        while let Ok(Some(received)) = self.relay.next(Some(Duration::ZERO)) {
            self.is_interrupted |= !received.is_of_child();
        }
        self.is_interrupted
    }

    /// Waits for the next signal, or until then; `None` also if a child has ended.
    fn next(&mut self, until: Option<Instant>) -> io::Result<Option<Signal>> {
        self.next_or(None, until)
    }

    /// The same, or until `other` is readable.
    fn next_or(
        &mut self,
        other: Option<BorrowedFd<'_>>,
        until: Option<Instant>,
    ) -> io::Result<Option<Signal>> {
        let rest = until.map(|until| until.saturating_duration_since(Instant::now()));
        let received = match other {
            Some(other) => self.relay.next_or(other, rest)?,
            None => self.relay.next(rest)?,
        };
        let received = received.filter(|received| !received.is_of_child());
        self.is_interrupted |= received.is_some();
        Ok(received.map(forwarded_as))
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        // Without a thread, signals have their default action again.
        let _ = forced_end::watch(Arc::clone(&self.relay));
    }
}

/// Signals that a program may expect are forwarded unchanged; others are to end this process, and so
/// its child.
fn forwarded_as(received: Received) -> Signal {
    match Signal::from_named_raw(received.signal) {
        Some(
            signal @ (Signal::HUP
            | Signal::INT
            | Signal::QUIT
            | Signal::USR1
            | Signal::USR2),
        ) => signal,
        _ => Signal::TERM,
    }
}

/// Whether the time is over.
pub(crate) fn is_over(until: Option<Instant>) -> bool {
    until.is_some_and(|until| until <= Instant::now())
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
