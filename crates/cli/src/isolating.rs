//! Isolation of CPUs during a measurement or a program: its options, and the CPU that is chosen.

use isolate::{IsolationOptions, Pick, Reason};
use session::IsolationPlan;

use crate::printing::say;

/// Isolation options.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Isolation (root; settings are restored at the end)")]
pub(crate) struct Free {
    /// Keep RT throttling enabled; by default it is disabled during the run.
    #[arg(long)]
    pub(crate) throttled: bool,
    #[command(flatten)]
    pub(crate) kept_off: KeptOff,
}

/// The same for threads that mostly sleep, and so are never throttled.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Isolation (root; settings are restored at the end)")]
pub(crate) struct KeptOff {
    /// Set the affinity of device interrupts to other CPUs.
    #[arg(long)]
    pub(crate) irqs: bool,
    /// Set the affinity of unbound workqueues to other CPUs.
    #[arg(long)]
    pub(crate) workqueues: bool,
    /// Move kernel threads to other CPUs, except for per-CPU threads.
    #[arg(long)]
    pub(crate) kthreads: bool,
    /// Run in an isolated cpuset partition (cgroup v2, Linux 6.1).
    #[arg(long)]
    pub(crate) partition: bool,
    /// Longest exit latency of the idle states that CPUs may enter, in microseconds
    /// (/dev/cpu_dma_latency); 0 allows only the first state, as cyclictest does by default.
    #[arg(long, value_name = "US")]
    pub(crate) dma_latency: Option<u32>,
    #[command(flatten)]
    pub(crate) requirement: Requirement,
}

/// What follows if the CPUs cannot be isolated as requested.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Requirement {
    /// Fail before the start, with exit code 3, if the isolation that was requested is not reached;
    /// by default that is a warning.
    #[arg(long)]
    pub(crate) require: bool,
}

impl KeptOff {
    /// No option set.
    const NONE: Self = Self {
        irqs: false,
        workqueues: false,
        kthreads: false,
        partition: false,
        dma_latency: None,
        requirement: Requirement { require: false },
    };
}

impl From<KeptOff> for Free {
    fn from(kept_off: KeptOff) -> Self {
        Self { throttled: true, kept_off }
    }
}

impl Free {
    /// RT throttling is disabled, and no other setting is changed.
    pub(crate) fn unthrottled(requirement: Requirement) -> Self {
        Self { throttled: false, kept_off: KeptOff { requirement, ..KeptOff::NONE } }
    }

    /// The same for a thread of that priority; an ordinary thread is never throttled.
    pub(crate) fn at(self, fifo: u8) -> Self {
        Self { throttled: self.throttled || fifo == 0, ..self }
    }

    /// What is changed, and whether a change that fails is an error; a session adds the CPUs.
    pub(crate) fn plan(self) -> IsolationPlan {
        let options = IsolationOptions {
            cpus: None,
            unthrottled: !self.throttled,
            irqs: self.kept_off.irqs,
            workqueues: self.kept_off.workqueues,
            kthreads: self.kept_off.kthreads,
            partition: self.kept_off.partition,
            dma_latency_us: self.kept_off.dma_latency,
        };
        IsolationPlan { options, is_required: self.kept_off.requirement.require }
    }
}

/// Reports the CPU and the reason for its choice, unless the user named it.
pub(crate) fn report_choice(pick: &Pick, quiet: bool) {
    if !quiet {
        reason(pick).iter().for_each(say);
    }
}

/// The reason for the choice of this CPU, unless the user named it.
fn reason(pick: &Pick) -> Option<String> {
    if pick.why == Reason::Requested {
        return None;
    }
    let siblings = match pick.siblings.is_empty() {
        true => String::new(),
        false => format!("; CPU {} shares its core: keep it idle", pick.siblings),
    };
    Some(format!("CPU {}: {}{siblings}", pick.cpu, describe(pick.why)))
}

/// The reason for the choice of a CPU, in words.
pub(crate) fn describe(reason: Reason) -> &'static str {
    match reason {
        Reason::Requested => "requested",
        Reason::NohzFull => "its tick stops while a single task runs there (nohz_full)",
        Reason::Isolated => "the scheduler does not balance tasks to it (isolated)",
        Reason::LeastInterrupted => "it had the fewest interrupts since boot",
    }
}
