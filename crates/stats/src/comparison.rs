//! Whether the values of one sample differ from those of another, by how much, and what is not known yet.
//!
//! Two samples differ if the Mann-Whitney test says so (`ranks`), after a correction for the number
//! of values that are compared at once (`discovery`). By how much is the shift between them with its
//! interval (`effect`). Without a difference, the interval says how large one could be
//! (`conclusion`).

pub(crate) mod block;
pub(crate) mod compared;
pub(crate) mod conclusion;
pub(crate) mod detectable;
pub(crate) mod differences;
pub(crate) mod discovery;
pub(crate) mod effect;
pub(crate) mod sample;
#[cfg(test)]
mod scipy;
pub(crate) mod statistic;
