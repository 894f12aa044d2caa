//! The shape of an experiment's TOML: its tables and rows, as they are written.
//!
//! A single row is checked as it is read (`entry`); rows together are checked when they are
//! combined (`combination`). `docs/experiments.md` is the description.

pub(crate) mod condition;
pub(crate) mod entry;
pub(crate) mod include;
pub(crate) mod kernel_build;
pub(crate) mod number;
pub(crate) mod program;
pub(crate) mod sequence;
pub(crate) mod source;
pub(crate) mod step;
mod variations;

use std::str::FromStr;

use recording::{Call, Mode, Source};
use serde::de::{Deserialize, Deserializer};
use toml::Spanned;

use crate::error::EntryError;
use crate::from_text::read_from_text;
use crate::machine::{Machine, MachineKind};
use crate::table::condition::Condition;
use crate::table::entry::{
    CpuModel, KernelName, Length, Line, MetricName, Name, Parameters, SettingPath,
    SettingValue,
};
use crate::table::include::IncludeRow;
use crate::table::number::{CpuChoice, Number};
use crate::table::program::{ProgramRow, ServiceRow};
use crate::table::sequence::{List, Pairs};
use crate::table::source::NOWHERE;
use crate::table::step::StepRow;
use crate::variations::Variations;

/// The number of a guest's CPUs.
pub(crate) type Cpus = Number<1, 8>;
/// A guest's memory, in MiB. With less, Debian's smallest kernels end without output (64) or panic
/// for lack of memory (72).
pub(crate) type MemoryMib = Number<80, { Machine::MEMORY_MAX_MIB }>;
/// The number of a cell's repeats.
pub(crate) type Repeats = Number<1, 1000>;
/// The number of a cell's phases.
pub(crate) type PhaseCount = Number<1, 64>;
/// The number of a call's repeats.
pub(crate) type CallRepeats = Number<1, 100_000>;

/// A whole experiment.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct Table {
    pub(crate) name: Spanned<Name>,
    #[serde(default)]
    pub(crate) about: Line,
    pub(crate) kernels: List<KernelName>,
    #[serde(default)]
    pub(crate) mode: ModeWord,
    #[serde(default = "once")]
    pub(crate) repeats: Repeats,
    #[serde(default = "eight")]
    pub(crate) phases: PhaseCount,
    pub(crate) variations: Option<Variations>,
    #[serde(default)]
    pub(crate) machine: MachineRow,
    #[serde(default)]
    pub(crate) boot: Vec<Spanned<BootRow>>,
    #[serde(default)]
    pub(crate) setting: Vec<Spanned<SettingRow>>,
    #[serde(default)]
    pub(crate) workload: Vec<Spanned<WorkloadRow>>,
    #[serde(default)]
    pub(crate) include: Vec<Spanned<IncludeRow>>,
    #[serde(default)]
    pub(crate) step: Vec<Spanned<StepRow>>,
    #[serde(default)]
    pub(crate) limits: Pairs<MetricName, Condition>,
    #[serde(default)]
    pub(crate) limit: Vec<LimitRow>,
    #[serde(default)]
    pub(crate) baseline: Vec<BaselineRow>,
}

impl Table {
    /// The same with a boot row and a setting row that change nothing, if it has none.
    pub(crate) fn with_first_rows(mut self) -> Self {
        if self.boot.is_empty() {
            self.boot.push(Spanned::new(NOWHERE, BootRow::default()));
        }
        if self.setting.is_empty() {
            self.setting.push(Spanned::new(NOWHERE, SettingRow::default()));
        }
        self
    }
}

/// The mode of guest time, as in the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModeWord(pub(crate) Mode);

impl Default for ModeWord {
    fn default() -> Self {
        Self(Mode::Exact)
    }
}

impl FromStr for ModeWord {
    type Err = EntryError;

    fn from_str(text: &str) -> Result<Self, EntryError> {
        match text {
            "exact" => Ok(Self(Mode::Exact)),
            "timed" => Ok(Self(Mode::Timed)),
            _ => Err(EntryError::Mode(text.to_owned())),
        }
    }
}

read_from_text!(ModeWord);

/// The event source, as in the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TraceWord(pub(crate) Source);

impl FromStr for TraceWord {
    type Err = EntryError;

    fn from_str(text: &str) -> Result<Self, EntryError> {
        match text {
            "bpf" => Ok(Self(Source::Bpf)),
            "bpf_classic" => Ok(Self(Source::BpfClassic)),
            "tracefs" => Ok(Self(Source::Tracefs)),
            _ => Err(EntryError::EventSource(text.to_owned())),
        }
    }
}

read_from_text!(TraceWord);

fn once() -> Repeats {
    Repeats::of::<1>()
}

fn eight() -> PhaseCount {
    PhaseCount::of::<8>()
}

fn none() -> Number<0, 256> {
    Number::of::<0>()
}

/// The machine of all cells, as far as it is specified.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct MachineRow {
    #[serde(rename = "type")]
    pub(crate) kind: Option<MachineKind>,
    pub(crate) cpu: Option<Spanned<CpuModel>>,
    pub(crate) cpus: Option<Cpus>,
    pub(crate) memory_mib: Option<MemoryMib>,
}

/// Boot parameters, and the machine that they need.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct BootRow {
    pub(crate) name: Option<Spanned<Name>>,
    #[serde(default)]
    pub(crate) append: Parameters,
    #[serde(rename = "type")]
    pub(crate) kind: Option<MachineKind>,
    pub(crate) cpu: Option<Spanned<CpuModel>>,
    pub(crate) cpus: Option<Cpus>,
    pub(crate) memory_mib: Option<MemoryMib>,
    pub(crate) kernels: Option<List<String>>,
}

/// Kernel settings, written in that order, and services that run beside the workload.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct SettingRow {
    pub(crate) name: Option<Spanned<Name>>,
    #[serde(default)]
    pub(crate) write: Pairs<SettingPath, SettingValue>,
    #[serde(default)]
    pub(crate) service: Vec<ServiceRow>,
    pub(crate) kernels: Option<List<String>>,
    pub(crate) boots: Option<List<String>>,
}

/// The background load, and the measurement.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct WorkloadRow {
    pub(crate) name: Spanned<Name>,
    pub(crate) noise: Option<NoiseRow>,
    pub(crate) ticks: Option<TicksRow>,
    pub(crate) calls: Option<CallsRow>,
    pub(crate) nohz: Option<NohzRow>,
    pub(crate) slices: Option<SlicesRow>,
    pub(crate) latency: Option<LatencyRow>,
    pub(crate) program: Option<ProgramRow>,
    pub(crate) trace: Option<Spanned<TraceWord>>,
    pub(crate) boots: Option<List<String>>,
    #[serde(default)]
    pub(crate) background: Vec<BackgroundRow>,
}

/// OS noise: time that a busy loop loses to interrupts and threads.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct NoiseRow {
    pub(crate) cpu: Spanned<CpuChoice>,
    pub(crate) duration: Length,
    pub(crate) threshold: Option<Spanned<Length>>,
    pub(crate) fifo: Option<Number<1, 99>>,
}

/// Timer interrupts on an idle CPU.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct TicksRow {
    pub(crate) cpu: Spanned<CpuChoice>,
    pub(crate) duration: Length,
}

/// The cost of single system calls.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct CallsRow {
    pub(crate) cpu: Spanned<CpuChoice>,
    pub(crate) calls: List<Call>,
    pub(crate) repeats: CallRepeats,
}

/// Whether the tick of a CPU stops while a thread runs there.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct NohzRow {
    pub(crate) cpu: Spanned<CpuChoice>,
    pub(crate) limit: Length,
    pub(crate) observe: Option<Length>,
    #[serde(default)]
    pub(crate) forced: bool,
    pub(crate) fifo: Option<Number<1, 99>>,
}

/// Time slices of CPU-bound processes, on all of the guest's CPUs.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct SlicesRow {
    pub(crate) spinners: Number<1, 256>,
    pub(crate) getrusage_every: Option<Number<1, 1_000_000>>,
    #[serde(default = "none")]
    pub(crate) sleepers: Number<0, 256>,
    pub(crate) sleep: Option<Length>,
    pub(crate) burst: Option<Length>,
    pub(crate) duration: Length,
    pub(crate) sample: Option<Spanned<Length>>,
    #[serde(default)]
    pub(crate) pinned: bool,
}

/// How late a timer wakes a thread. The interval is best no multiple of a tick, so that expiries
/// occur at all offsets to it.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct LatencyRow {
    pub(crate) cpu: Spanned<CpuChoice>,
    pub(crate) interval: Spanned<Length>,
    pub(crate) duration: Length,
    pub(crate) fifo: Option<Number<1, 99>>,
}

/// Threads that compete with the measurement.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct BackgroundRow {
    pub(crate) cpu: Spanned<CpuChoice>,
    pub(crate) spinners: Number<1, 256>,
}

/// Limits on metrics, on some kernels and in some cells.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct LimitRow {
    pub(crate) kernels: Option<List<String>>,
    pub(crate) cells: Option<List<String>>,
    pub(crate) metrics: Pairs<MetricName, Condition>,
}

/// Stored metrics.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct BaselineRow {
    pub(crate) kernel: Option<Spanned<String>>,
    pub(crate) cell: Spanned<String>,
    pub(crate) tolerance_ppm: Option<Number<0, 1_000_000>>,
    pub(crate) metrics: Pairs<MetricName, BaselineNumber>,
}

/// A stored metric: a number, or a number and a tolerance.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number, or { value = 2650.5, tolerance = 12.5 }"
)]
pub(crate) enum BaselineNumber {
    Plain(f64),
    Within(Within),
}

/// A number and a tolerance, in the metric's unit.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Within {
    pub(crate) value: f64,
    pub(crate) tolerance: f64,
}

/// A row's name; empty if it has none.
pub(crate) fn row_name(name: &Option<Spanned<Name>>) -> &str {
    name.as_ref().map_or("", |name| name.get_ref().as_str())
}

/// Rows' names for a message: `'' (the row without a name), 'nohz=off'`.
pub(crate) fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted = names.map(|name| match name {
        "" => "'' (the row without a name)".to_owned(),
        name => format!("'{name}'"),
    });
    quoted.collect::<Vec<_>>().join(", ")
}

impl WorkloadRow {
    /// Whether it runs with a boot row.
    pub(crate) fn runs_with(&self, boot: &BootRow) -> bool {
        is_among(self.boots.as_ref(), row_name(&boot.name))
    }
}

/// Whether a list contains that; without a list, everything counts.
fn is_among(named: Option<&List<String>>, name: &str) -> bool {
    named.is_none_or(|named| named.iter().any(|one| one.get_ref() == name))
}

impl BootRow {
    /// Whether a kernel of that name is booted with these parameters.
    pub(crate) fn is_for(&self, kernel: &str) -> bool {
        is_among(self.kernels.as_ref(), kernel)
    }
}

impl SettingRow {
    /// Whether a kernel of that name has these settings.
    pub(crate) fn is_for(&self, kernel: &str) -> bool {
        is_among(self.kernels.as_ref(), kernel)
    }

    /// Whether it is combined with a boot row.
    pub(crate) fn goes_with(&self, boot: &BootRow) -> bool {
        is_among(self.boots.as_ref(), row_name(&boot.name))
    }
}
