//! Cells on other kernels: guests, their measurements, and the cache of their results.
#![forbid(unsafe_code)]

mod cache;
mod cells;
mod error;
mod guest;
mod installation;
mod last_line;
mod pack_error;
mod packing;
mod parts;
mod slurm;

pub use cache::Cache;
pub use cells::lab::Lab;
pub use cells::program::Program;
pub use cells::progress::Progress;
pub use cells::run::{CellObserver, Run};
pub use error::{Error, Kind, NoExit, ResultError, WithPackage};
pub use guest::qemu::Qemu;
pub use pack_error::PackError;
pub use parts::tif_library;
pub use slurm::{Slurm, run_task};
