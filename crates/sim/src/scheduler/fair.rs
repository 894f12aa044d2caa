//! The fair class of a kernel: CFS or EEVDF, by the same questions.

use units::Nanos;

use crate::scheduler::cfs::Cfs;
use crate::scheduler::eevdf::Eevdf;
use crate::scheduler::load::Since;
use crate::scheduler::queue::{Asleep, Entity, Key, Queue};

/// How an entity comes to a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It is new.
    New,
    /// It woke up on the CPU on which it slept.
    Woken,
    /// It woke up on another CPU.
    WokenElsewhere,
    /// It was moved from another CPU's queue.
    Moved,
}

/// The rules by which the entities of a queue are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fair {
    Cfs(Cfs),
    Eevdf(Eevdf),
}

impl Fair {
    /// What queues are sorted by.
    pub(crate) fn key(&self) -> Key {
        match self {
            Self::Cfs(_) => Key::Vruntime,
            Self::Eevdf(_) => Key::Deadline,
        }
    }

    /// Accounts the running entity's time until now; returns whether to reschedule.
    #[inline]
    pub(crate) fn account(&self, queue: &mut Queue, now: u64) -> bool {
        queue.update_load(now);
        match self {
            Self::Cfs(cfs) => {
                cfs.account(queue, now);
                false
            }
            Self::Eevdf(eevdf) => eevdf.account(queue, now),
        }
    }

    /// Accounts, places an entity, and queues it; returns whether to reschedule.
    #[inline]
    pub(crate) fn enqueue(
        &self,
        queue: &mut Queue,
        mut entity: Box<Entity>,
        arrival: Arrival,
        now: u64,
    ) -> bool {
        let reschedule = self.account(queue, now);
        if queue.average.is_some() {
            queue.add_load_of(&mut entity, arrival, now);
        }
        match self {
            Self::Cfs(cfs) => cfs.enqueue(queue, entity, arrival),
            Self::Eevdf(eevdf) => eevdf.enqueue(queue, entity, arrival),
        }
        reschedule
    }

    /// One that sleeps but is still queued wakes up; returns whether to reschedule. `None`: it is awake.
    pub(crate) fn requeue(
        &self,
        queue: &mut Queue,
        task: usize,
        now: u64,
    ) -> Option<bool> {
        match self {
            Self::Cfs(_) => None,
            Self::Eevdf(eevdf) => eevdf.requeue(queue, task, now),
        }
    }

    /// The running entity sleeps; `None`: it stays queued until it is eligible. The queue is accounted.
    #[inline]
    pub(crate) fn sleep(&self, queue: &mut Queue) -> Option<Box<Entity>> {
        match self {
            Self::Cfs(cfs) => cfs.sleep(queue),
            Self::Eevdf(eevdf) => eevdf.sleep(queue),
        }
    }

    /// The virtual time of an entity that sleeps becomes independent of its queue.
    pub(crate) fn detach(&self, queue: &mut Queue, entity: &mut Entity, now: u64) {
        queue.update_load(now);
        entity.update_load(now, Since::SLEPT);
        queue.detach_load(entity);
        match self {
            Self::Cfs(_) => entity.vruntime -= queue.min_vruntime,
            Self::Eevdf(_) => {}
        }
    }

    /// The opposite.
    pub(crate) fn attach(&self, queue: &Queue, entity: &mut Entity) {
        match self {
            Self::Cfs(_) => entity.vruntime += queue.min_vruntime,
            Self::Eevdf(_) => {}
        }
    }

    /// An entity of the queue has another weight. One that runs goes on.
    pub(crate) fn reweight(&self, queue: &mut Queue, task: usize, weight: u64, now: u64) {
        self.account(queue, now);
        let lag = match (self, queue.find(task)) {
            (Self::Eevdf(eevdf), Some(entity)) => eevdf.lag(queue, entity),
            _ => 0,
        };
        let is_current = queue.is_current(task);
        let entity = if is_current { queue.take_current() } else { queue.take(task) };
        let Some(mut entity) = entity else { return };
        let before = entity.weight;
        queue.reweight_load(&mut entity, weight);
        if let Self::Eevdf(eevdf) = self {
            eevdf.reweight(queue, &mut entity, before, lag);
        }
        match is_current {
            true => queue.resume(entity),
            false => queue.push(entity),
        }
    }

    /// How long the running entity may run until its slice is over, in real time; `None`: there are
    /// no others.
    #[inline]
    pub(crate) fn rest(&self, queue: &Queue) -> Option<u64> {
        match self {
            Self::Cfs(cfs) => cfs.rest(queue),
            Self::Eevdf(_) => Eevdf::rest(queue),
        }
    }

    /// How far an entity of nice 0 has to be ahead to preempt; `None`: that is decided otherwise.
    pub(crate) fn granularity(&self) -> Option<Nanos> {
        match self {
            Self::Cfs(cfs) => Some(Nanos::from_nanos(cfs.wakeup_granularity)),
            Self::Eevdf(_) => None,
        }
    }

    /// A waiting entity goes to another CPU.
    pub(crate) fn leave(
        &self,
        queue: &mut Queue,
        task: usize,
        now: u64,
    ) -> Option<Box<Entity>> {
        self.account(queue, now);
        let mut entity = match self {
            Self::Cfs(_) => Cfs::leave(queue, task),
            Self::Eevdf(eevdf) => eevdf.leave(queue, task),
        }?;
        entity.update_load(now, Since::WAITED);
        queue.detach_load(&entity);
        Some(entity)
    }

    /// A tick; returns whether to reschedule.
    #[inline]
    pub(crate) fn tick(&self, queue: &mut Queue, now: u64) -> bool {
        let reschedule = self.account(queue, now);
        match self {
            Self::Cfs(cfs) => cfs.ends_at_tick(queue),
            Self::Eevdf(_) => reschedule,
        }
    }

    /// Whether one that woke up preempts the running entity. `requested`: a reschedule is already
    /// requested, and not a lazy one.
    #[inline]
    pub(crate) fn preempts(
        &self,
        queue: &mut Queue,
        woken: usize,
        check: WakeupCheck,
        asleep: &mut Asleep,
    ) -> bool {
        match self {
            Self::Cfs(cfs) => cfs.preempts(queue, woken, check),
            Self::Eevdf(eevdf) => {
                !check.requested && eevdf.preempts(queue, woken, check, asleep)
            }
        }
    }

    /// Which entity runs next; `None`: the queue is empty. Those that only waited to sleep are moved
    /// to `asleep`. The queue is accounted.
    #[inline]
    pub(crate) fn pick(&self, queue: &mut Queue, asleep: &mut Asleep) -> Option<usize> {
        match self {
            Self::Cfs(cfs) => cfs.pick(queue),
            Self::Eevdf(eevdf) => eevdf.pick(queue, true, asleep),
        }
    }

    /// Lets the picked one run from `now` on, instead of the running one.
    #[inline]
    pub(crate) fn set_next(&self, queue: &mut Queue, task: usize, now: u64) {
        if queue.is_current(task) {
            if let (Self::Cfs(cfs), Some(current)) = (self, &mut queue.current) {
                cfs.renew_picked(current);
            }
            return;
        }
        queue.put_current();
        queue.set_current(task, now);
        match self {
            Self::Cfs(_) => queue.buddies.clear(task),
            Self::Eevdf(eevdf) => eevdf.protect(queue),
        }
    }
}

/// What is known when a task woke up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WakeupCheck {
    pub(crate) now: u64,
    /// A reschedule is already requested, and is not lazy.
    pub(crate) requested: bool,
    /// It is SCHED_BATCH.
    pub(crate) is_batch: bool,
}
