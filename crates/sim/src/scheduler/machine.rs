//! The machine: its CPUs, its tick, and what takes time from its tasks.

use units::{Cpu, CpuSet, Hz, Nanos};

use crate::scheduler::Steal;
use crate::scheduler::costs::Costs;
use crate::scheduler::rules::Rules;
use crate::scheduler::shares::LEAST;
use crate::scheduler::threads::KernelThread;
use crate::scheduler::weight::NICE_0;

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The number of CPUs.
    pub cpus: u32,
    /// `CONFIG_HZ`.
    pub hz: Hz,
    /// When the first tick is, after the first task was forked.
    pub tick_phase_ns: Nanos,
    /// A tick's interrupt begins up to that much later than its time, at random.
    pub tick_jitter_ns: Nanos,
    /// Whether the tick stops on an idle CPU.
    pub stops_idle_tick: bool,
    /// The CPUs on which it also stops while a single task runs (`nohz_full=`).
    pub nohz_full: CpuSet,
    /// How much later than requested a sleep may end (`PR_SET_TIMERSLACK`).
    pub timer_slack_ns: Nanos,
    /// The time of one iteration of a spinner's loop.
    pub pass_ns: Nanos,
    /// Time that a hypervisor takes from each CPU.
    pub steal: Option<Steal>,
    /// The weight of each group of tasks, as `cpu.weight` of cgroups has it.
    pub groups: Vec<u32>,
    /// Kernel threads that run at times.
    pub threads: Vec<KernelThread>,
    /// The time of the kernel's own work.
    pub costs: Costs,
}

impl Machine {
    /// One with these CPUs and this tick, whose kernel takes no time.
    pub fn new(cpus: u32, hz: Hz) -> Self {
        Self {
            cpus,
            hz,
            tick_phase_ns: Nanos::ZERO,
            tick_jitter_ns: Nanos::ZERO,
            stops_idle_tick: true,
            nohz_full: CpuSet::default(),
            groups: Vec::new(),
            timer_slack_ns: Nanos::from_micros(50),
            pass_ns: Nanos::from_nanos(3),
            steal: None,
            threads: Vec::new(),
            costs: Costs::default(),
        }
    }

    /// One whose kernel's own work takes the time, and whose kernel threads run, that were measured in
    /// exact guests with the kernel of these rules.
    pub fn measured(rules: &Rules, cpus: u32, hz: Hz) -> Self {
        let costs = Costs::measured(rules);
        Self {
            tick_phase_ns: hz.period().saturating_sub(costs.fork_ns[0]),
            threads: KernelThread::measured(rules.version()),
            costs,
            ..Self::new(cpus, hz)
        }
    }

    /// The weight of each group on one of its CPUs, where a task of nice 0 has 1024.
    pub(crate) fn group_weights(&self) -> impl Iterator<Item = u64> {
        // `cpu_weight_write_u64`.
        let shares = |weight: u64| (weight * NICE_0 + 50) / 100;
        self.groups.iter().map(move |weight| shares((*weight).into()).max(LEAST))
    }

    /// All of its CPUs.
    pub fn all_cpus(&self) -> CpuSet {
        (0..self.cpus).map(Cpu::new).collect()
    }
}
