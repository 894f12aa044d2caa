//! Summaries of what was measured; their serialised form is the JSON contract.
//!
//! Pure: every function here is a function of its arguments, which are recordings, cells and
//! their parts. Every number that is ever printed is a field of one of these summaries.
#![forbid(unsafe_code)]

mod added;
mod calls;
mod cell;
mod check;
mod culprits;
mod eventless;
#[cfg(test)]
mod example;
mod explain;
mod flame;
mod free;
mod idle_states;
mod jitter;
mod job_times;
mod latency;
mod limit;
mod meanwhile;
mod metrics;
mod nohz;
mod noise;
mod percentiles;
mod period;
mod phase;
mod quantile;
mod renames;
mod run;
mod slice_bins;
mod slices;
mod slices_classic;
mod slices_cost;
mod slices_input;
mod slices_picture;
mod slices_window;
mod steal;
mod tick_back;
mod tick_kinds;
mod ticks;
mod values;
mod verdict;
mod wakers;

pub use added::Added;
pub use calls::{CallSummary, CallsSummary, StepLengths};
pub use cell::{
    CallCost, CallCosts, CellSummary, CountsInput, CpuIdleCost, EntryInput, GapsInput,
    IdleCost, IdleInput, TickCost, is_timer_entry,
};
pub use check::CheckSummary;
pub use culprits::Culprit;
pub use eventless::{Eventless, LengthBin};
pub use explain::{
    Difference, DifferencePart, Explanation, FunctionCost, FunctionDifference, StackInput,
};
pub use flame::{Change, FlameGraph, Frame};
pub use idle_states::{IdleStateSummary, NO_WAKE_LIMIT};
pub use jitter::{JitterLengths, JitterSoFar, JitterSummary, LoopLengths, jitters};
pub use latency::{CpuLatencySummary, LatencySummary, Lateness};
pub use limit::{Excess, Limits};
pub use meanwhile::{LineSummary, MeanwhileSummary, SoftirqSummary};
pub use metrics::{Metric, metric_names, metrics};
pub use nohz::{
    CpuWork, KeptBySummary, NohzCost, NohzStressSummary, NohzTestSummary, OtherThread,
    WaitLengths,
};
pub use noise::{CpuNoiseSummary, GapLengths, NoiseSummary, Risk};
pub use percentiles::{PercentileLine, Percentiles};
pub use period::Period;
pub use phase::{EntryKind, PROGRAM, PhaseEntry, PhaseExplanation};
pub use quantile::quantile;
pub use run::{EndedSummary, Interruption, InterruptionsSummary, Part, RunSummary};
pub use slice_bins::SliceBin;
pub use slices::{
    Ender, SliceLengths, SlicesSummary, StepSlices, StepSummary, TaskSummary, TurnsOff,
};
pub use slices_classic::ClassicLine;
pub use slices_cost::{SleepersCost, SlicesCost};
pub use slices_input::{
    SliceEnd, SlicesInput, SlicesSampleInput, SlicesTaskInput, SlicesTurnInput,
    StretchInput, TaskTimeInput,
};
pub use slices_picture::{
    PictureRole, PictureStep, PictureSwitches, PictureTask, PictureTurnInput,
    SlicesPicture, SlicesPictureInput,
};
pub use slices_window::{
    PictureCpuInput, PictureRow, PictureStretch, PictureStretchInput,
};
pub use steal::StealSummary;
pub use tick_back::{TickCause, TickCauseKind, TickReturnSummary, TickThread};
pub use tick_kinds::{KindDifference, KindInput, TickKind, TickKinds};
pub use ticks::{CpuTicksSummary, TicksSummary};
pub use values::Spread;
pub use verdict::{Consequences, Group, Split, Taker, TimePart, Verdict};
pub use wakers::{PartnerSummary, WakersSummary, WokenSummary};
