//! Preemption: when a task in the kernel may be interrupted, and who decided that.

use serde::{Deserialize, Serialize};

use crate::fact::group;

/// When a task in the kernel may be preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Not at all, until it returns or sleeps.
    None,
    /// At points where it says so.
    Voluntary,
    /// At once by real-time tasks, by others at the next tick.
    Lazy,
    /// At once.
    Full,
    /// At once, interrupt handlers and most locks included (`PREEMPT_RT`).
    Rt,
}

/// Who decided on the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chosen {
    /// The configuration, once and for all.
    Static,
    /// The configuration, and nobody changed it since.
    Default,
    /// `preempt=` on the command line.
    Boot,
    /// A write to debugfs since.
    RunTime,
}

group! {
    /// Preemption.
    "preempt" Preempt {
        /// The model in force.
        model: Model,
        /// Who decided on it.
        chosen: Chosen,
        /// Whether another one can be chosen at boot (`PREEMPT_DYNAMIC`).
        dynamic: bool,
    }
}
