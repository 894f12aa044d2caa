//! Progress of a measurement, and the signals that end it.
//!
//! Progress is printed at most once per second: each line wakes up a CPU, which may be the
//! measured one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use measure::{Control, Notice as Of, Stop};
use recording::TickSample;
use session::{Event, Observer};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use units::Nanos;

use crate::outcome::Failure;
use crate::printing::{print, say};
use crate::progress_line::ProgressLine;
use crate::remarks;

/// Set by the first signal.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
const SIGNALS: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];
/// The exit code of a process that a second Ctrl-C ends, as shells report it.
pub(crate) const INTERRUPTED: i32 = 130;

/// Shows progress, and reports Ctrl-C to the measurement.
pub(crate) struct Terminal {
    stop: Stop,
    line: ProgressLine,
    is_quiet: bool,
    /// Prints an interval of ticks; `None` if they are reported at the end.
    live: Option<fn(&TickSample) -> String>,
}

impl Terminal {
    /// A terminal that shows nothing with `--quiet`. SIGINT, SIGTERM and SIGHUP stop the
    /// measurement; a second signal ends the process at once.
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

    /// The conditions of a measurement: it ends on a signal, and reports progress if that is shown.
    pub(crate) fn control(&self) -> Control {
        let period = self.line.is_shown().then_some(Nanos::from_secs(1));
        Control { stop: self.stop.clone(), period, has_neighbours: true, relay: None }
    }

    /// Ends the measurement: its output is no longer read.
    pub(crate) fn end(&self) {
        self.stop.flag().store(true, Ordering::Relaxed);
    }

    /// Prints a permanent message to standard error, unless `--quiet` is given.
    pub(crate) fn remark(&mut self, text: &str) {
        if !self.is_quiet {
            self.line.clear();
            say(text);
        }
    }

    /// Shows progress, if standard error is a terminal.
    pub(crate) fn draw(&mut self, text: &str) {
        self.line.draw(text);
    }
}

impl Observer for Terminal {
    fn event(&mut self, event: Event<'_>) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "`remarks` names the others")]
        match event {
            Event::Measurement(Of::Progress { activity, passed, whole }) => {
                if whole >= Nanos::from_secs(2) {
                    let (passed, whole) = (passed.as_secs_f64(), whole.as_secs_f64());
                    self.line.draw(&format!("{activity}, {passed:.0} of {whole:.0} s"));
                }
            }
            Event::Measurement(Of::Ticks(sample)) => {
                let Some(block) = self.live else { return };
                self.line.clear();
                // The reader has closed the pipe (`| head`): stop.
                if print(&block(sample)).is_ok_and(|read| !read) {
                    self.end();
                }
            }
            Event::Finished => self.line.clear(),
            event => remarks::text(event).iter().for_each(|text| self.remark(text)),
        }
    }
}

/// A flag that SIGINT, SIGTERM and SIGHUP set, as in [`stop_on_signals`].
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_signals(&stop)?;
    Ok(stop)
}

/// Lets SIGINT, SIGTERM and SIGHUP set the flag; a second signal ends the process at once.
///
/// The actions of a signal run in the order of their registration, and a signal can arrive between
/// two registrations: it must set the flag, or it would be lost. So the flag is registered first,
/// and a separate flag marks that a signal is the second.
fn stop_on_signals(stop: &Arc<AtomicBool>) -> Result<(), Failure> {
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

/// Reports a wait for the journal of changed settings, or for the other end of a FIFO, and ends the wait
/// on a signal.
pub(crate) fn report_waits(quiet: bool) {
    let report = if quiet { |_: &str| {} } else { |text: &str| say(text) };
    let is_stopped = || STOP.get().is_some_and(|stop| stop.load(Ordering::Relaxed));
    isolate::on_lock_wait(isolate::LockWait { report, is_stopped });
    recording::on_file_wait(recording::FileWait { report, is_stopped });
}

/// The signals that end a measurement. Ignored signals are left out, so that `nohup` works.
pub(crate) fn heeded() -> impl Iterator<Item = i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let is_nohup = mask.is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1);
    SIGNALS.into_iter().filter(move |&signal| signal != SIGHUP || !is_nohup)
}
