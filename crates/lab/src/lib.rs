//! The same measurements on other kernels, in guests.
#![forbid(unsafe_code)]

mod accelerator;
mod apt;
mod apt_sources;
mod baseline;
mod boot;
mod builtin;
mod cell;
mod changes;
mod combination;
mod command_line;
mod condition;
mod console;
mod crew;
mod debian;
mod debian_version;
mod entry;
mod error;
mod experiment;
mod image;
mod initramfs;
mod kernel;
mod kernel_spec;
mod kernel_store;
mod lab;
mod limit_rows;
mod limits;
mod nearness;
mod number;
mod options;
mod package;
mod places;
mod plan;
mod program;
mod qemu;
mod rows;
mod sequence;
mod shelf;
mod symbols;
mod tally;
#[cfg(test)]
mod test_archive;
mod toml_place;
mod turns;
mod workload;

pub use baseline::baseline;
pub use crew::{Audience, Progress, Run};
pub use error::{Error, Kind};
pub use experiment::Experiment;
pub use kernel::{Kernel, Kernels};
pub use lab::Lab;
pub use limits::{Breach, Limits, Measured, Metric};
pub use places::Cache;
pub use plan::{Machine, MachineKind, Plan};
pub use program::Program;
pub use qemu::Qemu;
