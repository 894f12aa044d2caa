//! One measurement: facts + what was asked (spec) + what was seen (series) + doubts.
//!
//! Everything upstream ends in a [`Recording`], everything downstream starts from one.
//! It can be understood alone, on another machine, years later; `docs/format.md`
//! describes its file. Nothing here computes statistics.
#![forbid(unsafe_code)]

mod blame;
mod calls;
mod cell;
mod counts;
mod doubt;
mod error;
mod file;
mod input;
mod jitter;
mod latency;
mod nohz;
mod noise;
mod output;
mod phases;
mod printable;
mod profile;
mod run;
mod slices;
mod ticks;
mod wakers;
mod words;
mod workload;

pub use blame::{
    Blamed, Culprit, Event, Kind as CulpritKind, Share, Source, Steal, StealClock,
    Thread, ThreadOwner,
};
pub use calls::{Call, CallTimes, CallsSeries, CallsSpec};
pub use cell::{Answer, Cell, Ending, MadeWith, Mode};
pub use counts::{Counts, CpuCounts, Interruption, Level, PhaseCounts, Values};
pub use doubt::{Code, Doubt};
pub use error::{Error, Kind};
pub use file::FORMAT;
pub use input::SIZE_MAX;
pub use jitter::{
    JitterPlan, JitterSeries, JitterSoFar, JitterSpec, LoopTimes, LostTests,
    UnfinishedTest,
};
pub use latency::{
    CpuLatency, IdleUse, LatencySeries, LatencySpec, LostWakeups, Timer, Wakeup,
};
pub use nohz::{
    KeptBy, NohzSeries, NohzSpec, NohzTry, SoftirqCount, TickReturn, TimerCount,
    WaitingThread,
};
pub use noise::{Counted, CpuNoise, LineCount, Lost, Meanwhile, NoiseSeries, NoiseSpec};
pub use output::{check_writable, write_file};
pub use phases::Phases;
pub use printable::printable;
pub use profile::{Called, Episode, PhaseCalls, Profile, Stack, What};
pub use run::{Ended, Interruptions, Picked, RunSeries, RunSpec, Usage};
pub use slices::{
    CpuSwitches, End, LooseEnd, Policy, Role, SlicesSample, SlicesSeries, SlicesSpec,
    SlicesTask, SlicesTurn, Step, StepSetting, Stretch, SwitchedTask, Switches, TaskTime,
};
pub use ticks::{CpuBusy, CpuTicks, TickSample, TicksSeries, TicksSpec};
pub use wakers::{Partner, WakersSeries, WakersSpec, WokenThread};
pub use words::Words;
pub use workload::{Workload, WorkloadError};

use facts::Facts;
use serde::{Deserialize, Serialize};
use units::{CpuSet, Nanos};

/// A measurement with everything that is needed to understand it.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// When it was taken: RFC 3339, UTC.
    pub taken: String,
    /// The tool and version that took it: `noisefloor 0.1.0`.
    pub tool: String,
    /// What the kernel said about itself.
    pub facts: Facts,
    /// What was asked, and what was seen.
    pub body: Body,
    /// Reasons not to trust a number.
    pub doubts: Vec<Doubt>,
}

/// What was asked (spec) and what was seen (series), by kind of measurement.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// How much a spinning CPU loses.
    Noise {
        /// What was asked.
        spec: NoiseSpec,
        /// What was seen.
        series: NoiseSeries,
    },
    /// Timer interrupts per second and CPU.
    Ticks {
        /// What was asked.
        spec: TicksSpec,
        /// What was seen.
        series: TicksSeries,
    },
    /// One look at the machine: ticks at rest, then noise on all CPUs at once.
    Check {
        /// What was asked.
        spec: CheckSpec,
        /// What was seen.
        series: CheckSeries,
    },
    /// What single requests to the kernel cost.
    Calls {
        /// What was asked.
        spec: CallsSpec,
        /// What was seen.
        series: CallsSeries,
    },
    /// How late a timer wakes a thread.
    Latency {
        /// What was asked.
        spec: LatencySpec,
        /// What was seen.
        series: LatencySeries,
    },
    /// What a program suffered on a CPU of its own.
    Run {
        /// What was asked.
        spec: RunSpec,
        /// What was seen.
        series: RunSeries,
    },
    /// Who wakes up how often, and whom that preempts.
    Wakers {
        /// What was asked.
        spec: WakersSpec,
        /// What was seen.
        series: WakersSeries,
    },
    /// Whether the tick stops, and what comes nevertheless.
    NohzTest {
        /// What was asked.
        spec: NohzSpec,
        /// What was seen.
        series: NohzSeries,
    },
    /// How often the tick stops, and how long that takes.
    NohzStress {
        /// What was asked.
        spec: NohzSpec,
        /// What was seen.
        series: NohzSeries,
    },
    /// How much a workload's run time varies.
    Jitter {
        /// What was asked.
        spec: JitterSpec,
        /// What was seen.
        series: JitterSeries,
    },
    /// How long CPU-bound tasks run before something preempts them.
    Slices {
        /// What was asked.
        spec: SlicesSpec,
        /// What was seen.
        series: SlicesSeries,
    },
}

impl Body {
    /// The kind's name, as it stands in the file: `noise`, `ticks`, `check`, `calls`,
    /// `latency`, `run`, `wakers`, `nohz_test`, `nohz_stress`, `jitter`, `slices`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Noise { .. } => "noise",
            Self::Ticks { .. } => "ticks",
            Self::Check { .. } => "check",
            Self::Calls { .. } => "calls",
            Self::Latency { .. } => "latency",
            Self::Run { .. } => "run",
            Self::Wakers { .. } => "wakers",
            Self::NohzTest { .. } => "nohz_test",
            Self::NohzStress { .. } => "nohz_stress",
            Self::Jitter { .. } => "jitter",
            Self::Slices { .. } => "slices",
        }
    }

    /// Whether ticks stopped, where that was tried.
    pub fn nohz(&self) -> Option<&NohzSeries> {
        match self {
            Self::NohzTest { series, .. } | Self::NohzStress { series, .. } => {
                Some(series)
            }
            _ => None,
        }
    }

    /// What spinning CPUs lost, where that was measured.
    pub fn noise_mut(&mut self) -> Option<&mut NoiseSeries> {
        match self {
            Self::Noise { series, .. } => Some(series),
            Self::Check { series, .. } => Some(&mut series.noise),
            _ => None,
        }
    }
}

/// What `check` is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSpec {
    /// The CPUs to spin on.
    pub cpus: CpuSet,
    /// The CPUs to count ticks on.
    pub rest_cpus: CpuSet,
    /// How long to count ticks while this tool rests.
    pub idle_ns: Nanos,
    /// How long to spin.
    pub noise_ns: Nanos,
}

/// What `check` saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckSeries {
    /// Ticks while this tool rested.
    pub rest: TicksSeries,
    /// Noise on all CPUs at once, with the interrupts of the meantime.
    pub noise: NoiseSeries,
}

impl Recording {
    /// The tool and its version, as they stand in recordings.
    pub const TOOL: &'static str = concat!("noisefloor ", env!("CARGO_PKG_VERSION"));

    /// A recording taken now, by this version of the tool.
    pub fn now(facts: Facts, body: Body, doubts: Vec<Doubt>) -> Self {
        Self { taken: Self::moment(), tool: Self::TOOL.to_owned(), facts, body, doubts }
    }

    /// This moment, as it stands in recordings: RFC 3339, UTC, whole seconds.
    pub fn moment() -> String {
        jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}
