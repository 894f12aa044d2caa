//! Simulators in virtual time: seeded, deterministic, without I/O.
//!
//! `scheduler` has the rules of the kernel's fair class by version, and runs tasks by them; `slices` is
//! the load of `noisefloor slices` there, and `cells` that of the lab's cells. `ranks` has
//! programs of many ranks that wait for each other, and what noise costs them. Both end in a recording.

#![forbid(unsafe_code)]

pub mod cells;
pub mod ranks;
pub mod scheduler;
pub mod slices;
