//! Summaries of recordings and cells; their serialized form is the JSON contract.
//!
//! Begin with [`Summary::of`], [`CellSummary::of`] and [`metrics`]. All functions are pure. Every
//! number that is printed is a field of a summary, or a function of it.
//!
//! ```
//! use summary::{Summary, metrics};
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

mod benchmarks;
mod calls;
mod cell;
mod check;
mod comparison;
#[cfg(test)]
#[path = "../tests/example/series.rs"]
mod example;
mod explain;
mod fleet;
mod guests;
mod hardware;
mod imported;
mod jitter;
mod latency;
mod length_log;
mod machine_totals;
mod metrics;
mod nohz;
mod noise;
mod proc_counts;
mod program;
#[cfg(test)]
#[path = "../../stats/tests/example/random.rs"]
mod random;
mod run;
mod scale;
mod slices;
mod summary;
mod ticks;
mod top;
mod wakers;
mod watch;

pub use benchmarks::{BenchmarkSummary, BenchmarksSummary};
pub use calls::{CallSummary, CallsSummary};
pub use cell::added::Added;
pub use cell::beside::{BesideSimulation, SimulatedSlices};
pub use cell::call_costs::{CallCost, CallCosts};
pub use cell::chart::{ChartBar, ChartPanel, MetricChart};
pub use cell::counts::CpuWork;
pub use cell::idle_by_hz::{HzLine, IdleByHz, IdleLoad, Saved};
pub use cell::idle_cost::{CpuIdleCost, IdleCost};
pub use cell::idle_stretches::{
    IDLE_TABLES, IdleStretches, PROCESSOR_STATES, ProcessorState, StateShare,
};
pub use cell::nohz_cost::NohzCost;
pub use cell::program_cost::{
    FunctionShare, GroupCost, GroupRole, ProgramCost, UnitCost,
};
pub use cell::sleepers_cost::SleepersCost;
pub use cell::slices_cost::SlicesCost;
pub use cell::tick_cost::TickCost;
pub use cell::trim::{
    Trim, TrimCall, TrimKernel, TrimResult, TrimSeries, TrimStep, TrimValue,
};
pub use cell::variation::{CellVariation, metrics_of};
pub use cell::{CellSummary, answer};
pub use check::CheckSummary;
pub use comparison::cells::{CellDifference, CellsComparison};
pub use comparison::condition::{Condition, ConditionError, Judged};
pub use comparison::duet::{DuetPair, DuetRun, DuetSummary, Together};
pub use comparison::main_metric::{MainMetric, SpreadCause};
pub use comparison::observation::{CulpritNumber, MetricNumber};
pub use comparison::one_metric::compare_metric;
pub use comparison::program_run::ProgramRun;
pub use comparison::quantity::Quantity;
pub use comparison::run_numbers::RunNumbers;
pub use comparison::run_set::{RunSet, RunsDoubt};
pub use comparison::samples::RunSpread;
pub use comparison::variants::Variants;
pub use comparison::worse::{MetricChange, any_worse, any_worse_cells, is_worse};
pub use comparison::{Compared, Comparison, compare};
pub use explain::call_stack::{CallStack, episode_stacks};
pub use explain::difference::{Difference, DifferencePart, FunctionDifference};
pub use explain::explanation::{Explanation, FunctionCost};
pub use explain::flame::{Change, FlameGraph, Frame};
pub use explain::phase::{EntryCost, EntryKind, PROGRAM, PhaseEntry, PhaseExplanation};
pub use explain::tick_kinds::{KindDifference, TickKind, TickKinds};
pub use explain::typical::{Frequency, Typical};
pub use explain::whole_phase::WholePhase;
pub use fleet::doubts::{FleetDoubt, FleetDoubtCode};
pub use fleet::fact::FleetFact;
pub use fleet::groups::{DifferingFact, FactNodes, FleetGroup, RareFact};
pub use fleet::labels::{FleetLabels, LabelsError};
pub use fleet::maps::{MapCell, MapColumn, MapRow, MapSource, NodeMap, SourceMap};
pub use fleet::run::FleetRun;
pub use fleet::sources::SourceExcess;
pub use fleet::{Fleet, FleetError, FleetQuestion, FleetSummary, NodeValue, NoisyNode};
pub use guests::{BestGuest, GuestSummary, GuestsSummary, VcpuSummary};
pub use hardware::HardwareSummary;
pub use imported::{ImportedSummary, LengthsSummary};
pub use jitter::percentiles::{PercentileLine, Percentiles};
pub use jitter::{JitterProgress, JitterSummary, jitters};
pub use latency::cause::WakeCause;
pub use latency::causes::{WakeCausesSummary, WakeCulprit, WakePartSummary};
pub use latency::idle_states::{IdleStateSummary, NO_WAKE_LIMIT};
pub use latency::idle_use::IdleStateUse;
pub use latency::late_wakeups::{LateWakeupSummary, MainCause, WakeMomentSummary};
pub use latency::{CpuLatencySummary, LatencySummary};
pub use length_log::{LengthInterval, LengthLog, NoLog};
pub use machine_totals::last_minute::LongestTimes;
pub use machine_totals::source_totals::SourceTotal;
pub use machine_totals::{
    CpuTotals, CumulativeLengths, MachineTotals, cumulative_lengths,
};
pub use metrics::benchmark_key::BenchmarkKey;
pub use metrics::definition::{Definition, Metric};
pub use metrics::limit::{Limit, ViolatedLimit, exceeded};
pub use metrics::read::{cell_metrics, metrics};
pub use metrics::{cell_metric_keys, definition, definitions};
pub use nohz::remaining::{RemainingCause, RemainingSummary};
pub use nohz::tick_back::{TickCause, TickCauseKind, TickReturnSummary, TickThread};
pub use nohz::{NohzStressSummary, NohzTestSummary};
pub use noise::at_scale::AtScale;
pub use noise::by_cpu::NoiseByCpu;
pub use noise::by_unit::UnitGroup;
pub use noise::culprits::CulpritSummary;
pub use noise::eventless::{Eventless, LengthBin};
pub use noise::firmware::FirmwareSummary;
pub use noise::free::Risk;
pub use noise::hits::{HitRange, job_hit_ranges, job_hits};
pub use noise::largest::SourceShares;
pub use noise::over_time::NoiseOverTime;
pub use noise::own::OwnCost;
pub use noise::period::Period;
pub use noise::sources::NoiseSource;
pub use noise::steal::{StealSummary, StolenTime};
pub use noise::timers::TimerRate;
pub use noise::verdict::{
    Consequences, Group, Groups, LossCategory, Split, TimePart, Verdict,
};
pub use noise::{CpuNoiseSummary, NoiseSummary};
pub use proc_counts::{LineSummary, ProcSummary, SoftirqSummary};
pub use program::{ProgramSummary, ServiceSummary};
pub use run::{EndedSummary, Interruption, InterruptionsSummary, Part, RunSummary};
pub use scale::{
    ScaleBounds, ScaleCountSummary, ScaleSourceSummary, ScaleSummary, Slowdown,
    WithoutSource,
};
pub use slices::bins::SliceBin;
pub use slices::classic::ClassicLine;
pub use slices::picture::{PictureRole, PictureStep, PictureTask, SlicesPicture};
pub use slices::placements::picture::{PlacedTask, PlacementsPicture};
pub use slices::placements::{PlacementsSummary, SliceLoss, TaskLoss};
pub use slices::window::{PictureRow, PictureStretch};
pub use slices::{
    RoundDeviation, SliceEnds, SlicesSummary, StepSlices, StepSummary, TaskSummary,
};
pub use summary::Summary;
pub use ticks::power::{PowerSummary, ZonePower};
pub use ticks::rates::{
    TickMeaning, TickVerdict, spinning_verdicts, tick_hz, tick_verdicts,
};
pub use ticks::{CpuTicksSummary, TicksSummary};
pub use top::{TopCpuSummary, TopGrouping, TopSource, TopSummary};
pub use wakers::{PartnerSummary, WakersSummary, WokenSummary};
pub use watch::{
    TakerSummary, WaitLengths, WatchSummary, WatchedDelaySummary, WatchedThreadSummary,
};
