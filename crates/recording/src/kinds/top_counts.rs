//! What a CPU did since the beginning of a watch, in counts that only grow. They are served by the exporter,
//! and are no part of a recording.

use units::{Cpu, Nanos};

/// The counts of a CPU, which only grow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopCounts {
    /// The CPU.
    pub cpu: Cpu,
    /// Context switches away from threads that went to sleep, or ended.
    pub slept: u64,
    /// Those away from threads that could have continued.
    pub preempted: u64,
    /// Those away from the idle task.
    pub idle: u64,
    /// Interrupts and softirqs without a thread in between.
    pub interruptions: LengthCounts,
    /// How long the threads that got the CPU had waited for it, on this CPU; `None` if the kernel does not
    /// say.
    pub waits: Option<LengthCounts>,
}

/// The number of each length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LengthCounts {
    /// The number of those up to each bound, and above the one before it; bounds ascend.
    pub up_to: Vec<(Nanos, u64)>,
    /// The number of longer ones.
    pub above: u64,
    /// The sum of all.
    pub ns: Nanos,
}
