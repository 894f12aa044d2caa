//! Numbers in an experiment: within bounds, and a CPU's, which may be `"last"`.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Unexpected, Visitor};

use crate::error::EntryError;

/// A whole number within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Number<MIN, MAX> {
    /// That number; does not compile if it is out of bounds.
    pub(crate) const fn of<const NUMBER: u32>() -> Self {
        const { assert!(MIN <= NUMBER && NUMBER <= MAX) };
        Self(NUMBER)
    }

    pub(crate) fn get(self) -> u32 {
        self.0
    }

    fn within(number: i64) -> Option<Self> {
        let number = u32::try_from(number).ok()?;
        (MIN..=MAX).contains(&number).then_some(Self(number))
    }
}

impl<const MIN: u32, const MAX: u32> FromStr for Number<MIN, MAX> {
    type Err = EntryError;

    fn from_str(text: &str) -> Result<Self, EntryError> {
        let number = text.parse().ok().and_then(Self::within);
        number.ok_or_else(|| EntryError::Number(text.to_owned(), MIN, MAX))
    }
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Number<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_i64(Integer)
    }
}

/// Reads an integer as a [`Number`].
struct Integer<const MIN: u32, const MAX: u32>;

impl<const MIN: u32, const MAX: u32> Visitor<'_> for Integer<MIN, MAX> {
    type Value = Number<MIN, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number from {MIN} to {MAX}")
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
        let wrong = || E::invalid_value(Unexpected::Signed(number), &self);
        Number::within(number).ok_or_else(wrong)
    }
}

/// One of a guest's CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CpuChoice {
    /// The one with that number.
    At(u32),
    /// The last one.
    Last,
}

impl<'de> Deserialize<'de> for CpuChoice {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(CpuReader)
    }
}

/// Reads an integer or a word as a [`CpuChoice`].
struct CpuReader;

impl Visitor<'_> for CpuReader {
    type Value = CpuChoice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a CPU's number or \"last\"")
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<CpuChoice, E> {
        let wrong = |_| E::invalid_value(Unexpected::Signed(number), &self);
        u32::try_from(number).map(CpuChoice::At).map_err(wrong)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<CpuChoice, E> {
        match text {
            "last" => Ok(CpuChoice::Last),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}
