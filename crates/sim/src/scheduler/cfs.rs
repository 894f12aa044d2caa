//! CFS, the fair class until Linux 6.5: the task with the least virtual time runs, and a task that
//! wakes up is placed before it.
//!
//! Source: `kernel/sched_fair.c` of 2.6.29 and 2.6.32, `kernel/sched/fair.c` of 5.10 and 6.1. Not
//! modelled: `sched_yield`, SCHED_IDLE, and the granularity that 2.6.30 and 2.6.31 adapt to the tasks.

use crate::scheduler::fair::{Arrival, WakeupCheck};
use crate::scheduler::queue::{Buddies, Entity, Queue};
use crate::scheduler::weight::{NICE_0, Rounding, signed};

/// Where versions of CFS differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cfs {
    pub(crate) rounding: Rounding,
    /// The period in which each task runs once, and its least part for each: `sched_latency_ns`,
    /// `sched_min_granularity_ns`.
    pub(crate) latency: u64,
    pub(crate) min_granularity: u64,
    /// How far a task has to be ahead to preempt: `sched_wakeup_granularity_ns`.
    pub(crate) wakeup_granularity: u64,
    /// From this number of tasks on, the period is longer.
    pub(crate) tasks_in_latency: u64,
    /// How far before the least virtual time a task is placed that wakes up.
    pub(crate) sleeper_credit: u64,
    /// Whether that depends on the task's weight.
    pub(crate) weighted_credit: bool,
    pub(crate) wakeup_preemption: bool,
    pub(crate) start_debit: bool,
    pub(crate) last_buddy: bool,
    /// When the woken task is the one to prefer next.
    pub(crate) next_buddy: NextBuddy,
    /// Whether `last` is preferred to `next`.
    pub(crate) last_first: bool,
    /// The granularity depends on the weight of the running task, and only above that of nice 0;
    /// otherwise on that of the task that wakes up.
    pub(crate) asymmetric_granularity: bool,
    /// Whether a tick also ends a slice by how far ahead of all others the task is.
    pub(crate) ahead_at_ticks: bool,
    /// Whether the period is that of all tasks of the CPU, not only of those in a group (`ALT_PERIOD`).
    pub(crate) period_of_all: bool,
    /// Whether no slice is shorter than `min_granularity`.
    pub(crate) least_slice: bool,
    /// Whether a task that is picked again has a new slice.
    pub(crate) repick_renews: bool,
    /// Whether a task that goes to sleep still holds the least virtual time back.
    pub(crate) sleeper_holds_minimum: bool,
}

/// When the task that woke up is preferred at the next choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextBuddy {
    /// At each wake-up; then the running task is the last buddy, too.
    EachWakeup,
    /// Not.
    Never,
    /// If it preempts.
    Preempting,
    /// At each wake-up in a crowded queue, and if it preempts (`NEXT_BUDDY`).
    Crowded,
}

impl Cfs {
    /// Accounts the running task (`update_curr`).
    #[inline]
    pub(crate) fn account(&self, queue: &mut Queue, now: u64) {
        if queue.account(now, self.rounding) {
            Self::advance(queue);
        }
    }

    /// Advances the least virtual time (`update_min_vruntime`).
    #[inline]
    fn advance(queue: &mut Queue) {
        let least = match (queue.current.as_deref(), queue.first()) {
            (Some(current), Some(first)) => current.vruntime.min(first.vruntime),
            (Some(only), None) | (None, Some(only)) => only.vruntime,
            (None, None) => return,
        };
        queue.min_vruntime = queue.min_vruntime.max(least);
    }

    /// Places a task and queues it (`enqueue_entity`); the queue is accounted.
    #[inline]
    pub(crate) fn enqueue(
        &self,
        queue: &mut Queue,
        mut entity: Box<Entity>,
        arrival: Arrival,
    ) {
        let least = queue.min_vruntime;
        match arrival {
            Arrival::New => {
                let debit =
                    if self.start_debit { self.vslice(queue, &entity) } else { 0 };
                entity.vruntime = least + signed(debit) - entity.lag;
            }
            Arrival::Moved => entity.vruntime += least,
            Arrival::Woken => {
                let credit = signed(self.credit(&entity));
                entity.vruntime = entity.vruntime.max(least - credit);
            }
            Arrival::WokenElsewhere => {
                let credit = signed(self.credit(&entity));
                entity.vruntime = (entity.vruntime + least).max(least - credit);
            }
        }
        queue.push(entity);
    }

    #[inline]
    fn credit(&self, entity: &Entity) -> u64 {
        match self.weighted_credit {
            true => self.rounding.to_virtual(self.sleeper_credit, entity.weight),
            false => self.sleeper_credit,
        }
    }

    /// Takes the running task out, which sleeps (`dequeue_entity`); the queue is accounted.
    #[inline]
    pub(crate) fn sleep(&self, queue: &mut Queue) -> Option<Box<Entity>> {
        if self.sleeper_holds_minimum {
            Self::advance(queue);
        }
        let entity = queue.take_current()?;
        queue.buddies.clear(entity.task);
        if !self.sleeper_holds_minimum {
            Self::advance(queue);
        }
        Some(entity)
    }

    /// Takes a waiting task out, to another CPU.
    pub(crate) fn leave(queue: &mut Queue, task: usize) -> Option<Box<Entity>> {
        let mut entity = queue.take(task)?;
        queue.buddies.clear(task);
        entity.vruntime -= queue.min_vruntime;
        Self::advance(queue);
        Some(entity)
    }

    /// The slice of an entity (`sched_slice`): its part of the period.
    fn slice(&self, queue: &Queue, entity: &Entity, is_queued: bool) -> u64 {
        let others = u64::from(!is_queued);
        let elsewhere = if self.period_of_all { queue.above.tasks } else { 0 };
        let tasks = (queue.len() + elsewhere) as u64 + others;
        let period = match tasks > self.tasks_in_latency {
            true => self.min_granularity * tasks,
            false => self.latency,
        };
        let load = queue.load() + others * entity.weight;
        let mut slice = self.rounding.scale(period, entity.weight, load);
        if let Some((weight, load)) = queue.above.part {
            slice = self.rounding.scale(slice, weight, load);
        }
        if self.least_slice { slice.max(self.min_granularity) } else { slice }
    }

    /// What the running entity has left of its slice.
    pub(crate) fn rest(&self, queue: &Queue) -> Option<u64> {
        let current = queue.current.as_ref().filter(|_| queue.len() > 1)?;
        let ran = current.sum_exec - current.sum_exec_picked;
        Some(self.slice(queue, current, true).saturating_sub(ran))
    }

    fn vslice(&self, queue: &Queue, entity: &Entity) -> u64 {
        self.rounding.to_virtual(self.slice(queue, entity, false), entity.weight)
    }

    /// Whether a tick ends the slice of the running task (`check_preempt_tick`); the queue is
    /// accounted.
    pub(crate) fn ends_at_tick(&self, queue: &mut Queue) -> bool {
        if queue.len() <= 1 && self.wakeup_preemption {
            return false;
        }
        let Some(current) = &queue.current else { return false };
        let slice = self.slice(queue, current, true);
        let ran = current.sum_exec - current.sum_exec_picked;
        if ran > slice {
            let task = current.task;
            queue.buddies.clear(task);
            return true;
        }
        if !self.ahead_at_ticks || ran < self.min_granularity {
            return false;
        }
        let first = queue.first();
        first.is_some_and(|first| current.vruntime - first.vruntime > signed(slice))
    }

    /// Whether a task that woke up preempts the running one (`check_preempt_wakeup`); the queue is
    /// accounted. If a reschedule is already requested, only buddies change.
    #[inline]
    pub(crate) fn preempts(
        &self,
        queue: &mut Queue,
        woken: usize,
        check: WakeupCheck,
    ) -> bool {
        let Some(current) = &queue.current else { return false };
        let running = current.task;
        let crowded = queue.len() as u64 >= self.tasks_in_latency;
        let each = self.next_buddy == NextBuddy::EachWakeup;
        if each && self.last_buddy {
            queue.buddies.last = Some(running);
        }
        if each || (self.next_buddy == NextBuddy::Crowded && crowded) {
            queue.buddies.next = Some(woken);
        }
        if check.requested || check.is_batch || !self.wakeup_preemption {
            return false;
        }
        let Some(entity) = queue.find(woken) else { return false };
        let preempts = queue.current.as_ref().is_some_and(|current| {
            current.vruntime - entity.vruntime > self.granularity(current, entity)
        });
        if preempts {
            if self.next_buddy == NextBuddy::Preempting {
                queue.buddies.next = Some(woken);
            }
            if !each && self.last_buddy && crowded {
                queue.buddies.last = Some(running);
            }
        }
        preempts
    }

    /// The running entity is picked again.
    #[inline]
    pub(crate) fn renew_picked(&self, current: &mut Entity) {
        if self.repick_renews {
            current.sum_exec_picked = current.sum_exec;
        }
    }

    /// How far `later` has to be behind `earlier` (`wakeup_gran`).
    #[inline]
    fn granularity(&self, later: &Entity, earlier: &Entity) -> i64 {
        let granularity = self.wakeup_granularity;
        let weight =
            if self.asymmetric_granularity { later.weight } else { earlier.weight };
        if self.asymmetric_granularity && weight <= NICE_0 {
            return signed(granularity);
        }
        signed(self.rounding.to_virtual(granularity, weight))
    }

    /// Which entity runs next (`pick_next_entity`); the queue is accounted.
    #[inline]
    pub(crate) fn pick(&self, queue: &Queue) -> Option<usize> {
        let first = queue.first();
        let left = match (&queue.current, first) {
            (Some(current), Some(first)) if current.vruntime < first.vruntime => current,
            (Some(current), None) => current,
            (_, first) => first?,
        };
        let near = |buddy: Option<usize>| {
            let entity = queue.find(buddy?)?;
            let behind = entity.vruntime - left.vruntime;
            let is_near = behind <= 0 || behind <= self.granularity(entity, left);
            is_near.then_some(entity.task)
        };
        let Buddies { next, last } = queue.buddies;
        let [first, second] = if self.last_first { [last, next] } else { [next, last] };
        near(first).or_else(|| near(second)).or(Some(left.task))
    }
}
