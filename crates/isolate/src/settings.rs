//! Kernel settings that a run changes: written to a journal first, restored afterwards.

pub(crate) mod change;
pub(crate) mod journal;
pub(crate) mod lease;
pub(crate) mod paths;
pub(crate) mod restoration;
pub(crate) mod run_lock;
pub(crate) mod setting;
pub(crate) mod state;
