//! The parts of a finding. The serialized form of [`FindingRule`] is part of the JSON contract.

use facts::Inert;
use serde::Serialize;
use summary::{CulpritSummary, LineSummary, TickVerdict};
use units::{Cpu, CpuSet, Hz, Nanos, PerSecond, Ppm};

use crate::advice::AdviceItem;
use crate::rule::Change;

/// One finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The rule, with the numbers it is based on.
    pub rule: FindingRule,
    /// The advice about it that gains most; `None` if there is none.
    pub advice: Option<AdviceItem>,
    /// The next command to run.
    pub next: String,
}

/// A rule, with the numbers it is based on. `code` in JSON is the rule's stable name.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "code", content = "numbers", rename_all = "snake_case")]
pub enum FindingRule {
    /// The tick: its rate on idle and busy CPUs.
    Tick {
        /// The rate at which the tick comes if it is not stopped.
        hz: Option<Hz>,
        /// The rates while noisefloor slept.
        idle: Vec<TickVerdict>,
        /// The rates while a busy loop ran; empty if it did not.
        busy: Vec<TickVerdict>,
    },
    /// Boot parameters without effect.
    InertParameters {
        /// The parameters; at least one.
        parameters: Vec<Inert>,
    },
    /// The CPU that lost the most time; null if none was measured.
    Loss(Option<Loss>),
    /// The most frequent interrupt other than the timer's.
    Interrupts {
        /// The CPU.
        cpu: Cpu,
        /// The interrupt.
        interrupt: LineSummary,
    },
    /// The kernel runs in a guest.
    Hypervisor {
        /// The hypervisor's name.
        name: String,
        /// Whether it reports steal time.
        steal_clock: bool,
        /// The CPU with the most steal time; null if that was not read.
        cpu: Option<Cpu>,
        /// Its steal time, from the best clock: the upper bound.
        steal_ns: Option<Nanos>,
        /// The lower bound.
        steal_min_ns: Option<Nanos>,
    },
    /// CPUs are isolated.
    IsolatedCpus {
        /// The isolated or `nohz_full` CPUs.
        cpus: CpuSet,
        /// The one of them that lost the most; null if none was measured.
        worst: Option<CpuLoss>,
        /// The one of all others that lost the most.
        worst_other: Option<CpuLoss>,
    },
    /// No CPU is isolated.
    NoIsolatedCpus {
        /// The CPUs that are online.
        online: CpuSet,
    },
    /// Facts that only root can read.
    NeedsRoot {
        /// Their number.
        facts: usize,
    },
}

/// The time that one CPU lost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CpuLoss {
    /// The CPU.
    pub cpu: Cpu,
    /// The share of its time; null for a run of no length.
    pub noise_ppm: Option<Ppm>,
}

/// The time that the worst CPU lost, and its causes as far as they are known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loss {
    /// The number of measured CPUs.
    pub cpus: usize,
    /// The CPU that lost the most.
    pub cpu: Cpu,
    /// The time that the loop ran.
    pub elapsed_ns: Nanos,
    /// The number of gaps.
    pub gaps: u64,
    /// Gaps per second; null for a run of no length.
    pub gaps_hz: Option<PerSecond>,
    /// The sum of the gaps.
    pub noise_ns: Nanos,
    /// The same as a share of the run; null for a run of no length.
    pub noise_ppm: Option<Ppm>,
    /// The median gap; null without a gap.
    pub gap_ns_p50: Option<Nanos>,
    /// The longest gap; null without a gap.
    pub gap_ns_max: Option<Nanos>,
    /// The three largest sources of noise; empty if none is known.
    pub culprits: Vec<CulpritSummary>,
    /// The unexplained share of the noise; null without noise.
    pub unexplained_ppm: Option<Ppm>,
    /// The hypervisor, if it may have caused a material part of the unexplained noise.
    pub hypervisor: Option<String>,
    /// Timer interrupts per second; null if they could not be read.
    pub timer_hz: Option<PerSecond>,
    /// The share of the gaps that timer interrupts probably caused; null if unknown.
    pub timer_share: Option<TimerShare>,
    /// How often other programs preempted the loop.
    pub preempted: u64,
    /// The time that they ran; null if the kernel does not count it.
    pub waited_ns: Option<Nanos>,
    /// Whether that is at least half of the noise.
    pub mostly_programs: bool,
}

/// The number of timer interrupts compared with the number of gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerShare {
    /// There were more of them than gaps.
    MoreThanGaps,
    /// About as many.
    Most,
    /// About half as many.
    Half,
    /// Fewer.
    Few,
}

/// When something can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// At run time.
    Now,
    /// On the kernel's command line.
    Boot,
    /// In the kernel's configuration.
    Build,
}

impl Change {
    /// When it can be made.
    pub fn when(&self) -> When {
        match self {
            Self::Set { .. } | Self::Action { .. } => When::Now,
            Self::Boot { .. } | Self::Unboot { .. } => When::Boot,
            Self::Build { .. } => When::Build,
        }
    }
}
