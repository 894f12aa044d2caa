//! Instructions by function, and the difference of two numbers of instructions by function.
//!
//! The input is stacks: the instructions executed in one function, with its callers. A function's own
//! instructions are those without the functions it called. They add up to the total, and the
//! differences of two sides to the difference of their totals, exactly.
//!
//! Cannot see functions that the compiler inlined: they are part of their callers.

pub(crate) mod call_stack;
pub(crate) mod difference;
#[cfg(test)]
pub(crate) mod example;
pub(crate) mod explanation;
pub(crate) mod flame;
pub(crate) mod phase;
pub(crate) mod renames;
pub(crate) mod tick_kinds;
pub(crate) mod typical;
pub(crate) mod whole_phase;
