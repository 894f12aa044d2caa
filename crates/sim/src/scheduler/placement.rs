//! On which CPU a task runs: when it is new, when it wakes up, when a CPU is idle, and from time to time
//! (`select_task_rq_fair`, `sched_balance_newidle`, `sched_balance_rq` in `kernel/sched/fair.c`).
//!
//! By numbers of tasks and their weights, not by load averages; there is one domain of CPUs that share
//! their cache.

use units::{Cpu, CpuSet};

use crate::scheduler::cpu::CpuState;
use crate::scheduler::engine::Engine;
use crate::scheduler::fair::Arrival;
use crate::scheduler::observer::Observer;
use crate::scheduler::task::Task;

/// A busy CPU tries to balance once in that many ticks for each CPU.
const BALANCE_TICKS: u32 = 8;

/// The CPU of a new task: of those with the fewest tasks, the first.
pub(crate) fn of_new(cpus: &[CpuState], allowed: &CpuSet) -> usize {
    let allowed = (0..cpus.len()).filter(|cpu| allows(allowed, *cpu));
    allowed.min_by_key(|cpu| (cpus[*cpu].len(), *cpu)).unwrap_or(0)
}

/// The CPU on which a task wakes up: that on which it slept if this is idle, then an idle one, then
/// that on which it slept.
pub(crate) fn of_woken(cpus: &[CpuState], task: &Task, waker: usize) -> usize {
    if cpus.len() == 1 {
        return 0;
    }
    let is_idle = |cpu: &usize| cpus[*cpu].len() == 0;
    let may = |cpu: &usize| allows(&task.spec.cpus, *cpu);
    let mut near = [task.cpu, waker].into_iter().filter(may);
    let first = near.clone().next();
    let idle = near.find(is_idle);
    idle.or_else(|| (0..cpus.len()).filter(may).find(is_idle)).or(first).unwrap_or(0)
}

fn allows(cpus: &CpuSet, cpu: usize) -> bool {
    u32::try_from(cpu).is_ok_and(|cpu| cpus.contains(Cpu::new(cpu)))
}

impl<O: Observer> Engine<O> {
    /// At a tick: pulls a task from the busiest CPU, if that makes them more equal.
    pub(crate) fn balance(&mut self, cpu: usize, now: u64) {
        let cpus = u32::try_from(self.cpus.len()).unwrap_or(u32::MAX);
        let state = &mut self.cpus[cpu];
        state.unbalanced_ticks += 1;
        if cpus > 1 && state.unbalanced_ticks >= BALANCE_TICKS * cpus {
            state.unbalanced_ticks = 0;
            self.pull(cpu, now);
        }
    }

    /// Pulls a waiting task from the busiest CPU; returns whether there was one.
    pub(crate) fn pull(&mut self, cpu: usize, now: u64) -> bool {
        let len = |cpu: usize| self.cpus[cpu].fair.len();
        let others = (0..self.cpus.len()).filter(|other| *other != cpu);
        let busiest = others.max_by_key(|other| (len(*other), std::cmp::Reverse(*other)));
        let Some(busiest) = busiest.filter(|other| len(*other) > len(cpu) + 1) else {
            return false;
        };
        let may = |task: usize| allows(&self.tasks[task].spec.cpus, cpu);
        let waiting = self.cpus[busiest].fair.waiting();
        // The last one would wait for the longest time.
        let last = waiting.filter(|entity| !entity.delayed && may(entity.task)).last();
        let Some(task) = last.map(|entity| entity.task) else { return false };
        let Some(entity) = self.cpus[busiest].fair.leave(task, now) else {
            return false;
        };
        self.tasks[task].cpu = cpu;
        self.cpus[cpu].fair.enqueue(entity, Arrival::Moved, now);
        true
    }
}
