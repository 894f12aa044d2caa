//! Options of the commands that have moments above a limit.

use std::path::PathBuf;

use recording::{Recording, Trigger};
use units::{Cause, Nanos};

use crate::args::span;
use crate::destination::Destination;
use crate::file_pattern::file_name;
use crate::on_stop;
use crate::outcome::Failure;

/// The limit above which a value is a moment, and what is done then.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Moments above a limit")]
pub(crate) struct MomentOptions {
    /// Stop at the first moment above TIME, with a unit (50us), and print the events before and during
    /// it; exit code 1. A moment is a gap (noise), the latency of a wake-up (latency), the jitter of a
    /// test (jitter) or an interruption (run); the program of 'run' is ended with SIGTERM.
    #[arg(long, value_name = "TIME", value_parser = limit)]
    stop_above: Option<Nanos>,
    /// Do not stop, and keep the N worst moments, 1 to 100.
    #[arg(long, value_name = "N", requires = "stop_above",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(Trigger::KEEP_MAX)))]
    keep: Option<u32>,
    /// Run CMD with 'sh -c' after the measurement, for each moment in the order of time, with its JSON
    /// object on standard input.
    #[arg(long, value_name = "CMD", requires = "stop_above", value_parser = some_command)]
    on_stop: Option<String>,
    /// Write the events from one second before to one second after each moment to FILE as a trace for
    /// Perfetto or Chrome (JSON); 'noise' without --stop-above: all gaps and events. `-`: to standard
    /// output, instead of the report.
    #[arg(long, value_name = "FILE", value_parser = file_name())]
    trace: Option<PathBuf>,
}

fn limit(text: &str) -> Result<Nanos, Cause> {
    match span(text)? {
        time if time.is_zero() => Err("the limit must be greater than 0".into()),
        time => Ok(time),
    }
}

fn some_command(text: &str) -> Result<String, Cause> {
    match text.trim().is_empty() {
        true => Err("the command is empty".into()),
        false => Ok(text.to_owned()),
    }
}

impl MomentOptions {
    /// The limit, as a parameter of the measurement.
    pub(crate) fn trigger(&self) -> Trigger {
        Trigger { stop_above_ns: self.stop_above, keep: self.keep }
    }

    /// The limit.
    pub(crate) fn limit(&self) -> Option<Nanos> {
        self.stop_above
    }

    /// Whether events are stored.
    pub(crate) fn has_trace(&self) -> bool {
        self.trace.is_some()
    }

    /// Where the trace is written.
    pub(crate) fn destination(&self) -> Option<Destination<'_>> {
        self.trace.as_deref().map(|file| Destination::new("--trace", file))
    }

    /// The same, of a command whose trace has the time around moments only.
    ///
    /// # Errors
    /// A usage error if there is no limit.
    pub(crate) fn checked_destination(&self) -> Result<Option<Destination<'_>>, Failure> {
        let destination = self.destination();
        match destination.filter(|_| self.stop_above.is_none()) {
            Some(file) => Err(file.refuse("there are no moments without --stop-above")),
            None => Ok(destination),
        }
    }

    /// Runs the command for each moment, and writes the trace.
    pub(crate) fn act(&self, recording: &Recording) -> Result<(), Failure> {
        let written = self.destination().map(|to| {
            let trace = ::report::trace_json(recording);
            trace.map_or(Ok(()), |trace| to.write(&trace))
        });
        if let Some(command) = &self.on_stop {
            on_stop::run_for_each(command, &recording.moments.found);
        }
        written.unwrap_or(Ok(()))
    }
}
