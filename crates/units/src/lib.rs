//! Types for quantities, so that units cannot be confused.
//!
//! A bare `u64` never crosses a crate's boundary: time is [`Nanos`], a TSC reading is [`Tsc`], and
//! only a [`TscHz`] converts one into the other. This crate does no I/O, and does not round or
//! scale for display; `report` does that. Untrusted text is escaped by [`printable`]; errors of all
//! crates are printed with their causes by [`chain`].
#![forbid(unsafe_code)]

mod cause;
mod cpu;
mod instructions;
mod length_unit;
mod nanos;
mod printable;
mod rate;
mod tsc;

pub use cause::{Cause, Helped, chain};
pub use cpu::{Cpu, CpuListError, CpuSet};
pub use instructions::Instructions;
pub use length_unit::LengthUnit;
pub use nanos::{Nanos, NanosError, Span};
pub use printable::{escape, is_hidden, printable, printable_lines};
pub use rate::{Hz, PerSecond, Ppm};
pub use tsc::{Tsc, TscDelta, TscHz};
