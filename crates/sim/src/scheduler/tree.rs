//! The ordinary tasks of a CPU: a queue, and one below it for each group of tasks.
//!
//! Like the `cfs_rq` of the kernel, with one level of groups (the `cpu` controller of cgroups, or
//! `CONFIG_SCHED_AUTOGROUP`): a group is an entity of the upper queue while tasks of it are runnable, and
//! each queue chooses by the same rules. Source: `for_each_sched_entity` in `kernel/sched/fair.c`.
//!
//! Not modelled: groups in groups, and the shorter slice of a group with a task that requested one.

use crate::scheduler::fair::{Arrival, Fair, WakeupCheck};
use crate::scheduler::load::Averages;
use crate::scheduler::queue::{Above, Asleep, Entity, Queue};

/// The ordinary tasks of a CPU.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    rules: Fair,
    top: Queue,
    groups: Vec<Group>,
}

/// A group, on one CPU.
#[derive(Debug, Clone)]
struct Group {
    queue: Queue,
    /// Its entity while no task of it is runnable.
    entity: Option<Box<Entity>>,
    /// Which part of the group's load on all CPUs is from here.
    contributed: u64,
}

/// The number of a group's entity, in the place of a task.
fn number(group: usize) -> usize {
    usize::MAX - group
}

impl Tree {
    /// One without tasks, with groups of these weights; on several CPUs, load averages decide.
    pub(crate) fn new(rules: Fair, weights: &[u64], averages: bool) -> Self {
        let queue = || Queue::new(rules.key(), averages);
        let entity = |(group, weight): (usize, &u64)| {
            Box::new(Entity::new(number(group), *weight))
        };
        let entities = weights.iter().enumerate().map(entity);
        let groups = entities.map(|entity| Group {
            queue: queue(),
            entity: Some(entity),
            contributed: 0,
        });
        Self { rules, top: queue(), groups: groups.collect() }
    }

    /// The group of an entity of the upper queue.
    #[inline]
    fn group(&self, entity: usize) -> Option<usize> {
        let group = usize::MAX - entity;
        (group < self.groups.len()).then_some(group)
    }

    #[inline]
    fn running_group(&self) -> Option<usize> {
        self.group(self.top.current.as_ref()?.task)
    }

    /// The group of a queued task.
    #[inline]
    fn group_of(&self, task: usize) -> Option<usize> {
        self.groups.iter().position(|group| group.queue.find(task).is_some())
    }

    fn queues(&self) -> impl Iterator<Item = &Queue> {
        std::iter::once(&self.top).chain(self.groups.iter().map(|group| &group.queue))
    }

    /// The queue of a group; `None`: the upper one.
    #[inline]
    fn queue(&self, group: Option<usize>) -> &Queue {
        group.map_or(&self.top, |group| &self.groups[group].queue)
    }

    /// The same, with the rules, to change it.
    #[inline]
    fn rules_of(&mut self, group: Option<usize>) -> (&Fair, &mut Queue) {
        match group {
            Some(group) => (&self.rules, &mut self.groups[group].queue),
            None => (&self.rules, &mut self.top),
        }
    }

    /// The queue in which a task that woke up and the running one, or their groups, are compared, and the
    /// entity of the former there.
    #[inline]
    fn common(&self, woken: usize) -> (Option<usize>, usize) {
        match self.group_of(woken) {
            None => (None, woken),
            Some(group) if self.running_group() == Some(group) => (Some(group), woken),
            Some(group) => (None, number(group)),
        }
    }

    /// Whether one of them runs.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.top.current.is_some()
    }

    /// Until when the running one's time is accounted.
    #[inline]
    pub(crate) fn accounted_until(&self) -> u64 {
        self.queue(self.running_group()).accounted_until
    }

    /// The number of tasks, the running one included.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        let is_group = |entity: &&Entity| self.group(entity.task).is_some();
        let groups = match self.groups.is_empty() {
            true => 0,
            false => self.top.entities().filter(is_group).count(),
        };
        self.queues().map(Queue::len).sum::<usize>() - groups
    }

    /// One of them.
    pub(crate) fn find(&self, task: usize) -> Option<&Entity> {
        self.queues().find_map(|queue| queue.find(task))
    }

    /// The tasks that wait, those of each queue in their order.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Entity> {
        let waiting = self.queues().flat_map(Queue::waiting);
        waiting.filter(|entity| self.group(entity.task).is_none())
    }

    /// Accounts the running one's time until now; returns whether to reschedule.
    #[inline]
    pub(crate) fn account(&mut self, now: u64) -> bool {
        let above = self.rules.account(&mut self.top, now);
        let Some(group) = self.running_group() else { return above };
        self.rules.account(&mut self.groups[group].queue, now) || above
    }

    /// Accounts, places a task, and queues it; returns whether to reschedule.
    #[inline]
    pub(crate) fn enqueue(
        &mut self,
        entity: Box<Entity>,
        arrival: Arrival,
        now: u64,
    ) -> bool {
        let Some(group) = entity.group else {
            let reschedule = self.rules.enqueue(&mut self.top, entity, arrival, now);
            self.tell_groups();
            return reschedule;
        };
        let own = &mut self.groups[group];
        let below = self.rules.enqueue(&mut own.queue, entity, arrival, now);
        let above = match own.entity.take() {
            Some(entity) => {
                self.rules.enqueue(&mut self.top, entity, Arrival::Woken, now)
            }
            None => self.wake_group(group, now),
        };
        self.tell_groups();
        below || above
    }

    /// A group that sleeps but is still queued wakes up.
    fn wake_group(&mut self, group: usize, now: u64) -> bool {
        let queued = self.top.find(number(group));
        let is_delayed = queued.is_some_and(|entity| entity.delayed);
        is_delayed && self.rules.requeue(&mut self.top, number(group), now) == Some(true)
    }

    /// One that sleeps but is still queued wakes up; returns whether to reschedule. `None`: it is awake.
    pub(crate) fn requeue(&mut self, task: usize, now: u64) -> Option<bool> {
        let (rules, queue) = self.rules_of(self.group_of(task));
        rules.requeue(queue, task, now)
    }

    /// The running task sleeps; `None`: it stays queued until it is eligible. All is accounted.
    #[inline]
    pub(crate) fn sleep(&mut self) -> Option<Box<Entity>> {
        let Some(group) = self.running_group() else {
            let entity = self.rules.sleep(&mut self.top);
            self.tell_groups();
            return entity;
        };
        let own = &mut self.groups[group];
        let entity = self.rules.sleep(&mut own.queue);
        if own.queue.len() == 0 {
            own.entity = self.rules.sleep(&mut self.top);
        }
        self.tell_groups();
        entity
    }

    /// The virtual time of a task that sleeps becomes independent of its queue.
    pub(crate) fn detach(&mut self, entity: &mut Entity, now: u64) {
        let (rules, queue) = self.rules_of(entity.group);
        rules.detach(queue, entity, now);
    }

    /// A waiting task goes to another CPU.
    pub(crate) fn leave(&mut self, task: usize, now: u64) -> Option<Box<Entity>> {
        let Some(group) = self.group_of(task) else {
            let entity = self.rules.leave(&mut self.top, task, now);
            self.tell_groups();
            return entity;
        };
        let own = &mut self.groups[group];
        let entity = self.rules.leave(&mut own.queue, task, now);
        if own.queue.len() == 0 {
            self.withdraw(group, now);
        }
        self.tell_groups();
        entity
    }

    /// A group without tasks is no longer in the upper queue.
    fn withdraw(&mut self, group: usize, now: u64) {
        if self.top.is_current(number(group)) {
            self.rules.account(&mut self.top, now);
            self.top.put_current();
        }
        let Some(mut entity) = self.rules.leave(&mut self.top, number(group), now) else {
            return;
        };
        // It stays on this CPU.
        self.rules.attach(&self.top, &mut entity);
        self.top.attach_load(&mut entity);
        entity.delayed = false;
        self.groups[group].entity = Some(entity);
    }

    /// How long the running one may run until a slice is over, in real time; `None`: there are no others.
    #[inline]
    pub(crate) fn rest(&self) -> Option<u64> {
        let above = self.rules.rest(&self.top);
        let Some(group) = self.running_group() else { return above };
        let below = self.rules.rest(&self.groups[group].queue);
        [above, below].into_iter().flatten().min()
    }

    /// A tick; returns whether to reschedule.
    #[inline]
    pub(crate) fn tick(&mut self, now: u64) -> bool {
        let above = self.rules.tick(&mut self.top, now);
        let Some(group) = self.running_group() else { return above };
        self.rules.tick(&mut self.groups[group].queue, now) || above
    }

    /// Whether one that woke up preempts the running one.
    #[inline]
    pub(crate) fn preempts(
        &mut self,
        woken: usize,
        check: WakeupCheck,
        asleep: &mut Asleep,
    ) -> bool {
        let (group, entity) = self.common(woken);
        let (rules, queue) = self.rules_of(group);
        let preempts = rules.preempts(queue, entity, check, asleep);
        self.keep_groups(asleep);
        preempts
    }

    /// How far one that woke up is before the running one, and before the average of the others, where
    /// they are compared.
    pub(crate) fn ahead(&self, woken: usize) -> (i64, i64) {
        let (group, entity) = self.common(woken);
        let queue = self.queue(group);
        let Some(entity) = queue.find(entity) else { return (0, 0) };
        let running = queue.current.as_ref().map_or(entity.vruntime, |one| one.vruntime);
        let average = queue.average_without(entity).unwrap_or(entity.vruntime);
        (running - entity.vruntime, average - entity.vruntime)
    }

    /// Chooses which task runs next, and lets it run from `now` on, instead of the running one; `None`: there
    /// is none. Those that only waited to sleep are moved to `asleep`. All is accounted.
    #[inline]
    pub(crate) fn choose(&mut self, asleep: &mut Asleep, now: u64) -> Option<usize> {
        loop {
            let picked = self.rules.pick(&mut self.top, asleep);
            self.keep_groups(asleep);
            let group = self.group(picked?);
            let task = match group {
                Some(group) => self.rules.pick(&mut self.groups[group].queue, asleep),
                None => picked,
            };
            if let Some(task) = task {
                self.set_next(group, task, now);
                return Some(task);
            }
            if let Some(group) = group {
                self.withdraw(group, now);
                self.tell_groups();
            }
        }
    }

    /// Takes groups out of the entities that were found to sleep.
    #[inline]
    fn keep_groups(&mut self, asleep: &mut Asleep) {
        if !self.groups.is_empty() {
            self.keep_each_group(asleep);
        }
    }

    fn keep_each_group(&mut self, asleep: &mut Asleep) {
        for entity in std::mem::take(asleep) {
            match self.group(entity.task) {
                Some(group) => self.groups[group].entity = Some(entity),
                None => asleep.push(entity),
            }
        }
        self.tell_groups();
    }

    /// Lets a task of a group, or of none, run from `now` on, instead of the running one.
    #[inline]
    pub(crate) fn set_next(&mut self, group: Option<usize>, task: usize, now: u64) {
        let before = self.running_group();
        if let Some(before) = before.filter(|_| before != group) {
            self.groups[before].queue.put_current();
        }
        self.rules.set_next(&mut self.top, group.map_or(task, number), now);
        if let Some(group) = group {
            self.rules.set_next(&mut self.groups[group].queue, task, now);
        }
    }

    /// Lets the running one wait.
    #[inline]
    pub(crate) fn put_current(&mut self) {
        if let Some(group) = self.running_group() {
            self.groups[group].queue.put_current();
        }
        self.top.put_current();
    }

    /// Tells each queue what is above it and beside it, on which slices of CFS depend.
    #[inline]
    fn tell_groups(&mut self) {
        if !self.groups.is_empty() {
            self.tell_each_group();
        }
    }

    fn tell_each_group(&mut self) {
        let (all, load) = (self.len(), self.top.load());
        self.top.above = Above { part: None, tasks: all.saturating_sub(self.top.len()) };
        for (place, group) in self.groups.iter_mut().enumerate() {
            let entity = self.top.find(number(place));
            group.queue.above = Above {
                part: entity.map(|entity| (entity.weight, load)),
                tasks: all.saturating_sub(group.queue.len()),
            };
        }
    }

    /// The averages of the CPU.
    pub(crate) fn load(&mut self, now: u64) -> Averages {
        self.top.update_load(now);
        self.top.average.map_or(Averages::default(), |average| average.averages)
    }

    /// The load of a waiting task, as a part of that of the CPU (`task_h_load`).
    pub(crate) fn load_of(&self, entity: &Entity) -> u64 {
        let own = entity.average.averages.load;
        let Some(group) = entity.group else { return own };
        let above =
            self.top.find(number(group)).map_or(0, |one| one.average.averages.load);
        let group = &self.groups[group].queue.average;
        own * above / (group.map_or(0, |average| average.averages.load) + 1)
    }

    /// The weight of a group's runnable tasks.
    pub(crate) fn weight_of(&self, group: usize) -> u64 {
        self.groups[group].queue.load()
    }

    /// The load of a group here, and on all CPUs, where it is updated (`calc_group_shares`, `update_tg_load_avg`).
    pub(crate) fn group_load(
        &mut self,
        group: usize,
        all: &mut u64,
        now: u64,
    ) -> [u64; 2] {
        let Group { queue, contributed, .. } = &mut self.groups[group];
        queue.update_load(now);
        let average = queue.average.map_or(0, |average| average.averages.load);
        if average.abs_diff(*contributed) > *contributed / 64 {
            *all = *all - *contributed + average;
            *contributed = average;
        }
        let own = queue.load().max(average);
        [own, all.saturating_sub(*contributed) + own]
    }

    /// A waiting task stays; others come before it when one is to be moved.
    pub(crate) fn refuse(&mut self, task: usize, now: u64) {
        let (_, queue) = self.rules_of(self.group_of(task));
        if let Some(entity) = queue.waiting_mut(task) {
            entity.moved_last = now;
        }
    }

    /// The entity of a group with runnable tasks has another weight, if that differs by more than the threshold.
    pub(crate) fn reweight(
        &mut self,
        group: usize,
        weight: u64,
        threshold: u64,
        now: u64,
    ) {
        let entity = self.top.find(number(group)).filter(|_| self.weight_of(group) > 0);
        if entity.is_some_and(|entity| entity.weight.abs_diff(weight) > threshold) {
            self.rules.reweight(&mut self.top, number(group), weight, now);
            self.tell_groups();
        }
    }

    /// The upper queue, for tests that set its state.
    #[cfg(test)]
    pub(crate) fn top(&mut self) -> &mut Queue {
        &mut self.top
    }
}
