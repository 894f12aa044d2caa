//! The place of a recording in a set of repeated runs (`noisefloor repeat`).

use serde::{Deserialize, Serialize};

use crate::{StepSetting, Words};

/// Which run of a set a recording is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// The settings that were changed for this run, and restored after it; empty: none.
    pub settings: Vec<StepSetting>,
    /// The number of the round, from 1. In a round, each variant of the settings has one run.
    pub round: u32,
    /// The place of the run in its round, from 1. Of two programs that run at once, the one on the CPU with the
    /// smaller number has place 1.
    pub place: u32,
    /// The seed from which the order of all rounds follows.
    pub seed: u32,
    /// The other program of a pair; `None`: a run of one program, or another measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duet: Option<Duet>,
}

/// A run of one of two programs that are compared in pairs: a round is a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duet {
    /// Which of both programs it is.
    pub program: DuetProgram,
    /// The command line of the other one.
    pub other: Words,
    /// Whether both ran at once; otherwise one after the other.
    pub at_once: bool,
}

/// One of two programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DuetProgram {
    /// The first one, which the second one is compared with.
    A,
    /// The second one.
    B,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the keys of the file.
    #[test]
    fn contract() {
        let setting = StepSetting { name: "preempt".into(), value: "full".into() };
        let repeat =
            Repeat { settings: vec![setting], round: 3, place: 2, seed: 42, duet: None };
        let expected = serde_json::json!({
            "settings": [{"name": "preempt", "value": "full"}],
            "round": 3, "place": 2, "seed": 42,
        });
        assert_eq!(serde_json::to_value(&repeat).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Repeat>(expected).unwrap(), repeat);
        let other = Words::new(["sleep".into(), "1".into()]);
        let duet = Duet { program: DuetProgram::B, other, at_once: true };
        let repeat = Repeat { settings: vec![], duet: Some(duet), ..repeat };
        let expected = serde_json::json!({
            "settings": [], "round": 3, "place": 2, "seed": 42,
            "duet": {"program": "b", "other": ["sleep", "1"], "at_once": true},
        });
        assert_eq!(serde_json::to_value(&repeat).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Repeat>(expected).unwrap(), repeat);
    }
}
