//! On which CPU a task runs when it is new, and when it wakes up (`select_task_rq_fair` in
//! `kernel/sched/fair.c`).
//!
//! There is one domain of CPUs that share their cache, where an idle one is preferred. A timer wakes a task up
//! on the CPU where it slept, so that the loads of two CPUs are not compared (`wake_affine`).

use units::{Cpu, CpuSet};

use crate::scheduler::cpu::CpuState;
use crate::scheduler::task::Task;

/// The CPU of a new task: of those with the fewest tasks, the first.
pub(crate) fn of_new(cpus: &[CpuState], allowed: &CpuSet) -> usize {
    let allowed = (0..cpus.len()).filter(|cpu| allows(allowed, *cpu));
    allowed.min_by_key(|cpu| (cpus[*cpu].len(), *cpu)).unwrap_or(0)
}

/// The CPU on which a task wakes up: that on which it slept if this is idle, then an idle one, then
/// that on which it slept.
#[inline]
pub(crate) fn of_woken(cpus: &[CpuState], task: &Task, waker: usize) -> usize {
    match cpus.len() {
        1 => 0,
        _ => of_several(cpus, task, waker),
    }
}

fn of_several(cpus: &[CpuState], task: &Task, waker: usize) -> usize {
    let is_idle = |cpu: &usize| cpus[*cpu].len() == 0;
    let may = |cpu: &usize| allows(&task.spec.cpus, *cpu);
    let mut near = [task.cpu, waker].into_iter().filter(may);
    let first = near.clone().next();
    let idle = near.find(is_idle);
    idle.or_else(|| (0..cpus.len()).filter(may).find(is_idle)).or(first).unwrap_or(0)
}

/// Whether a task with these CPUs may run on that one.
pub(crate) fn allows(cpus: &CpuSet, cpu: usize) -> bool {
    u32::try_from(cpu).is_ok_and(|cpu| cpus.contains(Cpu::new(cpu)))
}
