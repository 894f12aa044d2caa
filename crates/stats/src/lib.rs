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
mod slices;
mod steal;
mod summary;
mod tick_back;
mod tick_kinds;
mod tick_rates;
mod ticks;
mod typical;
mod values;
mod verdict;
mod wakers;
mod whole_phase;

pub use added::Added;
pub use calls::{CallSummary, CallsSummary, StepLengths};
pub use cell::{
    CallCost, CallCosts, CellSummary, CpuIdleCost, CpuWork, IdleCost, NohzCost, TickCost,
    answer,
};
pub use check::CheckSummary;
pub use culprits::CulpritSummary;
pub use eventless::{Eventless, LengthBin};
pub use explain::{
    CallStack, Difference, DifferencePart, Explanation, FunctionCost, FunctionDifference,
};
pub use flame::{Change, FlameGraph, Frame};
pub use idle_states::{IdleStateSummary, IdleStateUse, NO_WAKE_LIMIT};
pub use jitter::{JitterLengths, JitterProgress, JitterSummary, LoopLengths, jitters};
pub use latency::{CpuLatencySummary, LatencySummary, Lateness};
pub use limit::{Excess, Limits};
pub use meanwhile::{LineSummary, MeanwhileSummary, SoftirqSummary};
pub use metrics::{Metric, metric_names, metrics};
pub use nohz::{NohzStressSummary, NohzTestSummary, WaitLengths};
pub use noise::{CpuNoiseSummary, GapLengths, NoiseSummary, Risk};
pub use percentiles::{PercentileLine, Percentiles};
pub use period::Period;
pub use phase::{EntryKind, PROGRAM, PhaseEntry, PhaseExplanation};
pub use quantile::quantile;
pub use run::{EndedSummary, Interruption, InterruptionsSummary, Part, RunSummary};
pub use slices::{
    ClassicLine, Ender, PictureRole, PictureRow, PictureStep, PictureStretch,
    PictureSwitches, PictureTask, SleepersCost, SliceBin, SliceLengths, SlicesCost,
    SlicesPicture, SlicesSummary, StepSlices, StepSummary, TaskSummary, TurnsOff,
};
pub use steal::StealSummary;
pub use summary::Summary;
pub use tick_back::{TickCause, TickCauseKind, TickReturnSummary, TickThread};
pub use tick_kinds::{KindDifference, TickKind, TickKinds};
pub use tick_rates::{
    TickMeaning, TickVerdict, spinning_verdicts, tick_hz, tick_verdicts,
};
pub use ticks::{CpuTicksSummary, TicksSummary};
pub use typical::{Frequency, Typical, episode_stacks};
pub use values::Spread;
pub use verdict::{Consequences, Group, Groups, Split, Taker, TimePart, Verdict};
pub use wakers::{PartnerSummary, WakersSummary, WokenSummary};
pub use whole_phase::WholePhase;
