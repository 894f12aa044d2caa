//! Progress of a measurement, and the signals that end it.
//!
//! Progress is printed at most once per second: each line wakes up a CPU, which may be the
//! measured one.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use measure::{Control, Notice as Of, Relay, Stop};
use recording::TickSample;
use session::{Event, Observer};
use units::Nanos;

use crate::forced_end;
use crate::outcome::Failure;
use crate::printing::{print, say};
use crate::progress_line::ProgressLine;
use crate::remarks;

/// Shows progress, and reports Ctrl-C to the measurement.
pub(crate) struct Terminal {
    stop: Stop,
    line: ProgressLine,
    is_quiet: bool,
    /// Prints an interval of ticks; `None` if they are reported at the end.
    live: Option<fn(&TickSample) -> String>,
}

impl Terminal {
    /// A terminal that shows nothing with `--quiet`. Signals stop the measurement
    /// ([`stop_on_signals`]).
    pub(crate) fn new(
        quiet: bool,
        live: Option<fn(&TickSample) -> String>,
    ) -> Result<Self, Failure> {
        let stop = stop_on_signals()?;
        Ok(Self { stop, line: ProgressLine::new(quiet), is_quiet: quiet, live })
    }

    /// The conditions of a measurement: it ends on a signal, and reports progress if that is shown.
    pub(crate) fn control(&self) -> Control {
        let period = self.line.is_shown().then_some(Nanos::from_secs(1));
        Control {
            stop: self.stop.clone(),
            period,
            has_neighbours: true,
            relay: None,
            gate: None,
            moments: Arc::default(),
        }
    }

    /// Ends the measurement: its output is no longer read.
    pub(crate) fn end(&self) {
        self.stop.request();
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
            Event::NotRestored(_) => {
                self.line.clear();
                remarks::text(event).iter().for_each(say);
            }
            event => remarks::text(event).iter().for_each(|text| self.remark(text)),
        }
    }
}

/// A flag that signals set, as in [`stop_on_signals`].
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    Ok(stop_on_signals()?.flag())
}

/// The stop request of this process: from here on, the signals that would end it make that request,
/// and it ends by itself. Signals after the first change nothing until [`forced_end`].
fn stop_on_signals() -> Result<Stop, Failure> {
    static STOP: OnceLock<Stop> = OnceLock::new();
    if let Some(stop) = STOP.get() {
        return Ok(stop.clone());
    }
    let stop = Stop::new().map_err(Failure::refused)?;
    let relay = Relay::of_own_work(Some(&stop)).map_err(Failure::refused)?;
    forced_end::watch(relay)?;
    Ok(STOP.get_or_init(|| stop).clone())
}

/// Reports a wait for the journal of changed settings, or for the other end of a FIFO, and ends the wait
/// on a signal.
pub(crate) fn report_waits(quiet: bool) {
    let report = if quiet { |_: &str| {} } else { |text: &str| say(text) };
    isolate::on_lock_wait(isolate::LockWait { report, signals: Relay::count });
    recording::on_file_wait(recording::FileWait { report, signals: Relay::count });
}
