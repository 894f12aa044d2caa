//! The counter's frequency around one run: about right before it, exact after it.
//!
//! It is measured against `CLOCK_MONOTONIC_RAW` over the whole run, so that a length is
//! as right as the run is long; what was found before the run only plans it.

use std::thread;
use std::time::{Duration, Instant};

use facts::Facts;
use recording::Doubt;
use units::{Nanos, TscHz};

use crate::counter::{self, Moment};
use crate::{Error, Kind, doubts};

/// The frequency is not known to better than some microseconds in this.
const SETTLE: Nanos = Nanos::from_millis(20);

/// The counter as it was before a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    first: Moment,
    suspended: Nanos,
    guess: TscHz,
}

impl Clock {
    /// Waits until enough time has passed to know the frequency. A counter that stands
    /// still (as under some emulators) is found here, before anything waits for it.
    pub(crate) fn settle() -> Result<Self, Error> {
        Self::settle_by(thread::sleep)
    }

    /// The same without giving the CPU up: who sleeps may find the tick running again.
    pub(crate) fn settle_awake() -> Result<Self, Error> {
        Self::settle_by(|length| {
            let began = Instant::now();
            while began.elapsed() < length {
                std::hint::spin_loop();
            }
        })
    }

    fn settle_by(pause: impl FnOnce(Duration)) -> Result<Self, Error> {
        let (suspended, first) = (counter::suspended(), Moment::now());
        pause(SETTLE.into());
        let guess = Moment::now().frequency_since(first).ok_or_else(|| {
            let text = format!("the counter ({}) does not advance", counter::NAME);
            Error::new(Kind::System, text)
        })?;
        Ok(Self { first, suspended, guess })
    }

    /// `CLOCK_MONOTONIC_RAW` when it was first read.
    pub(crate) fn began(&self) -> Nanos {
        self.first.raw
    }

    /// The frequency, as far as it is known before the run.
    pub(crate) fn guess(&self) -> TscHz {
        self.guess
    }

    /// The frequency over the run, which ends now, and what there is to doubt about it.
    pub(crate) fn over_the_run(&self, facts: &Facts) -> (TscHz, Vec<Doubt>) {
        let hz = Moment::now().frequency_since(self.first).unwrap_or(self.guess);
        let slept = counter::suspended().saturating_sub(self.suspended);
        (hz, doubts::of_clock(self.guess, hz, slept, facts))
    }
}
