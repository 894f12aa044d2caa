//! A run of a program, as benchmarks list it.

use recording::{Body, Recording};
use units::Nanos;

use crate::run::RunSummary;

/// The times of one run of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramRun {
    /// The command line.
    pub command: String,
    /// The time from its start to its end.
    pub elapsed_ns: Nanos,
    /// That time without interruptions; `None` if it is not known.
    pub net_ns: Option<Nanos>,
    /// The time that it ran or was ready to run; `None` if its interruptions were not traced.
    pub ready_ns: Option<Nanos>,
    /// CPU time in user mode.
    pub user_ns: Nanos,
    /// CPU time in kernel mode.
    pub system_ns: Nanos,
    /// Its exit code; 128 plus the signal if one ended it.
    pub exit_code: u8,
}

impl ProgramRun {
    /// The mean of a time of these runs, in seconds.
    pub fn mean_secs(runs: &[Self], time: fn(&Self) -> Nanos) -> f64 {
        let sum: f64 = runs.iter().map(|run| time(run).as_secs_f64()).sum();
        sum / runs.len() as f64
    }

    /// `None` for a recording of another kind.
    pub(crate) fn of(recording: &Recording) -> Option<Self> {
        let Body::Run { spec, series } = &recording.body else { return None };
        Some(Self {
            command: spec.command.to_string(),
            elapsed_ns: series.elapsed_ns,
            net_ns: RunSummary::net_ns(spec, series),
            ready_ns: series.interruptions.as_ref().map(|found| found.ready_ns),
            user_ns: series.usage.user_ns,
            system_ns: series.usage.system_ns,
            exit_code: series.ended.code(),
        })
    }
}
