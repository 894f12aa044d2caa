//! Readings of the CPU's time stamp counter (x86 TSC, arm64 `cntvct_el0`).
//!
//! A reading is not a time, since the counter's frequency differs between machines:
//! `Tsc - Tsc = TscDelta`, and only a [`TscHz`] converts a delta into [`Nanos`].

use serde::{Deserialize, Serialize};

use crate::Nanos;

const NANOS_PER_SEC: u128 = 1_000_000_000;

/// One reading of the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tsc(u64);

impl Tsc {
    /// A raw counter value.
    #[inline(always)]
    pub const fn from_counter(value: u64) -> Self {
        Self(value)
    }

    /// The ticks from `earlier` to this reading. Wraps if the counter went backwards, so that
    /// this appears as an implausibly long delta.
    #[inline(always)]
    #[must_use]
    pub const fn since(self, earlier: Self) -> TscDelta {
        TscDelta(self.0.wrapping_sub(earlier.0))
    }

    /// The reading `delta` ticks later.
    #[inline(always)]
    #[must_use]
    pub const fn plus(self, delta: TscDelta) -> Self {
        Self(self.0.wrapping_add(delta.0))
    }
}

/// A number of counter ticks.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct TscDelta(u64);

impl TscDelta {
    /// A delta in ticks.
    #[inline(always)]
    pub const fn from_ticks(ticks: u64) -> Self {
        Self(ticks)
    }

    /// The delta in ticks.
    #[inline(always)]
    pub const fn ticks(self) -> u64 {
        self.0
    }

    /// Whether the counter went backwards: no measurement lasts 2^63 ticks.
    #[inline(always)]
    pub const fn is_backwards(self) -> bool {
        self.0 >> 63 == 1
    }

    /// The difference, or zero if `other` is longer.
    #[inline(always)]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The sum, or the maximum if it overflows.
    #[inline(always)]
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// The frequency of the counter, in ticks per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct TscHz(u64);

impl TscHz {
    /// A frequency in ticks per second; `None` for zero.
    pub const fn new(hz: u64) -> Option<Self> {
        if hz == 0 { None } else { Some(Self(hz)) }
    }

    /// The frequency at which `ticks` last `span`; `None` if either is zero.
    pub fn from_ticks(ticks: TscDelta, span: Nanos) -> Option<Self> {
        let span = u128::from(span.get());
        let hz = (u128::from(ticks.0) * NANOS_PER_SEC + span / 2).checked_div(span)?;
        Self::new(u64::try_from(hz).ok()?)
    }

    /// The frequency in ticks per second.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Converts a delta to time, rounded to the nearest nanosecond.
    #[must_use]
    pub fn span(self, delta: TscDelta) -> Nanos {
        let hz = u128::from(self.0);
        let nanos = (u128::from(delta.0) * NANOS_PER_SEC + hz / 2) / hz;
        Nanos::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Converts a time to ticks, rounded to the nearest tick.
    #[must_use]
    pub fn ticks(self, span: Nanos) -> TscDelta {
        let product = u128::from(span.get()) * u128::from(self.0);
        let ticks = (product + NANOS_PER_SEC / 2) / NANOS_PER_SEC;
        TscDelta(u64::try_from(ticks).unwrap_or(u64::MAX))
    }
}

impl TryFrom<u64> for TscHz {
    type Error = &'static str;

    fn try_from(hz: u64) -> Result<Self, Self::Error> {
        Self::new(hz).ok_or("a counter frequency of zero")
    }
}

impl From<TscHz> for u64 {
    fn from(hz: TscHz) -> Self {
        hz.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the conversions of ticks and time are inverses within half a tick.
    #[test]
    fn converts_both_ways() {
        let hz = TscHz::new(2_596_122_000).unwrap();
        for nanos in [0, 1, 10, 1_000, 999_999_999, 3_600_000_000_000] {
            let span = Nanos::from_nanos(nanos);
            assert_eq!(hz.span(hz.ticks(span)), span);
        }
    }

    /// Check that a length of 30 days is exact: intermediate values of 64 bits would overflow.
    #[test]
    fn long_stalls_do_not_wrap() {
        let hz = TscHz::new(4_000_000_000).unwrap();
        let month = TscDelta::from_ticks(4_000_000_000 * 86_400 * 30);
        assert_eq!(hz.span(month), Nanos::from_secs(86_400 * 30));
    }

    /// Check that the frequency is computed from ticks and span.
    #[test]
    fn frequency_from_a_span() {
        let hz = TscHz::from_ticks(TscDelta::from_ticks(26), Nanos::from_nanos(10));
        assert_eq!(hz, TscHz::new(2_600_000_000));
        assert_eq!(TscHz::from_ticks(TscDelta::from_ticks(26), Nanos::ZERO), None);
    }

    /// Check that a counter that goes backwards is detected.
    #[test]
    fn backwards_is_detected() {
        let (early, late) = (Tsc::from_counter(10), Tsc::from_counter(20));
        assert!(!late.since(early).is_backwards());
        assert!(early.since(late).is_backwards());
    }
}
