//! Which tasks go to which other CPU: from time to time, and when a CPU becomes idle.
//!
//! Since 5.10 by load averages and utilization (`sched_balance_rq`, `find_busiest_group`, `calculate_imbalance`,
//! `detach_tasks` in `kernel/sched/fair.c` of 6.1, where the first is `load_balance`); before, here, by numbers of
//! tasks. There is one domain of CPUs that share their cache, each a group of its own.
//!
//! Not modelled: pushing the running task away (`active_load_balance_cpu_stop`), time that interrupts and
//! real-time tasks take from a CPU's capacity, and the costs by which a CPU that becomes idle does not look
//! around.

use std::cmp::Reverse;

use crate::scheduler::engine::Engine;
use crate::scheduler::fair::Arrival;
use crate::scheduler::load::CAPACITY;
use crate::scheduler::observer::Observer;
use crate::scheduler::placement::allows;
use crate::scheduler::timers::{Action, Timer};

/// By numbers: a busy CPU tries to balance once in that many ticks for each CPU.
const BALANCE_TICKS: u32 = 8;
/// A busy CPU balances so many times less often (`busy_factor`).
const BUSY_FACTOR: u64 = 16;
/// In percent: what is so much larger is not balanced (`imbalance_pct`).
const IMBALANCE_PERCENT: u64 = 117;
/// After so many failures, tasks that ran just before are moved, too (`cache_nice_tries`).
const NICE_TRIES: u32 = 1;
/// How long ago that is (`sysctl_sched_migration_cost`).
const MIGRATION_COST: u64 = 500_000;
/// So many tasks are looked at (`sysctl_sched_nr_migrate`).
const TASKS_MAX: usize = 32;
/// The interval of a CPU none of whose neighbours' tasks may come, in ms (`MAX_PINNED_INTERVAL`).
const PINNED_INTERVAL: u64 = 512;

/// When a CPU balances (`struct sched_domain`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Balancing {
    /// By numbers: ticks since the last attempt.
    unbalanced_ticks: u32,
    /// The interval of an idle CPU, in ms.
    interval_ms: u64,
    /// The tick of the last attempt.
    last: u64,
    /// Attempts since then that moved nothing.
    failed: u32,
}

/// What a CPU does that balances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Runs,
    Idles,
    /// It has nothing left to run.
    BecomesIdle,
}

/// How busy a CPU is; in the kernel's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Busy {
    Spare,
    Fully,
    Overloaded,
}

/// A CPU, as others see it.
#[derive(Debug, Clone, Copy)]
struct Group {
    cpu: usize,
    busy: Busy,
    /// The number of runnable tasks, and of the ordinary ones.
    tasks: usize,
    ordinary: usize,
    load: u64,
}

/// What is to be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Imbalance {
    Load(u64),
    Tasks(usize),
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Balanced,
    /// No task may run here.
    Pinned,
    Failed,
    Moved,
}

impl<O: Observer> Engine<O> {
    /// At the tick of a CPU that runs a task: balances it, and an idle one, if it is time.
    pub(crate) fn balance(&mut self, cpu: usize, now: u64) {
        if self.cpus.len() == 1 {
            return;
        }
        if !self.balances_by_load {
            return self.balance_by_numbers(cpu, now);
        }
        self.balance_if_due(cpu, Does::Runs, now);
        let is_idle = |other: &usize| self.cpus[*other].len() == 0;
        let idle = (0..self.cpus.len()).find(is_idle);
        if let Some(idle) = idle.filter(|_| self.cpus[cpu].len() > 1) {
            self.balance_if_due(idle, Does::Idles, now);
        }
    }

    /// A CPU has nothing left to run; returns whether it has now.
    pub(crate) fn pull(&mut self, cpu: usize, now: u64) -> bool {
        match self.balances_by_load {
            _ if self.cpus.len() == 1 => false,
            true => self.attempt(cpu, Does::BecomesIdle, now) == Ending::Moved,
            false => self.pull_one(cpu, now),
        }
    }

    /// At a tick: takes one task, after a number of ticks without.
    fn balance_by_numbers(&mut self, cpu: usize, now: u64) {
        let cpus = u32::try_from(self.cpus.len()).unwrap_or(u32::MAX);
        let balancing = &mut self.cpus[cpu].balancing;
        balancing.unbalanced_ticks += 1;
        if balancing.unbalanced_ticks >= BALANCE_TICKS * cpus {
            balancing.unbalanced_ticks = 0;
            self.pull_one(cpu, now);
        }
    }

    /// By numbers: takes a waiting task from the CPU with the most, if that makes them more equal.
    fn pull_one(&mut self, cpu: usize, now: u64) -> bool {
        let len = |cpu: usize| self.cpus[cpu].fair.len();
        let others = (0..self.cpus.len()).filter(|other| *other != cpu);
        let busiest = others.max_by_key(|other| (len(*other), Reverse(*other)));
        let Some(busiest) = busiest.filter(|other| len(*other) > len(cpu) + 1) else {
            return false;
        };
        let may = |task: usize| allows(&self.tasks[task].spec.cpus, cpu);
        let waiting = self.cpus[busiest].fair.waiting();
        // The last one would wait for the longest time.
        let last = waiting.filter(|entity| !entity.delayed && may(entity.task)).last();
        let task = last.map(|entity| entity.task);
        task.is_some_and(|task| self.migrate(task, busiest, cpu, now))
    }

    /// Balances a CPU if its interval is over (`sched_balance_domains`).
    fn balance_if_due(&mut self, cpu: usize, does: Does, now: u64) {
        let hz = u64::from(self.machine.hz.get());
        let cpus = self.cpus.len() as u64;
        let tick = now / self.period;
        let balancing = &mut self.cpus[cpu].balancing;
        balancing.interval_ms = balancing.interval_ms.max(cpus);
        let in_ticks = |ms: u64| (ms * hz).div_ceil(1000);
        // One less, so that CPUs do not balance at the same time (`get_sd_balance_interval`).
        let ticks = match does {
            Does::Runs => in_ticks(balancing.interval_ms * BUSY_FACTOR) - 1,
            Does::Idles | Does::BecomesIdle => in_ticks(balancing.interval_ms),
        };
        if tick < balancing.last + ticks.clamp(1, (hz * cpus / 10).max(1)) {
            return;
        }
        balancing.last = tick;
        let ending = self.attempt(cpu, does, now);
        let balancing = &mut self.cpus[cpu].balancing;
        let Balancing { failed, interval_ms, .. } = *balancing;
        let longer = |most| interval_ms * if interval_ms < most { 2 } else { 1 };
        (balancing.failed, balancing.interval_ms) = match ending {
            Ending::Failed => (failed + 1, cpus),
            Ending::Moved => (0, cpus),
            Ending::Balanced => (0, longer(2 * cpus)),
            Ending::Pinned => (0, longer(PINNED_INTERVAL)),
        };
        if ending == Ending::Moved && does == Does::Idles {
            let timer = Timer { from: now, by: now, action: Action::Reschedule };
            self.cpus[cpu].timers.set(timer);
        }
    }

    /// Moves tasks to a CPU from the busiest one (`sched_balance_rq`).
    fn attempt(&mut self, cpu: usize, does: Does, now: u64) -> Ending {
        let count = self.cpus.len();
        let mut groups: Vec<Group> =
            (0..count).map(|offset| self.group((cpu + offset) % count, now)).collect();
        let local = groups.remove(0);
        let mut ending = Ending::Balanced;
        while let Some((busiest, imbalance)) = imbalance(local, &groups, does) {
            ending = match busiest.tasks > 1 {
                true => self.move_tasks(busiest.cpu, cpu, imbalance, does, now),
                false => Ending::Failed,
            };
            if ending != Ending::Pinned {
                break;
            }
            groups.retain(|group| group.cpu != busiest.cpu);
        }
        ending
    }

    fn group(&mut self, cpu: usize, now: u64) -> Group {
        let state = &mut self.cpus[cpu];
        let averages = state.fair.load(now);
        let tasks = state.len();
        let is_above = |value: u64| value * IMBALANCE_PERCENT > CAPACITY * 100;
        let is_queued = averages.runnable * 100 > CAPACITY * IMBALANCE_PERCENT;
        let busy = match tasks > 1 && (is_above(averages.utilization) || is_queued) {
            true => Busy::Overloaded,
            false if tasks < 1 => Busy::Spare,
            false if !is_queued && !is_above(averages.utilization) => Busy::Spare,
            false => Busy::Fully,
        };
        Group { cpu, busy, tasks, ordinary: state.fair.len(), load: averages.load }
    }

    /// Moves waiting tasks that did not run for the longest time (`detach_tasks`, `can_migrate_task`).
    fn move_tasks(
        &mut self,
        from: usize,
        to: usize,
        imbalance: Imbalance,
        does: Does,
        now: u64,
    ) -> Ending {
        let failed = self.cpus[to].balancing.failed;
        let mut left = imbalance;
        let mut ending = Ending::Pinned;
        for task in self.by_last_run(from) {
            if does != Does::Runs && self.cpus[from].len() <= 1 {
                break;
            }
            if !allows(&self.tasks[task].spec.cpus, to) {
                continue;
            }
            if ending == Ending::Pinned {
                ending = Ending::Failed;
            }
            let state = &self.cpus[from].fair;
            let Some(entity) = state.find(task) else { continue };
            let is_hot = now.saturating_sub(entity.ran_until) < MIGRATION_COST;
            let load = state.load_of(entity).max(1);
            let is_refused = (is_hot && failed <= NICE_TRIES)
                || match left {
                    Imbalance::Load(left) => load >> failed.min(63) > left,
                    Imbalance::Tasks(_) => false,
                };
            if is_refused {
                self.cpus[from].fair.refuse(task, now);
                continue;
            }
            if !self.migrate(task, from, to, now) {
                continue;
            }
            ending = Ending::Moved;
            left = match left {
                Imbalance::Load(left) => Imbalance::Load(left.saturating_sub(load)),
                Imbalance::Tasks(left) => Imbalance::Tasks(left - 1),
            };
            let is_over = matches!(left, Imbalance::Load(0) | Imbalance::Tasks(0));
            // A preemptible kernel moves one task then.
            if is_over || does == Does::BecomesIdle {
                break;
            }
        }
        ending
    }

    /// The waiting tasks of a CPU, in the order in which they ran last or were refused.
    fn by_last_run(&self, cpu: usize) -> Vec<usize> {
        let waiting = self.cpus[cpu].fair.waiting();
        let mut waiting: Vec<_> = waiting
            .filter(|entity| !entity.delayed)
            .map(|entity| (entity.moved_last, entity.task))
            .collect();
        waiting.sort_unstable();
        waiting.into_iter().take(TASKS_MAX).map(|(_, task)| task).collect()
    }

    /// Moves a waiting task; returns whether it waited.
    fn migrate(&mut self, task: usize, from: usize, to: usize, now: u64) -> bool {
        let Some(entity) = self.cpus[from].fair.leave(task, now) else { return false };
        self.tasks[task].cpu = to;
        self.cpus[to].fair.enqueue(entity, Arrival::Moved, now);
        if self.cpus[to].fair.is_running() && self.preempts(to, task, now) {
            self.cpus[to].request(false, self.is_lazy);
        }
        self.divide_groups(from, now);
        self.divide_groups(to, now);
        true
    }
}

/// The busiest of the other CPUs, and what of it is to be moved (`find_busiest_group`, `calculate_imbalance`).
fn imbalance(local: Group, others: &[Group], does: Does) -> Option<(Group, Imbalance)> {
    let busiest = busiest(others)?;
    if local.busy > busiest.busy {
        return None;
    }
    let groups = others.len() as u64 + 1;
    let average =
        (local.load + others.iter().map(|group| group.load).sum::<u64>()) / groups;
    let is_above = local.load >= busiest.load || local.load >= average;
    if busiest.busy < Busy::Overloaded && (does == Does::Runs || busiest.ordinary == 1) {
        return None;
    }
    let imbalance = match local.busy {
        Busy::Spare => Imbalance::Tasks(busiest.tasks.saturating_sub(local.tasks) / 2),
        Busy::Fully | Busy::Overloaded if is_above => return None,
        Busy::Overloaded if busiest.load * 100 <= local.load * IMBALANCE_PERCENT => {
            return None;
        }
        Busy::Fully | Busy::Overloaded => {
            let missing = average - local.load;
            // The kernel's difference wraps around.
            let over = busiest.load.checked_sub(average);
            Imbalance::Load(over.map_or(missing, |over| over.min(missing)))
        }
    };
    let is_none = matches!(imbalance, Imbalance::Load(0) | Imbalance::Tasks(0));
    (!is_none).then_some((busiest, imbalance))
}

/// The first of the busiest (`update_sd_pick_busiest`).
fn busiest(groups: &[Group]) -> Option<Group> {
    let measure = |group: &Group| match group.busy {
        Busy::Overloaded => (group.busy, group.load),
        Busy::Fully => (group.busy, 0),
        Busy::Spare => (group.busy, group.tasks as u64),
    };
    let with_tasks = groups.iter().filter(|group| group.ordinary > 0);
    with_tasks.rev().max_by_key(|group| measure(group)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CPU with always runnable tasks of these weights.
    fn group(cpu: usize, weights: &[u64]) -> Group {
        let busy = match weights.len() {
            0 => Busy::Spare,
            1 => Busy::Fully,
            _ => Busy::Overloaded,
        };
        let tasks = weights.len();
        Group { cpu, busy, tasks, ordinary: tasks, load: weights.iter().sum() }
    }

    /// What a CPU takes from which of two others.
    fn taken(
        local: &[u64],
        others: [&[u64]; 2],
        does: Does,
    ) -> Option<(usize, Imbalance)> {
        let others = [group(1, others[0]), group(2, others[1])];
        let found = imbalance(group(0, local), &others, does);
        found.map(|(busiest, imbalance)| (busiest.cpu, imbalance))
    }

    /// Check, by hand, what is to be moved: 2048 beside 1024 and 1024 are 682 above and 341 below the average of
    /// 1365; an idle CPU takes half of the difference in tasks, and a running one none of a CPU that is not
    /// overloaded; a difference of a sixth is none between overloaded CPUs.
    #[test]
    fn imbalances() {
        let (one, two, three) = (&[1024][..], &[1024, 1024][..], &[1024, 1024, 1024][..]);
        let load = |load| Imbalance::Load(load);
        assert_eq!(taken(one, [one, two], Does::Runs), Some((2, load(1365 - 1024))));
        assert_eq!(taken(two, [one, two], Does::Runs), None);
        assert_eq!(taken(one, [one, one], Does::Runs), None);
        assert_eq!(
            taken(&[], [two, three], Does::BecomesIdle),
            Some((2, Imbalance::Tasks(1)))
        );
        assert_eq!(taken(&[], [one, one], Does::BecomesIdle), None);
        assert_eq!(taken(&[], [&[], one], Does::Idles), None);
        let near = [1024, 1024, 345].as_slice();
        assert_eq!(taken(two, [near, two], Does::Runs), None);
        let far = [1024, 1024, 526].as_slice();
        assert_eq!(taken(two, [far, two], Does::Runs), Some((1, load(175))));
    }

    /// Check that of equally busy CPUs the first one is chosen, and that one with more tasks is busier than one
    /// with a heavy one.
    #[test]
    fn busiest_of_several() {
        let found = |groups: &[Group]| busiest(groups).map(|group| group.cpu);
        assert_eq!(found(&[group(1, &[1024, 15]), group(2, &[1024, 15])]), Some(1));
        assert_eq!(found(&[group(1, &[88_761]), group(2, &[15, 15])]), Some(2));
        assert_eq!(found(&[group(1, &[]), group(2, &[])]), None);
    }
}
