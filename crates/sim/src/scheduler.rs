//! The kernel's scheduler in virtual time: the rules of its fair class by version, and tasks that
//! run by them.
//!
//! `rules` has the sets of rules as data, `cfs` and `eevdf` what they do with a queue of tasks, in the
//! kernel's integer arithmetic. `engine` runs tasks on CPUs: ticks, timers, wake-ups, switches, and the
//! time that they take, as does the kernel (`machine`, `costs`, `threads`). `slices` runs the load of `noisefloor slices`.
//!
//! `load` has the averages by which `balance` moves tasks between CPUs, and `shares` divides the weight of a group.
//!
//! Not modelled: caches and frequencies, groups in groups, CPU bandwidth limits, SCHED_IDLE and SCHED_DEADLINE,
//! core scheduling, NUMA.

mod balance;
mod cfs;
mod costs;
mod cpu;
mod eevdf;
mod engine;
mod error;
mod fair;
mod load;
mod machine;
mod observer;
mod placement;
mod queue;
#[cfg(test)]
mod replay;
mod rules;
mod shares;
mod switching;
mod task;
mod threads;
mod timers;
mod tree;
mod weight;

pub use costs::Costs;
pub use engine::Engine;
pub use error::{Error, Kind};
pub use machine::Machine;
pub use observer::{Ignore, Observer, Ran, Woken};
pub use recording::SimulatedSteal as Steal;
pub use rules::{NAMES, Rules};
pub use task::{Policy, TaskSpec, Work};
pub use threads::{KernelThread, Occasion, Wakes};
