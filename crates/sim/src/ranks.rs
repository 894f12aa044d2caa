//! Programs of many ranks that wait for each other, in virtual time, with the noise of recordings.
//!
//! [`Trace`] is the noise of a CPU, [`Program`] what ranks do. A rank computes, and then exchanges
//! messages; those it waits for may be late because of another rank's noise. Communication costs what the
//! model LogGOPS says. All times are whole nanoseconds, and all random numbers follow from a seed, so that a
//! run is the same on every machine.
//!
//! Cannot see contention in the network, topology, several messages at once on one CPU, computations whose
//! lengths differ, and noise that depends on what the program does.

mod assigned;
mod cpus;
mod doubts;
mod error;
mod exchange;
mod links;
mod parts;
mod random;
mod recorded;
mod run;
mod scale;
mod trace;

pub use assigned::{Assigned, Machine};
pub use error::Error;
pub use recorded::Recorded;
pub use run::Program;
pub use scale::{RANKS_MAX, Watch, check, runs, simulate};
pub use trace::Trace;

#[cfg(test)]
mod tests;
