//! The place of a recording in a set of repeated runs (`noisefloor repeat`).

use serde::{Deserialize, Serialize};

use crate::StepSetting;

/// Which run of a set a recording is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// The settings that were changed for this run, and restored after it; empty: none.
    pub settings: Vec<StepSetting>,
    /// The number of the round, from 1. In a round, each variant of the settings has one run.
    pub round: u32,
    /// The place of the run in its round, from 1.
    pub place: u32,
    /// The seed from which the order of all rounds follows.
    pub seed: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the keys of the file.
    #[test]
    fn contract() {
        let setting = StepSetting { name: "preempt".into(), value: "full".into() };
        let repeat = Repeat { settings: vec![setting], round: 3, place: 2, seed: 42 };
        let expected = serde_json::json!({
            "settings": [{"name": "preempt", "value": "full"}],
            "round": 3, "place": 2, "seed": 42,
        });
        assert_eq!(serde_json::to_value(&repeat).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Repeat>(expected).unwrap(), repeat);
    }
}
