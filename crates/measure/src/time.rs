//! Time: clocks of the processor and the kernel, phases of the tick, marks for the counter.

pub mod counter;
pub mod mark;
pub(crate) mod phase;
pub(crate) mod timespec;
