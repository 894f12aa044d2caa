//! The same measurements on other kernels, in guests.
#![forbid(unsafe_code)]

mod accelerator;
mod baseline;
mod boot;
mod builtin;
mod cell;
mod changes;
mod combination;
mod command_line;
mod condition;
mod console;
mod counting;
mod crew;
mod entry;
mod error;
mod exit;
mod experiment;
mod initramfs;
mod lab;
mod limit_rows;
mod limits;
mod nearness;
mod number;
mod places;
mod plan;
mod program;
mod qemu;
mod rows;
mod sequence;
mod shelf;
mod spent;
mod symbols;
mod tally;
mod toml_place;
mod turns;
mod workload;

pub use baseline::baseline;
pub use crew::{Audience, Progress, Run};
pub use error::{Error, Kind};
pub use experiment::Experiment;
pub use lab::Lab;
pub use limits::{Breach, Limits, Measured, Metric};
pub use places::Cache;
pub use plan::{Machine, MachineKind, Plan};
pub use program::Program;
pub use qemu::Qemu;
