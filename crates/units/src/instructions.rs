//! Counts of executed instructions, the unit of guest time in exact mode.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;

use serde::{Deserialize, Serialize};

/// A number of executed instructions.
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
pub struct Instructions(u64);

impl Instructions {
    /// Zero instructions.
    pub const ZERO: Self = Self(0);

    /// A number of instructions.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The difference, or zero if `other` is greater.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The product, or the maximum if it overflows.
    #[must_use]
    pub const fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }

    /// The signed difference to `other`.
    pub const fn more_than(self, other: Self) -> i128 {
        self.0 as i128 - other.0 as i128
    }
}

impl Add for Instructions {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Instructions {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Instructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that sums saturate rather than wrap, and that differences have a sign.
    #[test]
    fn arithmetic() {
        let (few, many) = (Instructions::new(3), Instructions::new(u64::MAX));
        assert_eq!(few + many, many);
        assert_eq!([few, few].into_iter().sum::<Instructions>(), Instructions::new(6));
        assert_eq!(few.saturating_sub(many), Instructions::ZERO);
        assert_eq!(few.more_than(Instructions::new(5)), -2);
    }
}
