//! Who watches a measurement: is told how it goes, and may end it.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use recording::{Doubt, JitterPlan, JitterSoFar, TickSample};
use units::{Nanos, Span, TscHz};

use crate::counter;
use crate::relay::Relay;
use crate::stop::Stop;

/// Who watches a measurement.
pub trait Watch {
    /// The order to stop.
    fn stop(&self) -> &Stop;

    /// How often to be told of progress; `None`: never. Each time wakes a thread, which
    /// is itself noise, so ask for it only where somebody looks.
    fn period(&self) -> Option<Nanos> {
        None
    }

    /// Whether to keep this process's other threads off the measured CPUs, and to end threads that
    /// a real-time task keeps off theirs, by a thread that sleeps until then. In a guest there is
    /// no such task.
    fn has_neighbours(&self) -> bool {
        false
    }

    /// A workload that has not returned for so long after it was to end. Called again and again:
    /// nothing but the end of this process ends it.
    fn never_returns(&mut self, _after: Nanos) {}

    /// What is going on, and how much of its time has passed.
    fn progress(&mut self, _what: &str, _passed: Nanos, _whole: Nanos) {}

    /// Who listens to signals that a program is to have; `None`: whoever runs it.
    fn relay(&self) -> Option<&Relay> {
        None
    }

    /// A doubt of a running program that its user should know at once.
    fn doubt(&self, _doubt: &Doubt) {}

    /// An interval of ticks that has just ended.
    fn ticks(&mut self, _sample: &TickSample) {}

    /// Tests of jitter that are about to begin.
    fn plan(&mut self, _plan: &JitterPlan) {}

    /// How far those tests are: once in each period, where one is complete that was not
    /// told of, and at their end. `hz` is the counter's frequency as far as it is known.
    fn jitter(&mut self, _so_far: &JitterSoFar, _hz: TscHz) {}
}

/// Looks at nothing, ends nothing.
#[derive(Debug)]
pub struct Silent(Stop);

impl Silent {
    /// A watcher that looks at nothing.
    ///
    /// # Errors
    /// Where no socket can be had.
    pub fn new() -> std::io::Result<Self> {
        Stop::new().map(Self)
    }
}

impl Watch for Silent {
    fn stop(&self) -> &Stop {
        &self.0
    }
}

/// Sleeps from `begin` to `until` (`CLOCK_MONOTONIC_RAW`) or until told to stop, and
/// tells of progress on the way.
pub(crate) fn sleep(watch: &mut dyn Watch, what: &str, begin: Nanos, until: Nanos) {
    let whole = until.saturating_sub(begin);
    loop {
        let now = counter::kernel(libc::CLOCK_MONOTONIC_RAW);
        if now >= until || watch.stop().given() {
            return;
        }
        let next = watch.period().map_or(until, |period| until.min(now + period));
        if watch.period().is_some() {
            watch.progress(what, now.saturating_sub(begin), whole);
        }
        watch.stop().sleep_until(next);
    }
}

/// Waits until so many threads have said that they are done, or all have died, and tells of
/// progress on the way. `whole` is how long it takes, in `CLOCK_MONOTONIC_RAW`.
pub(crate) fn until_all(
    watch: &mut dyn Watch,
    what: &str,
    finished: &Receiver<()>,
    threads: usize,
    whole: Span,
) {
    let mut running = threads;
    while running > 0 {
        let next = match watch.period() {
            Some(period) => finished.recv_timeout(Duration::from(period)),
            None => finished.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(()) => running -= 1,
            Err(RecvTimeoutError::Timeout) => {
                let now = counter::kernel(libc::CLOCK_MONOTONIC_RAW);
                watch.progress(what, now.saturating_sub(whole.start), whole.length);
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
