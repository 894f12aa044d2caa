//! Summaries of recordings and cells; their serialized form is the JSON contract.
//!
//! Begin with [`Summary::of`], [`CellSummary::of`] and [`metrics`]. All functions are pure. Every
//! number that is printed is a field of a summary, or a function of it.
//!
//! ```
//! use stats::{Summary, metrics};
//!
//! # let text = include_str!("../../recording/tests/golden/noise-1.json");
//! // The text of a file that `noisefloor noise -o FILE` wrote.
//! let recording = recording::Recording::from_json(text, "noise.json".as_ref())?;
//! for metric in metrics(&Summary::of(&recording)) {
//!     println!("{} of CPU {:?}: {}", metric.key, metric.cpu, metric.value);
//! }
//! # Ok::<(), recording::Error>(())
//! ```
#![forbid(unsafe_code)]

mod ablation;
mod cell;
mod change_points;
mod comparison;
mod counts;
mod distribution;
#[cfg(test)]
#[path = "../tests/example/series.rs"]
mod example;
mod explain;
mod limit;
mod metrics;
mod proc_counts;
mod random;
mod repetition;
mod summary;
mod values;

pub use ablation::{
    Ablation, Contribution, Ended, OptionChange, OptionsChange, Tested, Unexplained,
    Unresolved,
};
pub use cell::added::Added;
pub use cell::chart::{ChartBar, ChartPanel, MetricChart};
pub use cell::idle_by_hz::{HzLine, IdleByHz, IdleLoad, Saved};
pub use cell::idle_stretches::{
    IDLE_TABLES, IdleStretches, PROCESSOR_STATES, ProcessorState, StateShare,
};
pub use cell::trim::{
    Trim, TrimCall, TrimKernel, TrimResult, TrimSeries, TrimStep, TrimValue,
};
pub use cell::{
    CallCost, CallCosts, CellSummary, CpuIdleCost, EntryCost, FunctionShare, GroupCost,
    GroupRole, IdleCost, NohzCost, ProgramCost, TickCost, UnitCost, answer,
};
pub use change_points::{Stretch, stretches};
pub use comparison::{
    BetterSet, Block, BlockUnit, CellDifference, CellsComparison, Compared, Comparison,
    Conclusion, Condition, ConditionError, CulpritNumber, FALSE_DISCOVERIES, Judged,
    MetricNumber, Quantity, RunNumbers, RunSet, RunsDoubt, Statistic, Variants, compare,
};
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
pub use limit::{Limit, ViolatedLimit, exceeded};
pub use metrics::{
    Better, Definition, Metric, Unit, cell_metric_keys, cell_metrics, definitions,
    metrics, metrics_of,
};
pub use proc_counts::{LineSummary, ProcSummary, SoftirqSummary};
pub use repetition::{ProgramRun, RunSpread, balanced_order};
pub use summary::*;
pub use values::Spread;
