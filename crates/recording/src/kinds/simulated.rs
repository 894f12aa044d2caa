//! What a simulation was given, beside the load: it says with the facts (kernel, tick, features) what gives the same
//! numbers again.

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::StepSetting;

/// The inputs of a simulation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Simulated {
    /// The kernel version whose rules the scheduler has: `6.12`.
    pub rules: String,
    /// The settings of these rules that were changed in all turns.
    pub settings: Vec<StepSetting>,
    /// The `cpu.weight` of the cgroup with the spinners; `None`: they are in the root.
    pub spinners_cgroup: Option<u32>,
    /// That of the cgroup with the sleepers.
    pub sleepers_cgroup: Option<u32>,
    /// A tick is late by a random part of this.
    pub tick_jitter_ns: Nanos,
    /// How much later than requested a sleep may end.
    pub timer_slack_ns: Nanos,
    /// The time that a hypervisor took; `None`: nothing.
    pub steal: Option<SimulatedSteal>,
    /// Whether the kernel's own work took time, and its threads ran.
    pub kernel_work: bool,
    /// Whether each spinner read its own times, as the program of the 2009 report does, and not a sampler.
    pub reads_itself: bool,
    /// The seed of all that is random.
    pub seed: u64,
}

/// Time that a simulated hypervisor takes from each CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulatedSteal {
    /// How much.
    pub ns: Nanos,
    /// How often.
    pub every_ns: Nanos,
}
