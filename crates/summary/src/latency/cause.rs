//! What had the CPU at a moment of a wake-up.

use recording::{Culprit, CulpritKind, Thread, WakeupCauses};
use serde::Serialize;

/// What had the CPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct WakeCause {
    /// The kind of event.
    pub kind: CulpritKind,
    /// The name of the interrupt, the thread, ... The idle task is the thread `swapper/CPU` with the ID 0;
    /// the thread that is woken is `late/CPU`.
    pub name: String,
    /// For a thread, the keys of `noise`.
    #[serde(flatten)]
    pub thread: Option<Thread>,
}

impl WakeCause {
    pub(crate) fn of(causes: &WakeupCauses, culprit: usize) -> Option<Self> {
        let Culprit { kind, name, thread } = causes.culprits.get(culprit)?;
        Some(Self { kind: *kind, name: name.clone(), thread: thread.clone() })
    }

    /// Whether it is the idle task: nothing had the CPU.
    pub fn is_idle(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.tid == 0)
    }

    /// Whether it is a thread of the process that measured.
    pub fn is_own(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.own)
    }
}
