//! How the weight of a group is divided among the CPUs that run tasks of it.
//!
//! Source: `calc_group_shares` and `update_tg_load_avg` in `kernel/sched/fair.c` of 6.1, since 2.6.38 in this
//! form; `tg_shares_up` in `kernel/sched.c` of 2.6.32, which kernels did from time to time, and here is done at
//! once.

use crate::scheduler::engine::Engine;
use crate::scheduler::observer::Observer;
use crate::scheduler::weight::NICE_0;

/// The least weight of a group on a CPU (`MIN_SHARES`).
pub(crate) const LEAST: u64 = 2;
/// 2.6: smaller changes are not made (`sysctl_sched_shares_thresh`).
const THRESHOLD: u64 = 4;

/// A group, on all CPUs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shares {
    /// Its weight, at least [`LEAST`].
    pub(crate) weight: u64,
    /// Its load (`tg->load_avg`).
    pub(crate) load: u64,
}

impl<O: Observer> Engine<O> {
    /// Gives each group its part of its weight on a CPU where tasks came, went or ran.
    #[inline]
    pub(crate) fn divide_groups(&mut self, cpu: usize, now: u64) {
        if self.cpus.len() > 1 {
            self.divide_each_group(cpu, now);
        }
    }

    fn divide_each_group(&mut self, cpu: usize, now: u64) {
        for group in 0..self.groups.len() {
            let Shares { weight: whole, load } = &mut self.groups[group];
            let whole = *whole;
            let ([own, all], threshold) = match self.balances_by_load {
                true => (self.cpus[cpu].fair.group_load(group, load, now), 0),
                false => (self.weights_of(group, cpu), THRESHOLD),
            };
            let weight = (whole * own / all.max(1)).clamp(LEAST, whole);
            self.cpus[cpu].fair.reweight(group, weight, threshold, now);
        }
    }

    /// 2.6: the weight of what is runnable on a CPU, or is taken to be if nothing is, and that on all CPUs.
    fn weights_of(&self, group: usize, cpu: usize) -> [u64; 2] {
        let weight = |cpu: usize| match self.cpus[cpu].fair.weight_of(group) {
            0 => NICE_0,
            weight => weight,
        };
        let all: u64 = (0..self.cpus.len()).map(weight).sum();
        [weight(cpu), all + 1]
    }
}
