//! Summaries of what was measured; their serialised form is the JSON contract.
//!
//! Pure: every function here is a function of its arguments, which are recordings, cells and
//! their parts; [`Summary::of`] and [`CellSummary::of`] are the ways in. Every number that is
//! ever printed is a field of one of these summaries, or a function of it.
#![forbid(unsafe_code)]

mod calls;
mod cell;
mod check;
mod counts;
mod distribution;
#[cfg(test)]
mod example;
mod explain;
mod jitter;
mod latency;
mod limit;
mod meanwhile;
mod metrics;
mod nohz;
mod noise;
mod run;
mod slices;
mod summary;
mod ticks;
mod values;
mod wakers;

pub use calls::{CallSummary, CallsSummary};
pub use cell::added::Added;
pub use cell::{
    CallCost, CallCosts, CellSummary, CpuIdleCost, IdleCost, NohzCost, TickCost, answer,
};
pub use check::CheckSummary;
pub use counts::CpuWork;
pub use distribution::{Distribution, quantile};
pub use explain::flame::{Change, FlameGraph, Frame};
pub use explain::phase::{EntryKind, PROGRAM, PhaseEntry, PhaseExplanation};
pub use explain::tick_kinds::{KindDifference, TickKind, TickKinds};
pub use explain::typical::{Frequency, Typical, episode_stacks};
pub use explain::whole_phase::WholePhase;
pub use explain::{
    CallStack, Difference, DifferencePart, Explanation, FunctionCost, FunctionDifference,
};
pub use jitter::percentiles::{PercentileLine, Percentiles};
pub use jitter::{JitterProgress, JitterSummary, jitters};
pub use latency::idle_states::{IdleStateSummary, IdleStateUse, NO_WAKE_LIMIT};
pub use latency::{CpuLatencySummary, LatencySummary};
pub use limit::{Limit, ViolatedLimit, exceeded};
pub use meanwhile::{LineSummary, MeanwhileSummary, SoftirqSummary};
pub use metrics::{
    Better, Definition, Metric, Unit, cell_metric_keys, cell_metrics, definitions,
    metrics,
};
pub use nohz::tick_back::{TickCause, TickCauseKind, TickReturnSummary, TickThread};
pub use nohz::{NohzStressSummary, NohzTestSummary};
pub use noise::culprits::CulpritSummary;
pub use noise::eventless::{Eventless, LengthBin};
pub use noise::period::Period;
pub use noise::steal::StealSummary;
pub use noise::verdict::{Consequences, Group, Groups, Split, Taker, TimePart, Verdict};
pub use noise::{CpuNoiseSummary, NoiseSummary, Risk};
pub use run::{EndedSummary, Interruption, InterruptionsSummary, Part, RunSummary};
pub use slices::{
    ClassicLine, Ender, PictureRole, PictureRow, PictureStep, PictureStretch,
    PictureSwitches, PictureTask, SleepersCost, SliceBin, SlicesCost, SlicesPicture,
    SlicesSummary, StepSlices, StepSummary, TaskSummary, TurnsOff,
};
pub use summary::Summary;
pub use ticks::rates::{
    TickMeaning, TickVerdict, spinning_verdicts, tick_hz, tick_verdicts,
};
pub use ticks::{CpuTicksSummary, TicksSummary};
pub use values::Spread;
pub use wakers::{PartnerSummary, WakersSummary, WokenSummary};
