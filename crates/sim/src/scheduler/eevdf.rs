//! EEVDF, the fair class since Linux 6.6: of the entities that are not ahead of the average virtual
//! time, the one with the earliest virtual deadline runs, until its slice is over.
//!
//! Source: `kernel/sched/fair.c` of 6.6, 6.12, 6.18 and 7.3 (Debian's packages, whose stable updates
//! changed rules: the average as the reference in 6.12.y, a base slice of 0.70 ms). Not modelled:
//! SCHED_IDLE, and `NEXT_BUDDY`, which is off.

use crate::scheduler::fair::{Arrival, WakeupCheck};
use crate::scheduler::queue::{Asleep, Entity, Queue};
use crate::scheduler::weight::{self, NICE_0, Rounding, signed};

/// Where versions of EEVDF differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Eevdf {
    /// The slice of a task that did not request another one: `base_slice_ns`.
    pub(crate) base_slice: u64,
    /// That without the factor of the number of CPUs.
    pub(crate) least_slice: u64,
    pub(crate) tick: u64,
    pub(crate) place_lag: bool,
    pub(crate) place_deadline_initial: bool,
    pub(crate) run_to_parity: bool,
    pub(crate) preempt_short: bool,
    pub(crate) delay_dequeue: bool,
    pub(crate) delay_zero: bool,
    pub(crate) wakeup_preemption: bool,
    pub(crate) lag_limit: LagLimit,
    pub(crate) delayed_lag: DelayedLag,
    pub(crate) protection: Protection,
    /// Whether every wake-up may shorten the protection, not only that of a shorter slice.
    pub(crate) wakeups_shorten: bool,
    /// Whether the check at a wake-up takes entities out that only wait to sleep.
    pub(crate) wakeups_release: bool,
}

/// The lag of an entity that sleeps, but stayed queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DelayedLag {
    /// What it has when it wakes up or is taken out.
    Current,
    /// That, but not less than when it began to sleep.
    NotLess,
}

/// How much lag a task keeps at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LagLimit {
    /// Two of its slices, at least a tick.
    TwoSlices,
    /// The longest slice in the queue, and a tick.
    LongestAndTick,
}

/// How the running entity is protected from those that wake up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protection {
    /// Until its deadline is renewed; while it keeps running after that, not at all.
    UntilRenewed,
    /// Until a virtual time: its deadline, or the shortest slice of the queue. When that is
    /// reached, it is rescheduled.
    UntilVruntime,
}

const ROUNDING: Rounding = Rounding::Down;

impl Eevdf {
    /// Accounts the running entity (`update_curr`); returns whether to reschedule.
    pub(crate) fn account(&self, queue: &mut Queue, now: u64) -> bool {
        if !queue.account(now, ROUNDING) {
            return false;
        }
        let alone = queue.len() == 1;
        let Some(current) = &mut queue.current else { return false };
        let renewed = self.renew(current);
        !alone && (renewed || self.lost_protection(queue))
    }

    /// Renews the deadline if it is reached (`update_deadline`).
    #[inline]
    fn renew(&self, entity: &mut Entity) -> bool {
        if entity.vruntime < entity.deadline {
            return false;
        }
        entity.deadline = entity.vruntime + self.vslice(entity);
        true
    }

    #[inline]
    fn lost_protection(&self, queue: &Queue) -> bool {
        match self.protection {
            // That it is not eligible matters only where a short slice cancelled the protection.
            Protection::UntilRenewed => false,
            Protection::UntilVruntime => !self.is_protected(queue),
        }
    }

    #[inline]
    fn is_protected(&self, queue: &Queue) -> bool {
        queue.current.as_ref().is_some_and(|current| match self.protection {
            Protection::UntilRenewed => {
                self.run_to_parity && current.protected == current.deadline
            }
            Protection::UntilVruntime => current.vruntime < current.protected,
        })
    }

    #[inline]
    fn slice(&self, entity: &Entity) -> u64 {
        if entity.slice > 0 { entity.slice } else { self.base_slice }
    }

    /// The shortest slice in a queue that is not empty.
    #[inline]
    fn shortest(&self, queue: &Queue) -> u64 {
        if !queue.has_own_slices {
            return self.base_slice;
        }
        queue.entities().map(|one| self.slice(one)).min().unwrap_or(self.base_slice)
    }

    /// The longest one.
    #[inline]
    fn longest(&self, queue: &Queue) -> u64 {
        if !queue.has_own_slices {
            return self.base_slice;
        }
        queue.entities().map(|one| self.slice(one)).max().unwrap_or(self.base_slice)
    }

    #[inline]
    fn vslice(&self, entity: &Entity) -> i64 {
        signed(ROUNDING.to_virtual(self.slice(entity), entity.weight))
    }

    /// Places an entity and queues it (`place_entity`); the queue is accounted.
    #[inline]
    pub(crate) fn enqueue(
        &self,
        queue: &mut Queue,
        mut entity: Box<Entity>,
        arrival: Arrival,
    ) {
        self.place(queue, &mut entity, arrival);
        queue.push(entity);
    }

    #[inline]
    fn place(&self, queue: &Queue, entity: &mut Entity, arrival: Arrival) {
        let average = queue.average();
        let load = signed(queue.load());
        let mut lag = 0;
        if self.place_lag && load > 0 {
            // The entity itself moves the average: its lag has to be larger before.
            lag = entity.lag * (load + signed(entity.weight)) / load;
        }
        entity.vruntime = average - lag;
        entity.deadline = match arrival {
            // Its deadline is relative, since it left its queue.
            Arrival::Moved => entity.deadline + entity.vruntime,
            Arrival::New if self.place_deadline_initial => {
                let half = ROUNDING.to_virtual(self.slice(entity), entity.weight) / 2;
                entity.vruntime + signed(half)
            }
            Arrival::New | Arrival::Woken | Arrival::WokenElsewhere => {
                entity.vruntime + self.vslice(entity)
            }
        };
    }

    /// The lag of an entity, within its limits (`entity_lag`).
    #[inline]
    pub(crate) fn lag(&self, queue: &Queue, entity: &Entity) -> i64 {
        let limit = match self.lag_limit {
            LagLimit::TwoSlices => (2 * self.slice(entity)).max(self.tick),
            LagLimit::LongestAndTick => {
                self.longest(queue).max(self.slice(entity)) + self.tick
            }
        };
        let limit = signed(ROUNDING.to_virtual(limit, entity.weight));
        (queue.average() - entity.vruntime).clamp(-limit, limit)
    }

    /// Places an entity whose weight was another one, with the lag that it had: it is as far ahead or behind in
    /// real time, and has as much of its slice left (`reweight_entity` of 6.12).
    pub(crate) fn reweight(
        &self,
        queue: &Queue,
        entity: &mut Entity,
        before: u64,
        lag: i64,
    ) {
        let rescaled = |span: i64| weight::rescaled(span, before, entity.weight);
        let is_until_deadline = entity.protected == entity.deadline;
        let (deadline, protected) = (
            rescaled(entity.deadline - entity.vruntime),
            rescaled(entity.protected.saturating_sub(entity.vruntime)),
        );
        let lag = rescaled(lag);
        if queue.len() > 0 {
            (entity.lag, entity.deadline) = (lag, deadline);
            self.place(queue, entity, Arrival::Moved);
        } else {
            entity.deadline = entity.vruntime + deadline;
        }
        entity.protected = match is_until_deadline {
            true => entity.deadline,
            false => entity.vruntime.saturating_add(protected),
        };
    }

    /// The running task sleeps (`dequeue_entity`): it is taken out, or stays queued until it is
    /// eligible. The queue is accounted.
    #[inline]
    pub(crate) fn sleep(&self, queue: &mut Queue) -> Option<Box<Entity>> {
        let current = queue.current.as_ref()?;
        let stays = self.delay_dequeue && !queue.is_eligible(current.vruntime);
        let lag = self.lag(queue, current);
        let mut entity = queue.take_current()?;
        entity.lag = lag;
        if stays {
            entity.delayed = true;
            queue.push(entity);
            return None;
        }
        Some(entity)
    }

    /// Takes a waiting one out, to another CPU.
    pub(crate) fn leave(&self, queue: &mut Queue, task: usize) -> Option<Box<Entity>> {
        let lag = self.lag(queue, queue.find(task)?);
        let mut entity = queue.take(task)?;
        entity.lag = lag;
        entity.deadline -= entity.vruntime;
        Some(entity)
    }

    /// A task that sleeps but is still queued wakes up (`requeue_delayed_entity`); `None`: it is awake.
    pub(crate) fn requeue(
        &self,
        queue: &mut Queue,
        task: usize,
        now: u64,
    ) -> Option<bool> {
        queue.find(task).filter(|entity| entity.delayed)?;
        let accounts = self.delayed_lag == DelayedLag::NotLess;
        let reschedule = accounts && self.account(queue, now);
        let lag = self.delayed_lag(queue, queue.find(task)?);
        let average = queue.average();
        let mut entity = queue.take(task)?;
        entity.delayed = false;
        let moves = match self.delayed_lag {
            DelayedLag::Current => self.delay_zero && average > entity.vruntime,
            DelayedLag::NotLess => average - lag != entity.vruntime,
        };
        if moves {
            entity.lag = lag;
            self.place(queue, &mut entity, Arrival::Woken);
        }
        queue.push(entity);
        Some(reschedule)
    }

    /// The lag with which a delayed entity wakes up or leaves.
    fn delayed_lag(&self, queue: &Queue, entity: &Entity) -> i64 {
        let current = self.lag(queue, entity);
        let lag = match self.delayed_lag {
            DelayedLag::Current => current,
            DelayedLag::NotLess => current.max(entity.lag),
        };
        if self.delay_zero { lag.min(0) } else { lag }
    }

    /// Whether to reschedule after a task woke up (`check_preempt_wakeup_fair`). Entities that are found to sleep are moved to `asleep`.
    pub(crate) fn preempts(
        &self,
        queue: &mut Queue,
        woken: usize,
        check: WakeupCheck,
        asleep: &mut Asleep,
    ) -> bool {
        if !self.wakeup_preemption || check.is_batch {
            return false;
        }
        let reschedule = self.account(queue, check.now);
        let shorter = self.is_shorter(queue, woken);
        let protects = !shorter || self.protection == Protection::UntilRenewed;
        if shorter && self.protection == Protection::UntilRenewed {
            self.cancel_protection(queue);
        }
        let first = match self.wakeups_release {
            true => self.pick(queue, protects, asleep),
            false => self.earliest(queue, protects).map(|entity| entity.task),
        };
        let preempts = first == Some(woken);
        if self.protection == Protection::UntilVruntime {
            if preempts && shorter {
                self.cancel_protection(queue);
            } else if !preempts && self.run_to_parity && (shorter || self.wakeups_shorten)
            {
                self.shorten_protection(queue);
            }
        }
        preempts || reschedule
    }

    /// Whether a task with a shorter slice overrides the running one's protection.
    fn is_shorter(&self, queue: &Queue, woken: usize) -> bool {
        if !self.preempt_short || !queue.has_own_slices {
            return false;
        }
        let (Some(current), Some(entity)) = (&queue.current, queue.find(woken)) else {
            return false;
        };
        if self.slice(entity) >= self.slice(current) {
            return false;
        }
        match self.protection {
            Protection::UntilRenewed => {
                queue.is_eligible(entity.vruntime)
                    && (entity.deadline < current.deadline
                        || !queue.is_eligible(current.vruntime))
            }
            Protection::UntilVruntime => true,
        }
    }

    fn cancel_protection(&self, queue: &mut Queue) {
        let Some(current) = &mut queue.current else { return };
        current.protected = match self.protection {
            Protection::UntilRenewed => current.deadline + 1,
            Protection::UntilVruntime => current.protected.min(current.vruntime),
        };
    }

    fn shorten_protection(&self, queue: &mut Queue) {
        let shortest = self.shortest(queue);
        let Some(current) = &mut queue.current else { return };
        let until =
            current.vruntime + signed(ROUNDING.to_virtual(shortest, current.weight));
        current.protected = current.protected.min(until);
    }

    /// Which entity runs next; those that only wait to sleep are moved to `asleep`.
    #[inline]
    pub(crate) fn pick(
        &self,
        queue: &mut Queue,
        protects: bool,
        asleep: &mut Asleep,
    ) -> Option<usize> {
        loop {
            let Entity { task, delayed, .. } = *self.earliest(queue, protects)?;
            if !delayed {
                return Some(task);
            }
            self.release(queue, task, asleep)?;
        }
    }

    /// Moves a delayed entity to `asleep`; `None`: it is not there.
    fn release(&self, queue: &mut Queue, task: usize, asleep: &mut Asleep) -> Option<()> {
        let lag = self.delayed_lag(queue, queue.find(task)?);
        let mut entity = queue.take(task)?;
        entity.delayed = false;
        entity.lag = lag;
        asleep.push(entity);
        Some(())
    }

    /// The eligible entity with the earliest deadline (`pick_eevdf`).
    fn earliest<'a>(&self, queue: &'a Queue, protects: bool) -> Option<&'a Entity> {
        let current = queue.current.as_deref();
        let current = current.filter(|entity| queue.is_eligible(entity.vruntime));
        if let Some(current) = current.filter(|_| protects && self.is_protected(queue)) {
            return Some(current);
        }
        let best = queue.first_eligible();
        match (best, current) {
            (Some(best), Some(current)) if current.deadline < best.deadline => {
                Some(current)
            }
            (best, current) => best.or(current),
        }
    }

    /// Begins the protection of the entity that was just picked (`set_protect_slice`).
    #[inline]
    pub(crate) fn protect(&self, queue: &mut Queue) {
        let shortest = self.shortest(queue);
        let Some(current) = &mut queue.current else { return };
        current.protected = current.deadline;
        if self.protection == Protection::UntilVruntime {
            let protected = if self.run_to_parity { shortest } else { self.least_slice };
            let own = if current.slice > 0 { current.slice } else { self.base_slice };
            if protected < own {
                let short = signed(ROUNDING.to_virtual(protected, current.weight));
                current.protected = current.protected.min(current.vruntime + short);
            }
        }
    }

    /// How long the running entity may run until its slice is over, in real time (`hrtick_start_fair`).
    #[inline]
    pub(crate) fn rest(queue: &Queue) -> Option<u64> {
        let current = queue.current.as_ref().filter(|_| queue.len() > 1)?;
        let rest = u64::try_from(current.deadline - current.vruntime).unwrap_or(0);
        Some(rest * current.weight / NICE_0)
    }
}
