//! Lengths of time in whole nanoseconds, and time spans in a recording.
//!
//! 64 bits hold 584 years. Sums saturate rather than wrap: a wrong huge number is easier to notice
//! than a wrong small one.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

const PER_MICRO: u64 = 1_000;
const PER_MILLI: u64 = 1_000_000;
const PER_SEC: u64 = 1_000_000_000;

/// A length of time in nanoseconds.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(u64);

impl Nanos {
    /// Zero length.
    pub const ZERO: Self = Self(0);
    /// The maximum length.
    pub const MAX: Self = Self(u64::MAX);

    /// A length in nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A length in microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(PER_MICRO))
    }

    /// A length in milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(PER_MILLI))
    }

    /// A length in seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(PER_SEC))
    }

    /// The length in nanoseconds.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The length in seconds, for ratios; loses precision above 2^53 ns (104 days).
    #[expect(clippy::cast_precision_loss, reason = "documented")]
    pub const fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PER_SEC as f64
    }

    /// The difference, or zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The sum, or the maximum length if it overflows.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The product, or the maximum length if it overflows.
    #[must_use]
    pub const fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }

    /// Whether the length is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add for Nanos {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Self::saturating_add)
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Self {
        Self::from_nanos(nanos.0)
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The error for text that is not a length of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NanosError {
    text: String,
}

impl fmt::Display for NanosError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not a length of time: write a number and one of ns, us, ms, s, m, h \
             (50us, 1.5ms, 10s)",
            self.text
        )
    }
}

impl std::error::Error for NanosError {}

impl FromStr for Nanos {
    type Err = NanosError;

    /// Parses `50us`, `1.5ms`, `10s`, `2m`, `1h`; the unit is required.
    fn from_str(text: &str) -> Result<Self, NanosError> {
        let refuse = || NanosError { text: text.to_owned() };
        let split = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(refuse)?;
        let (number, unit) = text.split_at(split);
        let scale = match unit {
            "ns" => 1,
            "us" => PER_MICRO,
            "ms" => PER_MILLI,
            "s" => PER_SEC,
            "m" | "min" => 60 * PER_SEC,
            "h" => 3600 * PER_SEC,
            _ => return Err(refuse()),
        };
        scaled(number, scale).map(Self).ok_or_else(refuse)
    }
}

/// Multiplies a decimal number by `scale` without floating-point arithmetic.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && part.is_empty()) || !digits(whole) || !digits(part) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut below = 0;
    let mut unit = scale;
    for digit in part.bytes() {
        unit /= 10;
        below += u64::from(digit - b'0') * unit;
    }
    whole.checked_mul(scale)?.checked_add(below)
}

/// A time span: its start, relative to an origin that its owner documents, and its length.
/// Serialized as the pair `[start_ns, length_ns]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(Nanos, Nanos)", into = "(Nanos, Nanos)")]
pub struct Span {
    /// The start, in nanoseconds from the origin.
    pub start: Nanos,
    /// The length of the span.
    pub length: Nanos,
}

impl Span {
    /// The end, relative to the same origin.
    pub const fn end(self) -> Nanos {
        self.start.saturating_add(self.length)
    }
}

impl From<(Nanos, Nanos)> for Span {
    fn from((start, length): (Nanos, Nanos)) -> Self {
        Self { start, length }
    }
}

impl From<Span> for (Nanos, Nanos) {
    fn from(span: Span) -> Self {
        (span.start, span.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that lengths are parsed exactly, including fractions.
    #[test]
    fn reads_lengths() {
        let cases = [
            ("50us", 50_000),
            ("1.5ms", 1_500_000),
            ("10s", 10_000_000_000),
            ("0.000000001s", 1),
            (".5us", 500),
            ("7ns", 7),
            ("2m", 120_000_000_000),
            ("1h", 3_600_000_000_000),
        ];
        for (text, nanos) in cases {
            assert_eq!(text.parse(), Ok(Nanos(nanos)), "{text}");
        }
    }

    /// Check that invalid lengths are rejected with a message that shows the format.
    #[test]
    fn rejects_invalid_lengths() {
        for text in ["", "5", "s", ".s", "-1s", "1e3s", "5 s", "99999999999999s", "1d"] {
            let error = text.parse::<Nanos>().unwrap_err();
            assert!(error.to_string().contains("50us"), "{text}: {error}");
        }
    }

    /// Check that a span is serialized as a pair and deserialized again.
    #[test]
    fn span_is_a_pair() {
        let span = Span { start: Nanos(3), length: Nanos(4) };
        let text = serde_json::to_string(&span).unwrap();
        assert_eq!(text, "[3,4]");
        assert_eq!(serde_json::from_str::<Span>(&text).unwrap(), span);
        assert_eq!(span.end(), Nanos(7));
    }
}
