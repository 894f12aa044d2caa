//! The CPUs that a run gets.

pub(crate) mod choice;
pub(crate) mod claim;
pub(crate) mod pick;
