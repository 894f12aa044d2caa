//! Selecting and claiming CPUs.

pub(crate) mod choice;
pub(crate) mod claim;
pub(crate) mod pair;
pub(crate) mod pick;
