//! In what a length that was read from the counter is told: time, or the counter's own
//! ticks, for those who compare with other tools that count them.

use serde::{Deserialize, Serialize};

use crate::{TscDelta, TscHz};

/// In what lengths are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthUnit {
    /// Nanoseconds.
    #[default]
    Ns,
    /// Ticks of the counter.
    Ticks,
}

impl LengthUnit {
    /// The length in this unit, to the nearest whole one.
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

    /// Check that a length is the counter's ticks or the time they last.
    #[test]
    fn both_units() {
        let (length, hz) = (TscDelta::from_ticks(26), TscHz::new(2_600_000_000).unwrap());
        assert_eq!(LengthUnit::Ns.of(length, hz), 10);
        assert_eq!(LengthUnit::Ticks.of(length, hz), 26);
        assert_eq!(serde_json::to_value(LengthUnit::Ticks).unwrap(), "ticks");
    }
}
