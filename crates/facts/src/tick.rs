//! The tick: how often it comes, and when it stops.

use serde::{Deserialize, Serialize};
use units::{CpuSet, Hz};

use crate::fact::group;

/// When the tick stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TickMode {
    /// Never.
    Periodic,
    /// On idle CPUs.
    Idle,
    /// On idle CPUs, and on the `nohz_full` CPUs with one task too.
    Full,
}

/// What `divider=N` on the command line does to this kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Divider {
    /// What was asked: the text after `divider=`.
    pub asked: String,
    /// The rate at which the tick really comes; `None` where it has no effect.
    pub effective_hz: Option<Hz>,
    /// What it does here, in words.
    pub text: String,
}

group! {
    /// The tick.
    "tick" Tick {
        /// `CONFIG_HZ`.
        hz: Hz,
        /// When the tick stops.
        mode: TickMode,
        /// The CPUs whose tick stops with one task running.
        nohz_full: CpuSet,
        /// RHEL 5's `divider=N`, where it is on the command line.
        divider: Option<Divider>,
        /// Whether timers are finer than the tick.
        high_res: bool,
        /// Whether idle CPUs' timers may move to busy ones (`timer_migration`).
        migration: bool,
    }
}
