//! A condition on a number: `<= 2600`, or within a tolerance.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use summary::Metric;

use crate::error::EntryError;

const PPM: f64 = 1e6;

/// A condition on a number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Condition {
    /// A comparison with a number, and its text.
    Compared { how: Comparison, number: f64, text: String },
    /// A number with a tolerance.
    Near { number: f64, tolerance: Tolerance },
}

/// A tolerance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Tolerance {
    /// In millionths of the other number.
    Ppm(u32),
    /// In the metric's own unit.
    Absolute(f64),
}

/// The operators.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Comparison {
    Less,
    AtMost,
    Equal,
    AtLeast,
    More,
}

/// The longer ones first: `<=` begins with `<`.
const COMPARISONS: [(&str, Comparison); 5] = [
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::More),
];

impl Condition {
    #[expect(clippy::float_cmp, reason = "exact numbers are meant to be equal")]
    fn holds(&self, value: f64) -> bool {
        match *self {
            Self::Compared { how: Comparison::Less, number, .. } => value < number,
            Self::Compared { how: Comparison::AtMost, number, .. } => value <= number,
            Self::Compared { how: Comparison::Equal, number, .. } => value == number,
            Self::Compared { how: Comparison::AtLeast, number, .. } => value >= number,
            Self::Compared { how: Comparison::More, number, .. } => value > number,
            Self::Near { number, tolerance } => {
                let most = match tolerance {
                    Tolerance::Ppm(ppm) => number.abs() * f64::from(ppm) / PPM,
                    Tolerance::Absolute(most) => most,
                };
                (value - number).abs() <= most
            }
        }
    }
}

impl Condition {
    /// Whether it may hold for a metric: a mean of variations is compared with its ±.
    pub(crate) fn may_hold(&self, metric: &Metric) -> bool {
        let within = match (self, metric.varied) {
            (Self::Compared { .. }, Some(varied)) => varied.within,
            (Self::Compared { .. }, None) | (Self::Near { .. }, _) => 0.0,
        };
        [-within, 0.0, within].iter().any(|off| self.holds(metric.value + off))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compared { text, .. } => f.write_str(text),
            Self::Near { number, tolerance: Tolerance::Ppm(0) } => {
                write!(f, "== {number}")
            }
            Self::Near { number, tolerance: Tolerance::Ppm(ppm) } => {
                write!(f, "within {ppm} ppm of {number}")
            }
            Self::Near { number, tolerance: Tolerance::Absolute(most) } => {
                write!(f, "within {most} of {number}")
            }
        }
    }
}

impl FromStr for Condition {
    type Err = EntryError;

    /// Reads `<= 2600`, `== 431`, `> 0.5`.
    fn from_str(text: &str) -> Result<Self, EntryError> {
        let read = || {
            let mut known = COMPARISONS.iter();
            let (sign, how) = known.find(|(sign, _)| text.starts_with(sign))?;
            let digits = text[sign.len()..].trim();
            let plain = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
            let number = digits.chars().all(plain).then(|| digits.parse().ok())??;
            Some(Self::Compared { how: *how, number, text: text.to_owned() })
        };
        read().ok_or_else(|| EntryError::Limit(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ConditionReader)
    }
}

/// Reads a text as a [`Condition`]; a number alone is the usual mistake.
struct ConditionReader;

impl Visitor<'_> for ConditionReader {
    type Value = Condition;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a limit, a text as \"<= 2600\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Condition, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Condition, E> {
        Err(E::custom(no_text(number)))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Condition, E> {
        Err(E::custom(no_text(number)))
    }
}

fn no_text(number: impl fmt::Display) -> String {
    format!("a limit is a text: \"<= {number}\"")
}
