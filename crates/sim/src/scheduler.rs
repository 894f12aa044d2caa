//! The kernel's scheduler in virtual time: the rules of its fair class by version, and tasks that
//! run by them.
//!
//! `rules` has the sets of rules as data, `cfs` and `eevdf` what they do with a queue of tasks, in the
//! kernel's integer arithmetic. `engine` runs tasks on CPUs: ticks, timers, wake-ups, switches, and the
//! time that they take (`machine`). `slices` runs the load of `noisefloor slices`.
//!
//! Not modelled: caches and frequencies, load averages (PELT) where they decide on placement or on the
//! weights of groups, CPU bandwidth limits, SCHED_IDLE and SCHED_DEADLINE, core scheduling, NUMA.

mod cfs;
mod cpu;
mod eevdf;
mod engine;
mod error;
mod fair;
mod machine;
mod observer;
mod placement;
mod queue;
#[cfg(test)]
mod replay;
mod rules;
mod switching;
mod task;
mod timers;
mod tree;
mod weight;

pub use engine::Engine;
pub use error::{Error, Kind};
pub use machine::{Costs, KernelThread, Machine, Steal};
pub use observer::{Ignore, Observer, Ran, Woken};
pub use rules::{NAMES, Rules};
pub use task::{Policy, TaskSpec, Work};
