//! What a person sees while something is measured, and how they end it.
//!
//! Progress of a measurement is told at most once a second: each line wakes a CPU that may
//! be the one that is measured.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use measure::{Stop, Watch};
use recording::TickSample;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use units::Nanos;

use crate::outcome::Failure;
use crate::printing::{print, say};
use crate::progress_line::ProgressLine;

/// Set by the first signal, wherever it is heeded.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
const SIGNALS: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];
/// The exit code of a process that a second Ctrl-C ends, as shells tell it.
pub(crate) const INTERRUPTED: i32 = 130;

/// Shows what goes on, and passes Ctrl-C on.
pub(crate) struct Terminal {
    stop: Stop,
    line: ProgressLine,
    is_quiet: bool,
    /// Prints an interval of ticks; `None` where they are told at the end.
    live: Option<fn(&TickSample) -> String>,
}

impl Terminal {
    /// A terminal that stays quiet if told to, and stops on SIGINT, SIGTERM and SIGHUP;
    /// a second one ends the process at once.
    pub(crate) fn new(
        quiet: bool,
        live: Option<fn(&TickSample) -> String>,
    ) -> Result<Self, Failure> {
        let stop = Stop::new().map_err(Failure::refused)?;
        stop_on_signals(&stop.flag())?;
        for signal in heeded() {
            let waker = stop.waker().map_err(Failure::refused)?;
            low_level::pipe::register(signal, waker).map_err(Failure::refused)?;
        }
        Ok(Self { stop, line: ProgressLine::new(quiet), is_quiet: quiet, live })
    }

    /// Says something on standard error that stays, unless told to be quiet.
    pub(crate) fn remark(&mut self, text: &str) {
        if !self.is_quiet {
            self.line.clear();
            say(text);
        }
    }

    /// Shows how far something is, where standard error is a terminal.
    pub(crate) fn draw(&mut self, text: &str) {
        self.line.draw(text);
    }

    /// Takes the progress line away.
    pub(crate) fn clear(&mut self) {
        self.line.clear();
    }
}

impl Watch for Terminal {
    fn has_neighbours(&self) -> bool {
        true
    }

    fn stop(&self) -> &Stop {
        &self.stop
    }

    fn period(&self) -> Option<Nanos> {
        self.line.is_shown().then_some(Nanos::from_secs(1))
    }

    fn progress(&mut self, what: &str, passed: Nanos, whole: Nanos) {
        if whole < Nanos::from_secs(2) {
            return;
        }
        let (passed, whole) = (passed.as_secs_f64(), whole.as_secs_f64());
        self.line.draw(&format!("{what}, {passed:.0} of {whole:.0} s"));
    }

    fn ticks(&mut self, sample: &TickSample) {
        let Some(block) = self.live else { return };
        self.line.clear();
        // Nobody reads any more (`| head`): there is no reason to go on.
        if print(&block(sample)).is_ok_and(|read| !read) {
            self.stop.flag().store(true, Ordering::Relaxed);
        }
    }
}

/// Lets SIGINT, SIGTERM and SIGHUP set the flag; a second one ends the process at once.
///
/// What a signal does is done in the order in which it was registered, and as far as it was:
/// one that comes meanwhile must set the flag, or nobody would ever know of it. So that is
/// registered first, and which one is the second is told by a flag of its own.
pub(crate) fn stop_on_signals(stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    STOP.get_or_init(|| Arc::clone(stop));
    let again = Arc::new(AtomicBool::new(false));
    for signal in heeded() {
        flag::register(signal, Arc::clone(stop))
            .and_then(|_| {
                flag::register_conditional_shutdown(
                    signal,
                    INTERRUPTED,
                    Arc::clone(&again),
                )
            })
            .and_then(|_| flag::register(signal, Arc::clone(&again)))
            .map_err(Failure::refused)?;
    }
    Ok(())
}

/// Reports when the journal of changed settings is waited for, and ends the wait on a signal.
pub(crate) fn report_lock_waits(quiet: bool) {
    let report = if quiet { |_: &str| {} } else { |text: &str| say(text) };
    let is_stopped = || STOP.get().is_some_and(|stop| stop.load(Ordering::Relaxed));
    isolate::on_lock_wait(isolate::LockWait { report, is_stopped });
}

/// The signals that end a measurement. One that is started with `nohup` is to outlive its
/// terminal.
fn heeded() -> impl Iterator<Item = i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let is_nohup = mask.is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1);
    SIGNALS.into_iter().filter(move |&signal| signal != SIGHUP || !is_nohup)
}
