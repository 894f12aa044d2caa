//! Frequencies, rates and parts of a whole.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// A frequency that was set, such as `CONFIG_HZ`; whole by nature.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Hz(u32);

impl Hz {
    /// A frequency in events a second.
    pub const fn new(hz: u32) -> Self {
        Self(hz)
    }

    /// The frequency in events a second.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The time between two; none where there are none.
    pub fn period(self) -> Nanos {
        Nanos::from_nanos(1_000_000_000_u64.checked_div(u64::from(self.0)).unwrap_or(0))
    }
}

/// A rate that was measured: events a second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PerSecond(f64);

impl PerSecond {
    /// A rate in events a second.
    pub const fn new(rate: f64) -> Self {
        Self(rate)
    }

    /// `count` events in `span`; `None` where the span is zero.
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    pub fn of(count: u64, span: Nanos) -> Option<Self> {
        (!span.is_zero()).then(|| Self(count as f64 / span.as_secs_f64()))
    }

    /// The rate in events a second.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// A part of a whole, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ppm(f64);

impl Ppm {
    /// A part given in millionths.
    pub const fn new(ppm: f64) -> Self {
        Self(ppm)
    }

    /// `part` of `whole`; `None` where the whole is zero.
    #[expect(clippy::cast_precision_loss, reason = "one part in 2^53 is not told apart")]
    pub fn of(part: Nanos, whole: Nanos) -> Option<Self> {
        let ratio = || part.get() as f64 * 1e6 / whole.get() as f64;
        (!whole.is_zero()).then(|| Self(ratio()))
    }

    /// `part` of `whole`, both counted; `None` where the whole is zero.
    #[expect(clippy::cast_precision_loss, reason = "one part in 2^53 is not told apart")]
    pub fn of_count(part: u64, whole: u64) -> Option<Self> {
        (whole > 0).then(|| Self(part as f64 * 1e6 / whole as f64))
    }

    /// The part in millionths.
    pub const fn get(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a rate or a part of nothing is not a number but nothing.
    #[test]
    fn nothing_has_no_rate() {
        assert_eq!(PerSecond::of(5, Nanos::ZERO), None);
        assert_eq!(Ppm::of(Nanos::ZERO, Nanos::ZERO), None);
    }

    /// Check rate and part against arithmetic done by hand.
    #[test]
    fn by_hand() {
        assert_eq!(PerSecond::of(250, Nanos::from_millis(500)).unwrap().get(), 500.0);
        let ppm = Ppm::of(Nanos::from_micros(4), Nanos::from_secs(1)).unwrap();
        assert!((ppm.get() - 4.0).abs() < 1e-9);
    }
}
