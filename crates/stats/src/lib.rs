//! Summaries of what was measured; their serialised form is the JSON contract.
//!
//! Pure: every function here is a function of its arguments. The inputs are plain
//! structs of quantities, so that nothing here depends on how a recording is stored.
//! Every number that is ever printed is a field of one of these summaries.
#![forbid(unsafe_code)]

mod check;
mod free;
mod limit;
mod meanwhile;
mod noise;
mod quantile;
mod ticks;

pub use check::CheckSummary;
pub use limit::{Excess, Limits};
pub use meanwhile::{
    CountInput, LineInput, LineSummary, MeanwhileInput, MeanwhileSummary, SoftirqSummary,
};
pub use noise::{
    CpuNoiseSummary, Culprit, CulpritKind, GapLengths, LostInput, NoiseInput,
    NoiseSummary, Risk,
};
pub use ticks::{CpuTicksSummary, TickInput, TicksSummary};
