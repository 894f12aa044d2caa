//! Frequencies, rates and ratios.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// A configured frequency, such as `CONFIG_HZ`; an integer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Hz(u32);

impl Hz {
    /// A frequency in events per second.
    pub const fn new(hz: u32) -> Self {
        Self(hz)
    }

    /// The frequency in events per second.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The period; zero for a frequency of zero.
    pub fn period(self) -> Nanos {
        Nanos::from_nanos(1_000_000_000_u64.checked_div(u64::from(self.0)).unwrap_or(0))
    }
}

/// A measured rate in events per second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PerSecond(f64);

impl PerSecond {
    /// A rate in events per second.
    pub const fn new(rate: f64) -> Self {
        Self(rate)
    }

    /// `count` events in `span`; `None` if the span is zero.
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    pub fn of(count: u64, span: Nanos) -> Option<Self> {
        (!span.is_zero()).then(|| Self(count as f64 / span.as_secs_f64()))
    }

    /// The rate in events per second.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// A ratio in parts per million.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ppm(f64);

impl Ppm {
    /// A ratio in parts per million.
    pub const fn new(ppm: f64) -> Self {
        Self(ppm)
    }

    /// `part` of `whole`; `None` if `whole` is zero.
    #[expect(clippy::cast_precision_loss, reason = "an error of 2^-53 is negligible")]
    pub fn of(part: Nanos, whole: Nanos) -> Option<Self> {
        let ratio = || part.get() as f64 * 1e6 / whole.get() as f64;
        (!whole.is_zero()).then(|| Self(ratio()))
    }

    /// `part` of `whole`, both counts; `None` if `whole` is zero.
    #[expect(clippy::cast_precision_loss, reason = "an error of 2^-53 is negligible")]
    pub fn of_count(part: u64, whole: u64) -> Option<Self> {
        (whole > 0).then(|| Self(part as f64 * 1e6 / whole as f64))
    }

    /// The ratio in parts per million.
    pub const fn get(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that rates and ratios with a zero denominator are `None`.
    #[test]
    fn zero_denominators() {
        assert_eq!(PerSecond::of(5, Nanos::ZERO), None);
        assert_eq!(Ppm::of(Nanos::ZERO, Nanos::ZERO), None);
    }

    /// Check a rate and a ratio against manual calculation.
    #[test]
    fn manual_calculation() {
        assert_eq!(PerSecond::of(250, Nanos::from_millis(500)).unwrap().get(), 500.0);
        let ppm = Ppm::of(Nanos::from_micros(4), Nanos::from_secs(1)).unwrap();
        assert!((ppm.get() - 4.0).abs() < 1e-9);
    }
}
