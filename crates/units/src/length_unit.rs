//! The unit of lengths measured with the TSC: time, or TSC ticks for comparison with other tools
//! that report these.

use serde::{Deserialize, Serialize};

use crate::{TscDelta, TscHz};

/// The unit in which lengths are reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthUnit {
    /// Nanoseconds.
    #[default]
    Ns,
    /// TSC ticks.
    Ticks,
}

impl LengthUnit {
    /// The length in this unit, rounded to the nearest integer.
    #[must_use]
    pub fn of(self, length: TscDelta, hz: TscHz) -> u64 {
        match self {
            Self::Ns => hz.span(length).get(),
            Self::Ticks => length.ticks(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a length is converted to nanoseconds or left in ticks.
    #[test]
    fn both_units() {
        let (length, hz) = (TscDelta::from_ticks(26), TscHz::new(2_600_000_000).unwrap());
        assert_eq!(LengthUnit::Ns.of(length, hz), 10);
        assert_eq!(LengthUnit::Ticks.of(length, hz), 26);
        assert_eq!(serde_json::to_value(LengthUnit::Ticks).unwrap(), "ticks");
    }
}
