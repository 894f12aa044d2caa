//! The table of measurement kinds, and what follows from it: [`Spec`] and [`Body`].
//!
//! A kind has one row. A room that has something for every kind expands [`kinds!`](crate::kinds)
//! with a macro of its own, or matches [`Spec`] or [`Body`] without a wildcard: the compiler then
//! names each place that a new kind needs.

mod benchmarks;
mod calls;
mod check;

mod guests;
mod imported;
mod jitter;
mod latency;
mod nohz;
mod noise;
mod program;
mod run;
mod scale;
mod simulated;
mod slices;
mod ticks;
mod top;
mod top_counts;
mod wakers;
mod wakeup_causes;
mod watch;
mod workload;

pub use benchmarks::{
    Benchmark, BenchmarksSeries, BenchmarksSpec, BetterValues, ValueStatistics, ValueUnit,
};
pub use calls::{Call, CallTimes, CallsSeries, CallsSpec};
pub use check::{CheckSeries, CheckSpec};

pub use guests::{
    GuestProcess, GuestUsage, GuestsSeries, GuestsSpec, ThreadUsage, VcpuUsage,
};
pub use imported::{
    Bin, BinnedInterval, ImportedLengths, ImportedSeries, ImportedSpec, LengthKind,
};
pub use jitter::{
    JitterPlan, JitterSeries, JitterSoFar, JitterSpec, LoopTimes, LostTests,
    UnfinishedTest,
};
pub use latency::{
    CpuLatency, IdleUse, LatencySeries, LatencySpec, LostWakeups, Timer, Wakeup,
};
pub use nohz::{
    ExpiredTimer, KeptBy, NohzSeries, NohzSpec, NohzTry, RemainingTimers, SoftirqCount,
    TickReturn, TimerCount, TimerInterrupts, TimerKind, TimerReason, WaitingThread,
};
pub use noise::{Counted, CpuNoise, LineCount, Lost, NoiseSeries, NoiseSpec, ProcCounts};
pub use program::{KeptOutput, ProgramSeries, ProgramSpec, Ready, ServiceSpec, WorkUnit};
pub use run::{
    CpuRun, Edges, Ended, Interruptions, Picked, RunSeries, RunSpec, Stopped, StoppedBy,
    Usage,
};
pub use scale::{
    Algorithm, AtScaleSpec, Coscheduled, Network, Pattern, ScaleCount, ScaleInput,
    ScaleRuns, ScaleSeries, ScaleSource, ScaleSpec, StepDelay,
};
pub use simulated::{Simulated, SimulatedSteal};
pub use slices::{
    CpuSwitches, End, LooseEnd, Placement, Placements, Policy, Role, SlicesSample,
    SlicesSeries, SlicesSpec, SlicesTask, SlicesTurn, Step, StepSetting, Stretch,
    SwitchedTask, Switches, TaskTime,
};
pub use ticks::{
    CpuBusy, CpuTicks, Energy, TickSample, TicksSeries, TicksSpec, ZoneEnergy,
};
pub use top::{TopCpu, TopSample, TopSeries, TopSpec, TopUse};
pub use top_counts::{LengthCounts, TopCounts};
pub use wakers::{Partner, WakersSeries, WakersSpec, WokenThread};
pub use wakeup_causes::{LateWakeup, WakeMoment, WakePart, WakeShare, WakeupCauses};
pub use watch::{
    DelayKind, DelayRun, WaitParts, WaitTaker, WatchLost, WatchSeries, WatchSpec,
    WatchTarget, WatchedDelay, WatchedInterruption, WatchedThread,
};
pub use workload::{Workload, WorkloadError};

use serde::{Deserialize, Serialize};
use units::{CpuSet, Nanos};

use crate::blame::Source;

/// Calls the macro `$rows` with a row for each kind: its documentation, its variant, its name in
/// files, the types of its spec and its series, and the type of its summary in `summary`.
#[macro_export]
macro_rules! kinds {
    ($rows:ident) => {
        $rows! {
            /// OS noise of busy CPUs.
            Noise "noise" NoiseSpec NoiseSeries NoiseSummary;
            /// Timer interrupts per second and CPU.
            Ticks "ticks" TicksSpec TicksSeries TicksSummary;
            /// Overview of a machine: ticks of idle CPUs, then noise of all CPUs at once.
            Check "check" CheckSpec CheckSeries CheckSummary;
            /// The cost of single requests to the kernel.
            Calls "calls" CallsSpec CallsSeries CallsSummary;
            /// Timer wake-up latency.
            Latency "latency" LatencySpec LatencySeries LatencySummary;
            /// Interruptions of a program on a CPU of its own.
            Run "run" RunSpec RunSeries RunSummary;
            /// Threads by their wake-ups, and what these preempt.
            Wakers "wakers" WakersSpec WakersSeries WakersSummary;
            /// What takes time from a running program.
            Watch "watch" WatchSpec WatchSeries WatchSummary;
            /// What uses the CPUs of a machine.
            Top "top" TopSpec TopSeries TopSummary;
            /// Whether the tick of a CPU stops, and which interrupts remain.
            NohzTest "nohz_test" NohzSpec NohzSeries NohzTestSummary;
            /// How often the tick of a CPU stops, and how long that takes.
            NohzStress "nohz_stress" NohzSpec NohzSeries NohzStressSummary;
            /// Variation of a workload's run time.
            Jitter "jitter" JitterSpec JitterSeries JitterSummary;
            /// Time slices of CPU-bound tasks.
            Slices "slices" SlicesSpec SlicesSeries SlicesSummary;
            /// The cost of the virtual machines on this host.
            Guests "guests" GuestsSpec GuestsSeries GuestsSummary;
            /// A program in a guest, and the services that it needs.
            Program "program" ProgramSpec ProgramSeries ProgramSummary;
            /// What noise costs many ranks that wait for each other.
            Scale "scale" ScaleSpec ScaleSeries ScaleSummary;
            /// Lengths of time that another tool measured.
            Imported "imported" ImportedSpec ImportedSeries ImportedSummary;
            /// Results of benchmarks that another tool has run.
            Benchmarks "benchmarks" BenchmarksSpec BenchmarksSeries BenchmarksSummary;
        }
    };
}

macro_rules! types {
    ($($(#[$about:meta])* $kind:ident $name:literal $spec:ident $series:ident $_summary:ident;)*) => {
        /// The parameters of a measurement, by kind.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Spec {
            $($(#[$about])* $kind($spec),)*
        }

        /// The parameters (spec) and the measured values (series), by kind.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum Body {
            $($(#[$about])* $kind {
                /// The parameters.
                spec: $spec,
                /// The measured values.
                series: $series,
            },)*
        }

        impl Body {
            /// The names of all kinds in files.
            pub(crate) const KINDS: &'static [&'static str] = &[$($name),*];

            /// The kind's name in files: `noise`, `nohz_test`.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$kind { .. } => $name,)* }
            }
        }
    };
}
kinds!(types);

impl Spec {
    /// The CPUs that are measured; empty where that is all of them.
    pub fn cpus(&self) -> CpuSet {
        match self {
            Self::Noise(spec) => spec.cpus.clone(),
            Self::Ticks(spec) => spec.cpus.clone(),
            Self::Check(spec) => spec.cpus.clone(),
            Self::Calls(spec) => spec.cpu.into(),
            Self::Latency(spec) => spec.cpus.clone(),
            Self::Run(spec) => spec.cpus.clone(),
            Self::Wakers(spec) => spec.cpus.clone().unwrap_or_default(),
            Self::NohzTest(spec) | Self::NohzStress(spec) => spec.cpu.into(),
            Self::Jitter(spec) => spec.cpu.into(),
            Self::Slices(spec) => spec.cpus.clone(),
            Self::Imported(spec) => spec.cpus.clone(),
            Self::Watch(_)
            | Self::Top(_)
            | Self::Guests(_)
            | Self::Program(_)
            | Self::Benchmarks(_)
            | Self::Scale(_) => CpuSet::empty(),
        }
    }

    /// How long the measurement takes, if its parameters say so.
    pub fn duration(&self) -> Option<Nanos> {
        match self {
            Self::Noise(spec) => Some(spec.duration_ns),
            Self::Ticks(spec) => Some(spec.interval_ns.saturating_mul(spec.count?)),
            Self::Check(spec) => Some(spec.idle_ns + spec.noise_ns),
            Self::Latency(spec) => Some(spec.duration_ns),
            Self::Wakers(spec) => Some(spec.duration_ns),
            Self::Watch(spec) => Some(spec.duration_ns),
            Self::Top(spec) => spec.duration_ns,
            Self::NohzTest(spec) => Some(spec.limit_ns.saturating_add(spec.observe_ns)),
            Self::Slices(spec) => Some(spec.duration_ns),
            Self::Guests(spec) => Some(spec.duration_ns),
            Self::Calls(_)
            | Self::Run(_)
            | Self::NohzStress(_)
            | Self::Jitter(_)
            | Self::Program(_)
            | Self::Scale(_)
            | Self::Benchmarks(_)
            | Self::Imported(_) => None,
        }
    }

    /// Whether what other threads and interrupts do on its CPUs explains its values.
    pub fn is_attributed(&self) -> bool {
        match self {
            Self::Noise(_) | Self::Check(_) | Self::Latency(_) | Self::Jitter(_) => true,
            Self::Ticks(_)
            | Self::Calls(_)
            | Self::Run(_)
            | Self::Wakers(_)
            | Self::Watch(_)
            | Self::Top(_)
            | Self::NohzTest(_)
            | Self::NohzStress(_)
            | Self::Slices(_)
            | Self::Guests(_)
            | Self::Program(_)
            | Self::Scale(_)
            | Self::Benchmarks(_)
            | Self::Imported(_) => false,
        }
    }

    /// The `SCHED_FIFO` priority of the measuring threads; `None`: ordinary tasks.
    pub fn fifo(&self) -> Option<u8> {
        match self {
            Self::Noise(spec) => spec.fifo,
            Self::NohzTest(spec) | Self::NohzStress(spec) => spec.fifo,
            Self::Jitter(spec) => spec.fifo,
            Self::Latency(spec) => spec.fifo,
            Self::Ticks(_)
            | Self::Check(_)
            | Self::Calls(_)
            | Self::Run(_)
            | Self::Wakers(_)
            | Self::Watch(_)
            | Self::Top(_)
            | Self::Slices(_)
            | Self::Guests(_)
            | Self::Program(_)
            | Self::Scale(_)
            | Self::Benchmarks(_)
            | Self::Imported(_) => None,
        }
    }
}

impl Body {
    /// The source of the events; `None` if events were not traced.
    pub fn source(&self) -> Option<Source> {
        match self {
            Self::Noise { series, .. } => series.source,
            Self::Check { series, .. } => series.noise.source,
            Self::Ticks { series, .. } => series.source,
            Self::Run { series, .. } => series.source,
            Self::Slices { series, .. } => Some(series.switches.as_ref()?.source),
            Self::Watch { series, .. } => Some(series.source),
            Self::Top { series, .. } => Some(series.source),
            Self::Calls { .. }
            | Self::Latency { .. }
            | Self::Wakers { .. }
            | Self::NohzTest { .. }
            | Self::NohzStress { .. }
            | Self::Jitter { .. }
            | Self::Guests { .. }
            | Self::Program { .. }
            | Self::Scale { .. }
            | Self::Benchmarks { .. }
            | Self::Imported { .. } => None,
        }
    }

    /// The noise of busy CPUs, of the kinds that have it.
    pub fn noise(&self) -> Option<&NoiseSeries> {
        match self {
            Self::Noise { series, .. } => Some(series),
            Self::Check { series, .. } => Some(&series.noise),
            Self::Ticks { .. }
            | Self::Calls { .. }
            | Self::Latency { .. }
            | Self::Run { .. }
            | Self::Wakers { .. }
            | Self::Watch { .. }
            | Self::Top { .. }
            | Self::NohzTest { .. }
            | Self::NohzStress { .. }
            | Self::Jitter { .. }
            | Self::Slices { .. }
            | Self::Guests { .. }
            | Self::Program { .. }
            | Self::Scale { .. }
            | Self::Benchmarks { .. }
            | Self::Imported { .. } => None,
        }
    }

    /// The same, to be changed.
    pub fn noise_mut(&mut self) -> Option<&mut NoiseSeries> {
        match self {
            Self::Noise { series, .. } => Some(series),
            Self::Check { series, .. } => Some(&mut series.noise),
            Self::Ticks { .. }
            | Self::Calls { .. }
            | Self::Latency { .. }
            | Self::Run { .. }
            | Self::Wakers { .. }
            | Self::Watch { .. }
            | Self::Top { .. }
            | Self::NohzTest { .. }
            | Self::NohzStress { .. }
            | Self::Jitter { .. }
            | Self::Slices { .. }
            | Self::Guests { .. }
            | Self::Program { .. }
            | Self::Scale { .. }
            | Self::Benchmarks { .. }
            | Self::Imported { .. } => None,
        }
    }
}
