//! The same measurements on other kernels, in guests.
#![forbid(unsafe_code)]

mod accelerator;
mod boot;
mod cell;
mod command_line;
mod console;
mod counting;
mod crew;
mod error;
mod exit;
mod initramfs;
mod lab;
mod places;
mod program;
mod qemu;
mod request;
mod shelf;
mod spent;
mod symbols;
mod tally;
mod turns;

pub use crew::{Audience, Progress, Run};
pub use error::{Error, Kind};
pub use lab::Lab;
pub use places::Cache;
pub use program::Program;
pub use qemu::Qemu;
