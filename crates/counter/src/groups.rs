//! Groups of threads: the threads that a program has started, directly or through others, with
//! their instructions.
//!
//! A thread begins a group, or leaves its group, with a mark; a new thread belongs to the group
//! of the thread that creates it. A thread is known by the address of its `task_struct`: the
//! kernel writes a new thread's state in `wake_up_new_task`, while its creator is current, and
//! reads the next thread's stack pointer in `__switch_to_asm`. Interrupts belong to the group of
//! the thread that they interrupt.

use std::collections::BTreeMap;

use crate::episode::Count;

/// The group of all threads that no mark has put into another one.
const NONE: u32 = 0;

#[derive(Debug, Default)]
struct OnCpu {
    /// The current thread; unknown before the first switch.
    thread: Option<u64>,
    group: u32,
    counted: Count,
    /// The instructions of each group in the phase.
    executed: BTreeMap<u32, Count>,
}

/// The groups of a machine.
#[derive(Debug)]
pub(crate) struct Groups {
    cpus: Vec<OnCpu>,
    /// The groups of threads that are in one, by address.
    members: BTreeMap<u64, u32>,
    begun: u32,
}

impl Groups {
    /// A machine of that many CPUs, without groups.
    pub(crate) fn new(cpus: usize) -> Self {
        let cpus = (0..cpus).map(|_| OnCpu::default()).collect();
        Self { cpus, members: BTreeMap::new(), begun: NONE }
    }

    /// The group of a CPU's current thread.
    pub(crate) fn current(&self, cpu: usize) -> u32 {
        self.cpus[cpu].group
    }

    /// The current thread begins a group.
    pub(crate) fn join(&mut self, cpu: usize, now: Count) {
        self.begun += 1;
        self.enter(cpu, self.begun, now);
    }

    /// The current thread leaves its group.
    pub(crate) fn leave(&mut self, cpu: usize, now: Count) {
        self.enter(cpu, NONE, now);
    }

    fn enter(&mut self, cpu: usize, group: u32, now: Count) {
        self.count(cpu, now);
        self.cpus[cpu].group = group;
        if let Some(thread) = self.cpus[cpu].thread {
            self.remember(thread, group);
        }
    }

    /// The current thread creates the thread at that address.
    pub(crate) fn create(&mut self, cpu: usize, thread: u64) {
        self.remember(thread, self.cpus[cpu].group);
    }

    fn remember(&mut self, thread: u64, group: u32) {
        // The address may have been that of a thread that has ended.
        match group {
            NONE => self.members.remove(&thread),
            group => self.members.insert(thread, group),
        };
    }

    /// A CPU switches to the thread at that address.
    pub(crate) fn switch(&mut self, cpu: usize, thread: u64, now: Count) {
        self.count(cpu, now);
        let group = self.members.get(&thread).copied().unwrap_or(NONE);
        let on = &mut self.cpus[cpu];
        (on.thread, on.group) = (Some(thread), group);
    }

    /// A phase begins with those counts.
    pub(crate) fn begin(&mut self, counts: &[Count]) {
        for (on, &now) in self.cpus.iter_mut().zip(counts) {
            on.counted = now;
            on.executed.clear();
        }
    }

    /// A phase ends with those counts; returns the instructions of each group on each CPU. Without
    /// groups there are none.
    pub(crate) fn end(&mut self, counts: &[Count]) -> Vec<BTreeMap<u32, Count>> {
        for (cpu, &now) in counts.iter().enumerate() {
            self.count(cpu, now);
        }
        let has_groups = self.begun != NONE;
        let of = |on: &mut OnCpu| match has_groups {
            true => std::mem::take(&mut on.executed),
            false => BTreeMap::new(),
        };
        self.cpus.iter_mut().map(of).collect()
    }

    fn count(&mut self, cpu: usize, now: Count) {
        let on = &mut self.cpus[cpu];
        let executed = on.executed.entry(on.group).or_default();
        let since = now.since(on.counted);
        *executed = Count {
            user: executed.user + since.user,
            kernel: executed.kernel + since.kernel,
        };
        on.counted = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(user: u64, kernel: u64) -> Count {
        Count { user, kernel }
    }

    /// Check that a group has the instructions of the thread that began it and of those that it
    /// created, and that the sum over groups is that of the CPU.
    #[test]
    fn threads_inherit() {
        let mut groups = Groups::new(1);
        groups.switch(0, 0xa0, count(0, 10));
        groups.begin(&[count(0, 10)]);
        groups.join(0, count(5, 10));
        groups.create(0, 0xb0);
        groups.leave(0, count(7, 20));
        groups.switch(0, 0xb0, count(8, 30));
        groups.create(0, 0xc0);
        groups.switch(0, 0xc0, count(100, 40));
        groups.switch(0, 0xa0, count(200, 50));
        let ended = groups.end(&[count(201, 50)]);
        let expected = [(0, count(5 + 1 + 1, 10)), (1, count(2 + 92 + 100, 30))];
        assert_eq!(ended, [BTreeMap::from(expected)]);
        let sum = |ended: &BTreeMap<u32, Count>| ended.values().map(|of| of.all()).sum();
        assert_eq!(ended.iter().map(sum).collect::<Vec<u64>>(), [201 + 40]);
    }

    /// Check that a thread at the address of an ended one belongs to its own creator's group, and
    /// that groups are numbered as they begin.
    #[test]
    fn reused_addresses() {
        let mut groups = Groups::new(2);
        groups.join(0, Count::default());
        groups.create(0, 0xb0);
        groups.join(1, Count::default());
        groups.create(1, 0xc0);
        groups.create(1, 0xb0);
        groups.switch(0, 0xb0, Count::default());
        assert_eq!((groups.current(0), groups.current(1)), (2, 2));
        groups.leave(1, Count::default());
        groups.create(1, 0xb0);
        groups.switch(0, 0xb0, Count::default());
        assert_eq!(groups.current(0), 0);
    }

    /// Check that a machine without groups reports none.
    #[test]
    fn no_groups() {
        let mut groups = Groups::new(1);
        groups.begin(&[Count::default()]);
        assert_eq!(groups.end(&[count(7, 7)]), [BTreeMap::new()]);
    }
}
