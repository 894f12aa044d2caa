//! A run queue of the fair class, and the tasks in it.
//!
//! Like `struct cfs_rq` and `struct sched_entity` of the kernel (`kernel/sched/sched.h`): the running
//! entity is apart from the waiting ones. These are a sorted list where the kernel has a tree: for tens
//! of tasks it is faster, and the order is the same, also of equals, which are in the order in which they
//! were queued.

use crate::scheduler::load::{LoadAverage, Since};
use crate::scheduler::weight::{Rounding, signed};

/// A task, as its queue sees it. Virtual times are nanoseconds of a task of nice 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entity {
    /// Its place among all tasks.
    pub(crate) task: usize,
    /// The group that it is in.
    pub(crate) group: Option<usize>,
    pub(crate) weight: u64,
    pub(crate) vruntime: i64,
    /// All time that it ran.
    pub(crate) sum_exec: u64,
    /// That when it was picked.
    pub(crate) sum_exec_picked: u64,
    /// EEVDF: its requested slice.
    pub(crate) slice: u64,
    /// EEVDF: the virtual time by which it should have had its slice.
    pub(crate) deadline: i64,
    /// EEVDF, while it sleeps: how far it was behind the average; negative: ahead.
    pub(crate) lag: i64,
    /// EEVDF, while it runs: the virtual time until which it is protected from tasks that wake up,
    /// or the deadline with which it was picked (`eevdf::Protection`).
    pub(crate) protected: i64,
    /// EEVDF: it sleeps, but stays queued until it is eligible.
    pub(crate) delayed: bool,
    /// If the queue has averages, too.
    pub(crate) average: LoadAverage,
    /// When it began to wait, or was refused another CPU: the first one moves.
    pub(crate) moved_last: u64,
    /// Until when it ran.
    pub(crate) ran_until: u64,
}

/// Entities that a queue found to sleep, on their way back to their tasks.
#[allow(clippy::vec_box, reason = "they move from box to box")]
pub(crate) type Asleep = Vec<Box<Entity>>;

impl Entity {
    pub(crate) fn new(task: usize, weight: u64) -> Self {
        Self {
            task,
            group: None,
            weight,
            vruntime: 0,
            sum_exec: 0,
            sum_exec_picked: 0,
            slice: 0,
            deadline: 0,
            lag: 0,
            protected: i64::MIN,
            delayed: false,
            average: LoadAverage::default(),
            moved_last: 0,
            ran_until: 0,
        }
    }
}

/// What the waiting entities are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// CFS.
    Vruntime,
    /// EEVDF.
    Deadline,
}

/// An entity that waits; what it is found by is beside it, and not behind its pointer.
#[derive(Debug, Clone)]
struct Waiting {
    key: i64,
    vruntime: i64,
    task: usize,
    entity: Box<Entity>,
}

impl Key {
    #[inline]
    fn of(self, entity: &Entity) -> i64 {
        match self {
            Self::Vruntime => entity.vruntime,
            Self::Deadline => entity.deadline,
        }
    }
}

/// The ordinary tasks of one CPU.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    key: Key,
    /// Those that wait; the next one is the last.
    waiting: Vec<Waiting>,
    /// Where the one was put that ran last: a buddy is mostly found there.
    put: usize,
    /// The one that runs.
    pub(crate) current: Option<Box<Entity>>,
    /// CFS: the virtual time that all have reached; it never decreases.
    pub(crate) min_vruntime: i64,
    /// CFS: the entities to prefer at the next choice.
    pub(crate) buddies: Buddies,
    /// Until when the running one's time is accounted.
    pub(crate) accounted_until: u64,
    /// Of all, the running one included.
    sum: WeightedSum,
    /// EEVDF: whether one of them had a requested slice; otherwise all slices are the same.
    pub(crate) has_own_slices: bool,
    pub(crate) above: Above,
    /// `None`: nothing depends on it.
    pub(crate) average: Option<LoadAverage>,
}

/// What else is on the CPU.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Above {
    /// The weight of the queue's group, and the load of the queue that this is in.
    pub(crate) part: Option<(u64, u64)>,
    /// By how much the tasks of the CPU are more than the entities of this queue.
    pub(crate) tasks: usize,
}

/// The entities to prefer at the next choice.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Buddies {
    /// The one that was woken last.
    pub(crate) next: Option<usize>,
    /// The one that was preempted last.
    pub(crate) last: Option<usize>,
}

impl Buddies {
    #[inline]
    pub(crate) fn clear(&mut self, task: usize) {
        for buddy in [&mut self.next, &mut self.last] {
            buddy.take_if(|buddy| *buddy == task);
        }
    }
}

/// Weighted virtual times further than that from zero could exceed 64 bits.
const FAR: u64 = 1 << 40;

/// The sum of weighted virtual times, relative to `zero`, which is near to them.
#[derive(Debug, Clone, Copy, Default)]
struct WeightedSum {
    zero: i64,
    sum: i64,
    weight: u64,
}

impl WeightedSum {
    #[inline]
    fn add(&mut self, entity: &Entity) {
        self.approach(entity);
        self.sum += self.weighted(entity);
        self.weight += entity.weight;
    }

    #[inline]
    fn remove(&mut self, entity: &Entity) {
        self.sum -= self.weighted(entity);
        self.weight -= entity.weight;
    }

    #[inline]
    fn weighted(&self, entity: &Entity) -> i64 {
        (entity.vruntime - self.zero) * signed(entity.weight)
    }

    /// The virtual time of an entity of the sum becomes later.
    #[inline]
    fn advance(&mut self, entity: &mut Entity, by: i64) {
        entity.vruntime += by;
        self.sum += by * signed(entity.weight);
        self.approach(entity);
    }

    /// The average, rounded down; `None` if there is no entity.
    #[inline]
    fn average(&self) -> Option<i64> {
        let weight = signed(self.weight);
        (weight > 0).then(|| self.zero + self.sum.div_euclid(weight))
    }

    /// Whether this virtual time is not after the average, exactly.
    #[inline]
    fn is_eligible(&self, vruntime: i64) -> bool {
        let key = i128::from(vruntime - self.zero);
        i128::from(self.sum) >= key * i128::from(signed(self.weight))
    }

    /// Moves `zero` to an entity that is far from it.
    #[inline]
    fn approach(&mut self, entity: &Entity) {
        if entity.vruntime.abs_diff(self.zero) > FAR {
            self.sum -= (entity.vruntime - self.zero) * signed(self.weight);
            self.zero = entity.vruntime;
        }
    }
}

impl Queue {
    /// An empty one, which keeps averages if something depends on them.
    pub(crate) fn new(key: Key, averages: bool) -> Self {
        Self {
            average: averages.then(LoadAverage::default),
            key,
            waiting: Vec::new(),
            put: 0,
            current: None,
            min_vruntime: 0,
            buddies: Buddies::default(),
            accounted_until: 0,
            sum: WeightedSum::default(),
            has_own_slices: false,
            above: Above::default(),
        }
    }

    /// The number of entities, the running one included.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.current.is_some())
    }

    /// The weight of all.
    #[inline]
    pub(crate) fn load(&self) -> u64 {
        self.sum.weight
    }

    /// Those that wait, in their order.
    #[inline]
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Entity> {
        self.waiting.iter().rev().map(|waiting| waiting.entity.as_ref())
    }

    /// The first one that waits.
    #[inline]
    pub(crate) fn first(&self) -> Option<&Entity> {
        self.waiting.last().map(|waiting| waiting.entity.as_ref())
    }

    /// The first one that waits and is eligible.
    #[inline]
    pub(crate) fn first_eligible(&self) -> Option<&Entity> {
        let mut waiting = self.waiting.iter().rev();
        let first = waiting.find(|waiting| self.is_eligible(waiting.vruntime))?;
        Some(&first.entity)
    }

    /// All entities.
    pub(crate) fn entities(&self) -> impl Iterator<Item = &Entity> {
        self.current.iter().map(Box::as_ref).chain(self.waiting())
    }

    /// Whether a virtual time is not after the average.
    #[inline]
    pub(crate) fn is_eligible(&self, vruntime: i64) -> bool {
        self.sum.is_eligible(vruntime)
    }

    /// The average virtual time: V of EEVDF.
    #[inline]
    pub(crate) fn average(&self) -> i64 {
        self.sum.average().unwrap_or(self.sum.zero)
    }

    /// The average of all but one.
    pub(crate) fn average_without(&self, entity: &Entity) -> Option<i64> {
        let mut sum = self.sum;
        sum.remove(entity);
        sum.average()
    }

    /// Adds an entity to those that wait, behind its equals.
    #[inline]
    pub(crate) fn push(&mut self, entity: Box<Entity>) {
        self.sum.add(&entity);
        self.has_own_slices |= entity.slice > 0;
        self.insert(entity);
    }

    /// Returns its place.
    #[inline]
    fn insert(&mut self, entity: Box<Entity>) -> usize {
        let key = self.key.of(&entity);
        let (vruntime, task) = (entity.vruntime, entity.task);
        // Those that wake up are often before all others.
        let place = match self.waiting.last() {
            Some(next) if next.key <= key => self.place(key),
            _ => self.waiting.len(),
        };
        self.waiting.insert(place, Waiting { key, vruntime, task, entity });
        place
    }

    /// The place of one with this key, behind its equals: it is mostly near to one of the ends.
    fn place(&self, key: i64) -> usize {
        let is_behind = |other: &Waiting| other.key > key;
        let half = &self.waiting[self.waiting.len() / 2..];
        match half.first().is_some_and(is_behind) {
            true => self.waiting.iter().rposition(is_behind).map_or(0, |place| place + 1),
            false => self.waiting.iter().take_while(|other| is_behind(other)).count(),
        }
    }

    /// Lets the running one wait, behind its equals.
    #[inline]
    pub(crate) fn put_current(&mut self) {
        if let Some(mut entity) = self.current.take() {
            entity.ran_until = self.accounted_until;
            self.put = self.insert(entity);
        }
    }

    /// Takes the running one out.
    #[inline]
    pub(crate) fn take_current(&mut self) -> Option<Box<Entity>> {
        let entity = self.current.take()?;
        self.sum.remove(&entity);
        Some(entity)
    }

    /// Lets one run on that was taken out.
    pub(crate) fn resume(&mut self, entity: Box<Entity>) {
        self.sum.add(&entity);
        self.current = Some(entity);
    }

    /// Takes an entity out that waits.
    #[inline]
    pub(crate) fn take(&mut self, task: usize) -> Option<Box<Entity>> {
        let entity = self.remove(task)?;
        self.sum.remove(&entity);
        Some(entity)
    }

    #[inline]
    fn remove(&mut self, task: usize) -> Option<Box<Entity>> {
        let place = self.find_waiting(task)?;
        if place + 1 == self.waiting.len() {
            return self.waiting.pop().map(|waiting| waiting.entity);
        }
        Some(self.waiting.remove(place).entity)
    }

    /// The place of one that waits.
    #[inline]
    fn find_waiting(&self, task: usize) -> Option<usize> {
        let is_task = |waiting: &Waiting| waiting.task == task;
        let mut likely = [self.waiting.len().checked_sub(1)?, self.put].into_iter();
        let found = likely.find(|place| self.waiting.get(*place).is_some_and(is_task));
        found.or_else(|| self.waiting.iter().rposition(is_task))
    }

    /// Lets one that waits run from `now` on; there is no running one.
    #[inline]
    pub(crate) fn set_current(&mut self, task: usize, now: u64) {
        let Some(mut entity) = self.remove(task) else { return };
        entity.sum_exec_picked = entity.sum_exec;
        if self.average.is_some() {
            entity.update_load(now, Since::WAITED);
            entity.moved_last = now;
        }
        self.current = Some(entity);
        self.accounted_until = now;
    }

    /// One of them.
    #[inline]
    pub(crate) fn find(&self, task: usize) -> Option<&Entity> {
        let current = self.current.as_deref().filter(|entity| entity.task == task);
        let waiting = || Some(self.waiting[self.find_waiting(task)?].entity.as_ref());
        current.or_else(waiting)
    }

    /// One that waits, to change what it is not sorted by.
    pub(crate) fn waiting_mut(&mut self, task: usize) -> Option<&mut Entity> {
        let place = self.find_waiting(task)?;
        Some(&mut self.waiting[place].entity)
    }

    #[inline]
    pub(crate) fn is_current(&self, task: usize) -> bool {
        self.current.as_ref().is_some_and(|entity| entity.task == task)
    }

    /// Accounts the running one's time until now; returns whether it ran.
    #[inline]
    pub(crate) fn account(&mut self, now: u64, rounding: Rounding) -> bool {
        let Some(entity) = &mut self.current else { return false };
        let ran = now.saturating_sub(self.accounted_until);
        if ran > 0 {
            self.accounted_until = now;
            entity.sum_exec += ran;
            self.sum.advance(entity, signed(rounding.to_virtual(ran, entity.weight)));
        }
        ran > 0
    }
}
