//! A plan for isolated CPUs: which ones, why not the others, and all that has to be set for them.
//!
//! The CPUs are chosen by topology (`choice`), the settings by the kernel's version and configuration (`lines`,
//! `run_time`); the rules that these name have their prices and sources. Nothing is written here. Which of the
//! host's CPUs those of a guest are, and how fast each core is, is unknown.

mod candidates;
mod choice;
mod kernel;
mod lines;
mod run_time;

use facts::{BoundIrq, Facts, Near};
use serde::Serialize;
use units::CpuSet;

use crate::isolation_plan::candidates::Candidates;
pub use crate::isolation_plan::choice::{Choice, Rejected, WhyNot};
use crate::isolation_plan::kernel::Kernel;
pub use crate::isolation_plan::lines::{NotPossible, PlanLine, State, Subject, When};

/// A device that the CPUs are to be near to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NearDevice {
    /// Its name.
    pub name: String,
    /// The number of its NUMA node; null if the machine does not tell.
    pub node: Option<u32>,
    /// The CPUs of that node.
    pub cpus: CpuSet,
}

impl NearDevice {
    /// A device with its place.
    pub fn new(name: impl Into<String>, place: Option<Near>) -> Self {
        let name = name.into();
        match place {
            Some(Near { node, cpus }) => Self { name, node: Some(node), cpus },
            None => Self { name, node: None, cpus: CpuSet::empty() },
        }
    }
}

/// Why no CPU can be isolated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Impossible {
    /// The online CPUs are unknown.
    UnknownCpus,
    /// There is one CPU.
    OneCpu,
    /// All CPUs are threads of one core.
    OneCore,
    /// There are too few CPUs.
    TooFew {
        /// The number of those that can be isolated.
        most: usize,
    },
}

/// A plan for a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IsolationPlan {
    /// The number of CPUs that are to be isolated.
    pub wanted: usize,
    /// The device that they are to be near to.
    pub near: Option<NearDevice>,
    /// The online CPUs.
    pub online: CpuSet,
    /// The CPUs; null if none can be isolated.
    pub choice: Option<Choice>,
    /// Why none can be isolated.
    pub impossible: Option<Impossible>,
    /// Whether the noise of all candidates was measured.
    pub measured: bool,
    /// The boot parameters.
    pub boot: Vec<PlanLine>,
    /// What is set at run time.
    pub run_time: Vec<PlanLine>,
    /// What this machine cannot do.
    pub left_out: Vec<NotPossible>,
    /// The interrupts that stay on the CPUs.
    pub bound: Vec<BoundIrq>,
    /// The command that isolates them for one program only, and restores everything.
    pub program: Option<String>,
    /// The commands that prove the isolation.
    pub proof: Vec<String>,
}

impl IsolationPlan {
    /// The plan that isolates as many CPUs of a machine, of which the noise may have been measured.
    pub fn of(
        facts: &Facts,
        measured: Option<&summary::Summary>,
        wanted: usize,
        near: Option<NearDevice>,
    ) -> Self {
        let candidates = Candidates::of(facts, measured);
        let preferred = near.as_ref().map(|near| near.cpus.clone()).unwrap_or_default();
        let choice = candidates
            .as_ref()
            .map_err(|why| *why)
            .and_then(|all| Choice::of(all, wanted, &preferred));
        let plan = Self {
            wanted,
            near,
            online: facts.cpus.online.get().cloned().unwrap_or_default(),
            impossible: choice.as_ref().err().copied(),
            choice: choice.ok(),
            measured: candidates.is_ok_and(|all| all.is_measured()),
            boot: Vec::new(),
            run_time: Vec::new(),
            left_out: Vec::new(),
            bound: Vec::new(),
            program: None,
            proof: Vec::new(),
        };
        plan.with_lines(facts)
    }

    /// With what has to be set for the chosen CPUs.
    fn with_lines(self, facts: &Facts) -> Self {
        let Some(choice) = self.choice.clone() else { return self };
        let kernel = Kernel::new(facts, choice.isolated(), choice.housekeeping.clone());
        let (boot, mut left_out) = kernel.boot();
        let (run_time, more) = kernel.run_time();
        left_out.extend(more);
        let all = facts.irq.bound.get().into_iter().flatten();
        let stays = |irq: &&BoundIrq| !irq.cpus.and(&kernel.cpus).is_empty();
        Self {
            bound: all.filter(stays).cloned().collect(),
            program: kernel.program(&choice.cpus),
            proof: kernel.proof(&choice.cpus),
            boot,
            run_time,
            left_out,
            ..self
        }
    }
}

#[cfg(test)]
mod tests;
