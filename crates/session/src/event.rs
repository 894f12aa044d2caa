//! What a session reports as it happens.

use std::path::Path;

use isolate::RestoredSetting;
use measure::Notice;
use recording::{TopSample, WatchedDelay};
use units::CpuSet;

/// What a session reports as it happens.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// Another noisefloor has measured on one of the CPUs for a second: waiting for its end.
    Waiting {
        /// The CPUs that are claimed.
        cpus: &'a CpuSet,
        /// Which of them is taken, and by which process.
        why: &'a isolate::Error,
    },
    /// A setting that was left behind by a killed run, and its restore outcome.
    LeftBehind(&'a RestoredSetting),
    /// A trace that was left behind by a killed run, and is removed.
    TraceLeftBehind(&'a Path),
    /// Something could not be set, locked or restored; the session continues.
    Refused(&'a isolate::Error),
    /// The measurement has started.
    Started,
    /// What the measurement reports.
    Measurement(Notice<'a>),
    /// A stored delay of a watched program.
    Delay(&'a WatchedDelay),
    /// An interval in which the CPUs of the machine were watched.
    Interval(&'a TopSample),
    /// The measurement has ended, successfully or not; its results are read next.
    Finished,
    /// A setting that was changed for the session, and its restore outcome.
    Returned(&'a RestoredSetting),
    /// Settings could not be restored at the end.
    NotRestored(&'a isolate::Error),
}

/// Receives the events of a session.
pub trait Observer {
    /// Handles an event.
    fn event(&mut self, event: Event<'_>);
}

/// Ignores all events.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {
    fn event(&mut self, _: Event<'_>) {}
}

/// Passes on what a measurement reports.
pub(crate) fn of_measurement(observer: &mut dyn Observer) -> impl FnMut(Notice<'_>) {
    |notice| observer.event(Event::Measurement(notice))
}
