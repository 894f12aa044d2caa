//! Summaries of what was measured; their serialised form is the JSON contract.
//!
//! Pure: every function here is a function of its arguments. The inputs are plain
//! structs of quantities, so that nothing here depends on how a recording is stored.
//! Every number that is ever printed is a field of one of these summaries.
#![forbid(unsafe_code)]

mod added;
mod calls;
mod cell;
mod check;
mod culprits;
mod eventless;
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
pub use calls::{CallInput, CallSummary, CallsSummary, StepLengths};
pub use cell::{
    CallCost, CallCosts, CellSummary, CountsInput, CpuIdleCost, EntryInput, GapsInput,
    IdleCost, IdleInput, TickCost, is_timer_entry,
};
pub use check::CheckSummary;
pub use culprits::{
    Culprit, CulpritKind, Owner, OwnerInput, ShareInput, Thread as CulpritThread,
};
pub use eventless::{Eventless, LengthBin};
pub use explain::{
    Difference, DifferencePart, Explanation, FunctionCost, FunctionDifference, StackInput,
};
pub use flame::{Change, FlameGraph, Frame};
pub use idle_states::{IdleStateInput, IdleStateSummary, NO_WAKE_LIMIT};
pub use jitter::{
    JitterInput, JitterLengths, JitterSoFar, JitterSummary, LoopInput, LoopLengths,
    LostTestsInput,
};
pub use latency::{
    CpuLatencySummary, LatencyInput, LatencySummary, LatencyTerms, Lateness,
    LostWakeupsInput, WakeupInput,
};
pub use limit::{Excess, Limits};
pub use meanwhile::{
    CountInput, LineInput, LineSummary, MeanwhileInput, MeanwhileSummary, SoftirqSummary,
};
pub use metrics::{Metric, metric_names, metrics};
pub use nohz::{
    CpuWork, KeptBySummary, NohzCost, NohzInput, NohzStressSummary, NohzTestSummary,
    OtherThread, WaitLengths,
};
pub use noise::{CpuNoiseSummary, GapLengths, LostInput, NoiseInput, NoiseSummary, Risk};
pub use percentiles::{PercentileLine, Percentiles};
pub use period::Period;
pub use phase::{EntryKind, PROGRAM, PhaseEntry, PhaseExplanation};
pub use quantile::quantile;
pub use run::{
    EndedSummary, Interruption, InterruptionsInput, InterruptionsSummary, Part, RunInput,
    RunSummary, UsageSummary,
};
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
pub use steal::{StealInput, StealSummary};
pub use tick_back::{
    TickCause, TickCauseKind, TickReturnInput, TickReturnSummary, TickThread,
};
pub use tick_kinds::{KindDifference, KindInput, TickKind, TickKinds};
pub use ticks::{CpuTicksSummary, TickInput, TicksSummary};
pub use values::Spread;
pub use verdict::{Consequences, Group, Split, Taker, TimePart, Verdict};
pub use wakers::{PartnerInput, PartnerSummary, WakersSummary, WokenInput, WokenSummary};
