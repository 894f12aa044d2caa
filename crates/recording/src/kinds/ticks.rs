//! Timer interrupts per CPU: parameters and measured values.

use facts::Unknown;
use serde::{Deserialize, Serialize};
use units::{Cpu, CpuSet, Nanos, Span};

use crate::{Blamed, Source};

/// The parameters of `ticks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicksSpec {
    /// The CPUs.
    pub cpus: CpuSet,
    /// The time between two readings.
    pub interval_ns: Nanos,
    /// The number of intervals; `None`: until interrupted.
    pub count: Option<u64>,
}

/// The measured values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicksSeries {
    /// The intervals, in order.
    pub samples: Vec<TickSample>,
    /// When noisefloor slept in each of them, between two readings of `/proc`, on the clock of the
    /// kernel's events (`CLOCK_MONOTONIC`). Empty in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Span>,
    /// The source of the events; `None` if events were not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What ran on each traced CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy: Vec<CpuBusy>,
    /// The energy that the processors used from the first interval's beginning to the last one's
    /// end; `None` in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<Energy>,
}

/// The energy that the processors used, by RAPL's counters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Energy {
    /// The duration.
    pub span_ns: Nanos,
    /// Each zone, packages before their parts; empty if unknown.
    pub zones: Vec<ZoneEnergy>,
    /// Why it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Unknown>,
}

/// The energy of a zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneEnergy {
    /// The zone: `package-0`, or a part of it: `package-0 core`.
    pub zone: String,
    /// Its energy in microjoules.
    pub energy_uj: u64,
}

/// What ran on one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuBusy {
    /// The CPU.
    pub cpu: Cpu,
    /// When an interrupt or a thread ran there during the waits, in order, from the beginning of
    /// the first wait. For the rest of the waits the CPU was idle.
    pub spans: Vec<Span>,
    /// The causes: these spans take the place of gaps.
    pub blamed: Blamed,
}

/// One interval between two readings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickSample {
    /// From the recording's beginning to the interval's.
    pub start_ns: Nanos,
    /// The interval's actual length.
    pub span_ns: Nanos,
    /// The counts of each CPU, in rising order.
    pub cpus: Vec<CpuTicks>,
}

/// The counts of one CPU in one interval. `None` is "not known": the CPU was offline at one of
/// the readings, or its counter was reset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTicks {
    /// The CPU.
    pub cpu: Cpu,
    /// Timer interrupts.
    pub timer: Option<u64>,
    /// Interrupts of all kinds, the timer's included.
    pub interrupts: Option<u64>,
    /// Time not idle, as `/proc/stat` accounts it (steps of 10 ms).
    pub busy_ns: Option<Nanos>,
    /// All time `/proc/stat` accounts for, idle or not.
    pub accounted_ns: Option<Nanos>,
}
