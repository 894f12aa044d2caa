//! Timer interrupts per CPU: what is asked and what is seen.

use serde::{Deserialize, Serialize};
use units::{Cpu, CpuSet, Nanos, Span};

use crate::{Blamed, Source};

/// What `ticks` is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicksSpec {
    /// The CPUs to count on.
    pub cpus: CpuSet,
    /// The time between two readings.
    pub interval_ns: Nanos,
    /// How many intervals; `None`: until interrupted.
    pub count: Option<u64>,
}

/// What was seen, interval by interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicksSeries {
    /// The intervals, in order.
    pub samples: Vec<TickSample>,
    /// When this tool waited in each of them, on the clock of the kernel's events
    /// (`CLOCK_MONOTONIC`): between two readings of `/proc`. Empty in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Span>,
    /// Where the events are from of what ran meanwhile; `None` where none were watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What ran on each CPU that was watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy: Vec<CpuBusy>,
}

/// What ran on one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuBusy {
    /// The CPU.
    pub cpu: Cpu,
    /// When something ran there during the waits, an interrupt or a thread: counted from the
    /// first wait's beginning, in their order. The rest of the waits it was idle.
    pub spans: Vec<Span>,
    /// What it was: these spans take the place of gaps.
    pub blamed: Blamed,
}

/// One interval between two readings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickSample {
    /// From the recording's beginning to the interval's.
    pub start_ns: Nanos,
    /// The interval's true length.
    pub span_ns: Nanos,
    /// What was counted, CPU by CPU, in rising order.
    pub cpus: Vec<CpuTicks>,
}

/// What was counted on one CPU in one interval. `None` is "not known": the CPU was not
/// there at both readings, or its counter was set back.
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
