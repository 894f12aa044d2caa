//! Quantities that cannot be confused.
//!
//! A bare `u64` never crosses a room's border: time is [`Nanos`], a reading of the
//! CPU's counter is [`Tsc`], and only a [`TscHz`] turns one into the other. Nothing
//! here does I/O, and nothing here rounds or scales for display; `report` does that.
//! Text from outside is one of them: only what is [`printable`] may be shown. Errors of all
//! rooms are printed with their causes by [`chain`].
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
