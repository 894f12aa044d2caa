//! Waiting while the kernel counts by itself, with progress and Ctrl-C as in a measurement.

use units::Nanos;

use crate::watch::{self, Watch};
use crate::{Error, counter, sensible};

/// A stretch of time to let pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    length: Nanos,
}

impl Wait {
    /// A wait of that length.
    ///
    /// # Errors
    /// `Kind::Spec` for a length that cannot be meant.
    pub fn new(length: Nanos) -> Result<Self, Error> {
        sensible("the duration", length)?;
        Ok(Self { length })
    }

    /// Waits, and tells `watch` how far `what` is; whether it was told to end early.
    pub fn pass(self, watch: &mut dyn Watch, what: &str) -> bool {
        let begin = counter::kernel(libc::CLOCK_MONOTONIC_RAW);
        watch::sleep(watch, what, begin, begin.saturating_add(self.length));
        watch.stop().given()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::Silent;

    /// Check that it takes its time, and that none passes once it is told to end.
    #[test]
    fn waits() {
        let now = || counter::kernel(libc::CLOCK_MONOTONIC_RAW);
        let mut silent = Silent::new().unwrap();
        let begin = now();
        assert!(!Wait::new(Nanos::from_millis(5)).unwrap().pass(&mut silent, "waiting"));
        assert!(now() >= begin + Nanos::from_millis(5));
        silent.stop().flag().store(true, Ordering::Relaxed);
        assert!(Wait::new(Nanos::from_secs(3600)).unwrap().pass(&mut silent, "waiting"));
    }

    /// Check that a length that cannot be meant is refused.
    #[test]
    fn absurd_lengths() {
        assert!(Wait::new(Nanos::ZERO).is_err());
        assert!(Wait::new(Nanos::MAX).is_err());
    }
}
