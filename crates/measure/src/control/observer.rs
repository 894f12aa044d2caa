//! A measurement as it is seen from outside: under which conditions it runs, what it reports as it
//! happens, and the waits during which it reports progress.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use isolate::Gate;
use recording::{Doubt, JitterPlan, JitterSoFar, TickSample};
use units::{Nanos, Span, TscHz};

use crate::control::moments::WorstMoments;
use crate::control::relay::Relay;
use crate::control::stop::Stop;
use crate::time::counter;

/// Conditions under which a measurement runs.
#[derive(Debug)]
pub struct Control {
    /// The stop request.
    pub stop: Stop,
    /// Interval of progress events; `None`: no progress events. Each one wakes up a thread, which
    /// is itself noise, so it is for progress that is displayed.
    pub period: Option<Nanos>,
    /// Whether to keep this process's other threads off the measured CPUs, and to end threads that
    /// a real-time task keeps off theirs, with a thread that sleeps until then. In a guest there is
    /// no such task.
    pub has_neighbours: bool,
    /// Receives the signals that are forwarded to a program; `None`: one is made for the run.
    pub relay: Option<Relay>,
    /// The gate of a program that runs beside another one; `None`: it is started at once, and processes that
    /// it leaves behind stay.
    pub gate: Option<Gate>,
    /// The worst moments so far, for the reader of the kernel's events.
    pub moments: Arc<WorstMoments>,
}

impl Control {
    /// No progress, no neighbours, and a stop request that has not been made.
    ///
    /// # Errors
    /// Without a socket.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            stop: Stop::new()?,
            period: None,
            has_neighbours: false,
            relay: None,
            gate: None,
            moments: Arc::default(),
        })
    }
}

/// What a measurement reports while it runs.
#[derive(Debug, Clone, Copy)]
pub enum Notice<'a> {
    /// Progress of an activity, once in each period.
    Progress {
        /// Its name.
        activity: &'a str,
        /// The elapsed part of its duration.
        passed: Nanos,
        /// Its duration.
        whole: Nanos,
    },
    /// A doubt of a running program that its user should know at once.
    Doubt(&'a Doubt),
    /// An interval of ticks that has just ended.
    Ticks(&'a TickSample),
    /// The plan of the jitter tests that are about to begin.
    Plan(&'a JitterPlan),
    /// Progress of those tests: once in each period in which one was completed, and at their end.
    Jitter {
        /// The tests so far.
        so_far: &'a JitterSoFar,
        /// The counter's frequency as far as it is known.
        hz: TscHz,
    },
    /// A workload has not returned for that long after it was to end. Reported repeatedly: only the
    /// end of this process ends it.
    NeverReturns(Nanos),
}

/// Receives what a measurement reports.
pub type Listener<'a> = dyn FnMut(Notice<'_>) + 'a;

/// A [`Listener`] that ignores everything.
pub fn ignore(_: Notice<'_>) {}

/// A measurement's conditions and its listener.
pub(crate) struct Watch<'a> {
    pub(crate) control: &'a Control,
    pub(crate) listener: &'a mut Listener<'a>,
}

impl Watch<'_> {
    /// Reports progress.
    pub(crate) fn progress(&mut self, activity: &str, passed: Nanos, whole: Nanos) {
        (self.listener)(Notice::Progress { activity, passed, whole });
    }

    /// Sleeps from `begin` to `until` (`CLOCK_MONOTONIC_RAW`) or until the stop request, and
    /// reports progress in between.
    pub(crate) fn sleep(&mut self, activity: &str, begin: Nanos, until: Nanos) {
        let whole = until.saturating_sub(begin);
        let Control { stop, period, .. } = self.control;
        loop {
            let now = counter::kernel(libc::CLOCK_MONOTONIC_RAW);
            if now >= until || stop.is_requested() {
                return;
            }
            let next = period.map_or(until, |period| until.min(now + period));
            if period.is_some() {
                self.progress(activity, now.saturating_sub(begin), whole);
            }
            stop.sleep_until(next);
        }
    }

    /// Waits until that many threads have finished, or all have died, and reports progress in
    /// between. `whole` is the expected duration, in `CLOCK_MONOTONIC_RAW`.
    pub(crate) fn until_all(
        &mut self,
        activity: &str,
        finished: &Receiver<()>,
        threads: usize,
        whole: Span,
    ) {
        let mut running = threads;
        while running > 0 {
            let next = match self.control.period {
                Some(period) => finished.recv_timeout(Duration::from(period)),
                None => finished.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match next {
                Ok(()) => running -= 1,
                Err(RecvTimeoutError::Timeout) => {
                    let now = counter::kernel(libc::CLOCK_MONOTONIC_RAW);
                    self.progress(
                        activity,
                        now.saturating_sub(whole.start),
                        whole.length,
                    );
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}
