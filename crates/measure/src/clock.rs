//! The counter's frequency for one run: an estimate before it, exact after it.
//!
//! It is measured against `CLOCK_MONOTONIC_RAW` over the whole run, so that its relative error
//! decreases with the run's duration; the estimate before the run only plans it.

use std::thread;
use std::time::{Duration, Instant};

use facts::Facts;
use recording::Doubt;
use units::{Nanos, TscHz};

use crate::time::counter::{self, Moment};
use crate::{Error, Kind, doubts};

/// The readings that bound this interval are accurate to some microseconds.
const SETTLE: Nanos = Nanos::from_millis(20);

/// The counter before a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    first: Moment,
    suspended: Nanos,
    estimate: TscHz,
}

impl Clock {
    /// Waits until the frequency can be estimated. Detects a counter that does not advance (as
    /// under some emulators) before any code waits for it.
    pub(crate) fn calibrate() -> Result<Self, Error> {
        Self::calibrate_by(thread::sleep)
    }

    /// The same with a busy wait: after a sleep the tick may have been restarted.
    pub(crate) fn calibrate_awake() -> Result<Self, Error> {
        Self::calibrate_by(|length| {
            let began = Instant::now();
            while began.elapsed() < length {
                std::hint::spin_loop();
            }
        })
    }

    fn calibrate_by(pause: impl FnOnce(Duration)) -> Result<Self, Error> {
        let (suspended, first) = (counter::suspended(), Moment::now());
        pause(SETTLE.into());
        let estimate = Moment::now().frequency_since(first).ok_or_else(|| {
            let text = format!("the counter ({}) does not advance", counter::NAME);
            Error::new(Kind::System, text)
        })?;
        Ok(Self { first, suspended, estimate })
    }

    /// `CLOCK_MONOTONIC_RAW` at the first reading.
    pub(crate) fn began(&self) -> Nanos {
        self.first.raw
    }

    /// The estimate of the frequency before the run.
    pub(crate) fn estimate(&self) -> TscHz {
        self.estimate
    }

    /// The frequency over the run, which ends now, and doubts about it.
    pub(crate) fn finish(&self, facts: &Facts) -> (TscHz, Vec<Doubt>) {
        let hz = Moment::now().frequency_since(self.first).unwrap_or(self.estimate);
        let slept = counter::suspended().saturating_sub(self.suspended);
        (hz, doubts::of_clock(self.estimate, hz, slept, facts))
    }
}
