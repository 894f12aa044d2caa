//! How the weight of a group is divided among the CPUs that run tasks of it.
//!
//! Source: `calc_group_shares` and `update_tg_load_avg` in `kernel/sched/fair.c` of 6.1, since 2.6.38 in this
//! form; `tg_shares_up` in `kernel/sched.c` of 2.6.32, which kernels did from time to time, and here is done at
//! once.

use crate::scheduler::engine::Engine;
use crate::scheduler::observer::Observer;
use crate::scheduler::tree::GroupLoad;
use crate::scheduler::weight::NICE_0;

/// The least weight of a group on a CPU (`MIN_SHARES`).
const LEAST: u64 = 2;
/// 2.6: smaller changes are not made (`sysctl_sched_shares_thresh`).
const THRESHOLD: u64 = 4;

/// A group, on all CPUs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shares {
    /// Its weight.
    pub(crate) weight: u64,
    /// Its load (`tg->load_avg`).
    pub(crate) load: u64,
}

impl<O: Observer> Engine<O> {
    /// Gives each group its part of its weight on a CPU where tasks came, went or ran.
    pub(crate) fn divide_groups(&mut self, cpu: usize, now: u64) {
        if self.cpus.len() == 1 {
            return;
        }
        for group in 0..self.groups.len() {
            let all = &mut self.groups[group].load;
            let own = self.cpus[cpu].fair.group_load(group, all, now);
            let [before, _] = self.cpus[cpu].fair.group_weights(group);
            let weight = match self.balances_by_load {
                true => by_load(self.groups[group], own),
                false => self.by_weight(group, own.weight),
            };
            let least = if self.balances_by_load { 0 } else { THRESHOLD };
            if own.weight > 0 && weight.abs_diff(before) > least {
                self.cpus[cpu].fair.reweight(group, weight, now);
            }
        }
    }

    /// By the weights of what is runnable on each CPU, or is taken to be if nothing is.
    fn by_weight(&self, group: usize, own: u64) -> u64 {
        let weight = |weight: u64| if weight > 0 { weight } else { NICE_0 };
        let of = |cpu: usize| weight(self.cpus[cpu].fair.group_weights(group)[1]);
        let all: u64 = (0..self.cpus.len()).map(of).sum();
        let whole = self.groups[group].weight;
        (whole * weight(own) / (all + 1)).clamp(LEAST, whole.max(LEAST))
    }
}

fn by_load(group: Shares, own: GroupLoad) -> u64 {
    let load = own.weight.max(own.load);
    let all = group.load.saturating_sub(own.contributed) + load;
    let whole = group.weight;
    (whole * load / all.max(1)).clamp(LEAST, whole.max(LEAST))
}
