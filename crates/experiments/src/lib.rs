//! Experiments: tables of cells, written as TOML, with their limits and baselines.
//!
//! From a text to the plans of its cells, and from measured numbers to the limits that they
//! violate. Nothing is run, and only the text is read.
//!
//! ```
//! let experiment = experiments::Experiment::parse(
//!     "name = 'idle'\n\
//!      kernels = ['debian:6.1-cloud']\n\
//!      [[workload]]\n\
//!      name = 'ticks'\n\
//!      ticks = { cpu = 0, duration = '1s' }\n",
//!     "idle.toml",
//! )?;
//! assert_eq!(experiment.cells()[0].workload, "ticks for 1s on CPU 0");
//! # Ok::<(), experiments::Error>(())
//! ```
#![forbid(unsafe_code)]

mod boot_request;
mod builtin;
mod changes;
mod error;
mod experiment;
mod from_text;
mod included;
mod limits;
mod machine;
mod metric;
mod plan;
mod program_request;
mod table;
mod variations;

pub use boot_request::{BootRequest, BootWorkload, GuestPair};
pub use error::{ChangeError, EntryError, Error, Place};
pub use experiment::Experiment;
pub use limits::baseline::baseline;
pub use limits::{Limits, Measured};
pub use machine::{Machine, MachineKind};
pub use metric::check_metric;
pub use plan::CellPlan;
pub use plan::program::{
    FileContents, GuestFile, ProgramFiles, USUAL_HOME, USUAL_PATH, guest_path,
    is_owned_path, usual_environment,
};
pub use program_request::ProgramRequest;
pub use variations::Variations;
