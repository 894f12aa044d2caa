//! Power: frequency governor and idle states.

use serde::{Deserialize, Serialize};

use crate::fact::group;

/// A state an idle CPU can be in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleState {
    /// The state's name: `C6`.
    pub name: String,
    /// How long waking up from it takes, in microseconds.
    pub latency_us: u64,
    /// Whether it has been switched off.
    pub disabled: bool,
}

group! {
    /// Power.
    "power" Power {
        /// What sets the frequency.
        driver: String,
        /// Who decides on it.
        governor: String,
        /// What puts CPUs to sleep.
        idle_driver: String,
        /// Who decides how deep.
        idle_governor: String,
        /// How deep they can sleep.
        idle_states: Vec<IdleState>,
    }
}
