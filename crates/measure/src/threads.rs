//! The threads of a measurement, and their memory.

pub(crate) mod memory;
pub(crate) mod thread;
