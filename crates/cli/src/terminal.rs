//! What a person sees while something is measured, and how they end it.
//!
//! Progress goes to standard error, only where that is a terminal, at most once a
//! second: each line wakes a CPU that may be the one that is measured.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use measure::{Stop, Watch};
use recording::TickSample;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use units::Nanos;

use crate::outcome::Failure;

/// The exit code of a process that a second Ctrl-C ends, as shells tell it.
const INTERRUPTED: i32 = 130;

/// Shows what goes on, and passes Ctrl-C on.
pub(crate) struct Terminal {
    stop: Stop,
    shows_progress: bool,
    /// Prints an interval of ticks; `None` where they are told at the end.
    live: Option<fn(&TickSample) -> String>,
    drawn: bool,
}

impl Terminal {
    /// A terminal that stays quiet if told to, and stops on SIGINT, SIGTERM and SIGHUP;
    /// a second one ends the process at once.
    pub(crate) fn new(
        quiet: bool,
        live: Option<fn(&TickSample) -> String>,
    ) -> Result<Self, Failure> {
        let stop = Stop::new().map_err(Failure::refused)?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let listen = || -> io::Result<()> {
                flag::register_conditional_shutdown(signal, INTERRUPTED, stop.flag())?;
                flag::register(signal, stop.flag())?;
                low_level::pipe::register(signal, stop.waker()?)?;
                Ok(())
            };
            listen().map_err(Failure::refused)?;
        }
        let shows_progress = !quiet && io::stderr().is_terminal();
        Ok(Self { stop, shows_progress, live, drawn: false })
    }

    /// Takes the progress line away.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            eprint!("\r\x1b[K");
        }
    }
}

impl Watch for Terminal {
    fn stop(&self) -> &Stop {
        &self.stop
    }

    fn period(&self) -> Option<Nanos> {
        self.shows_progress.then_some(Nanos::from_secs(1))
    }

    fn progress(&mut self, what: &str, passed: Nanos, whole: Nanos) {
        if whole < Nanos::from_secs(2) {
            return;
        }
        let (passed, whole) = (passed.as_secs_f64(), whole.as_secs_f64());
        eprint!("\r\x1b[Knoisefloor: {what}, {passed:.0} of {whole:.0} s");
        self.drawn = true;
    }

    fn ticks(&mut self, sample: &TickSample) {
        let Some(block) = self.live else { return };
        self.clear();
        // Nobody reads any more (`| head`): there is no reason to go on.
        if print(&block(sample)).is_ok_and(|read| !read) {
            self.stop.flag().store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

/// Lets SIGINT, SIGTERM and SIGHUP set the flag; a second one ends the process at once.
pub(crate) fn stop_on_signals(stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(stop))
            .and_then(|_| flag::register(signal, Arc::clone(stop)))
            .map_err(Failure::refused)?;
    }
    Ok(())
}

/// Prints to standard output at once; says whether somebody still reads it.
pub(crate) fn print(text: &str) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::refused(format!("standard output: {error}"))),
    }
}
