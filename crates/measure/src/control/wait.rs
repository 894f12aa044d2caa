//! Waits while the kernel counts, with progress and Ctrl-C as in a measurement.

use units::Nanos;

use crate::control::observer::{Control, Listener, Watch};
use crate::time::counter;
use crate::{Error, LONGEST, check_length};

/// A wait of a given length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    length: Nanos,
}

impl Wait {
    /// A wait of that length.
    ///
    /// # Errors
    /// `Kind::Spec` for an invalid length.
    pub fn new(length: Nanos) -> Result<Self, Error> {
        check_length("the duration", length)?;
        Ok(Self { length })
    }

    /// One that lasts until it is ended, or for as long as a measurement may.
    pub fn until_stopped() -> Self {
        Self { length: LONGEST }
    }

    /// Waits, and reports the progress of `activity`; returns whether it was ended early.
    pub fn pass(
        self,
        control: &Control,
        listener: &mut Listener<'_>,
        activity: &str,
    ) -> bool {
        let begin = counter::kernel(libc::CLOCK_MONOTONIC_RAW);
        let until = begin.saturating_add(self.length);
        Watch { control, listener }.sleep(activity, begin, until);
        control.stop.is_requested()
    }

    /// Waits, and calls `each` with the time that has passed after every step of that length, and at the
    /// end; returns whether it was ended early.
    pub fn pass_in_steps(
        self,
        control: &Control,
        step: Nanos,
        mut each: impl FnMut(Nanos),
    ) -> bool {
        let now = || counter::kernel(libc::CLOCK_MONOTONIC_RAW);
        let begin = now();
        let until = begin.saturating_add(self.length);
        while now() < until && !control.stop.is_requested() {
            control.stop.sleep_until(until.min(now().saturating_add(step)));
            each(now().saturating_sub(begin));
        }
        control.stop.is_requested()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::ignore;

    /// Check that it waits for its time, and not at all after the stop request.
    #[test]
    fn waits() {
        let now = || counter::kernel(libc::CLOCK_MONOTONIC_RAW);
        let control = Control::new().unwrap();
        let pass =
            |length| Wait::new(length).unwrap().pass(&control, &mut ignore, "waiting");
        let begin = now();
        assert!(!pass(Nanos::from_millis(5)));
        assert!(now() >= begin + Nanos::from_millis(5));
        control.stop.flag().store(true, Ordering::Relaxed);
        assert!(pass(Nanos::from_secs(3600)));
    }

    /// Check that an invalid length is refused.
    #[test]
    fn absurd_lengths() {
        assert!(Wait::new(Nanos::ZERO).is_err());
        assert!(Wait::new(Nanos::MAX).is_err());
    }
}
