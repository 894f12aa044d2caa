//! What is counted at the borders of the kernel, instead of call paths: contexts and functions, both
//! by group of threads.

use std::collections::BTreeMap;

use crate::contexts::{Contexts, Cost};
use crate::episode::Count;
use crate::functions::Functions;
use crate::groups::Groups;
use crate::symbols::{Function, Symbols};

/// The contexts, functions and groups of a machine. The counters of functions are those of all CPUs
/// together: only one of them executes at a time.
#[derive(Debug)]
pub(crate) struct Borders {
    pub(crate) contexts: Contexts,
    groups: Groups,
    /// The instructions of functions, by their counters.
    pub(crate) functions: Functions,
    /// The costs of contexts in all phases, by group and path.
    pub(crate) costs: BTreeMap<(u32, Vec<Function>), Cost>,
}

impl Borders {
    /// A machine of that many CPUs, with a kernel of those functions.
    pub(crate) fn new(cpus: usize, symbols: &Symbols) -> Self {
        Self {
            contexts: Contexts::new(cpus, symbols),
            groups: Groups::new(cpus),
            functions: Functions::default(),
            costs: BTreeMap::new(),
        }
    }

    /// A CPU switches to the thread at that address.
    pub(crate) fn switch(
        &mut self,
        cpu: usize,
        thread: u64,
        now: Count,
        functions: &[u64],
    ) {
        let before = self.groups.current(cpu);
        self.groups.switch(cpu, thread, now);
        self.contexts.switch(cpu, thread, now);
        self.regroup(cpu, before, now, functions);
    }

    /// A CPU creates the thread at that address.
    pub(crate) fn create(&mut self, cpu: usize, thread: u64) {
        self.groups.create(cpu, thread);
        self.contexts.create(thread);
    }

    /// The current thread begins a group.
    pub(crate) fn join(&mut self, cpu: usize, now: Count, functions: &[u64]) {
        let before = self.groups.current(cpu);
        self.groups.join(cpu, now);
        self.regroup(cpu, before, now, functions);
    }

    /// The current thread leaves its group.
    pub(crate) fn leave(&mut self, cpu: usize, now: Count, functions: &[u64]) {
        let before = self.groups.current(cpu);
        self.groups.leave(cpu, now);
        self.regroup(cpu, before, now, functions);
    }

    /// The current group of a CPU is another one, if it is not the one before.
    fn regroup(&mut self, cpu: usize, before: u32, now: Count, functions: &[u64]) {
        let group = self.groups.current(cpu);
        if before != group {
            self.contexts.set_group(cpu, group, now);
            self.functions.count(before, functions);
        }
    }

    /// A phase begins.
    pub(crate) fn begin(&mut self, counts: &[Count], functions: &[u64]) {
        self.groups.begin(counts);
        self.contexts.begin_phase(counts);
        self.functions.begin(functions);
    }

    /// A phase ends on that CPU; returns the instructions of each group on each CPU.
    pub(crate) fn end(
        &mut self,
        cpu: usize,
        counts: &[Count],
        functions: &[u64],
    ) -> Vec<BTreeMap<u32, Count>> {
        self.contexts.end_phase(counts, &mut self.costs);
        self.functions.end(self.groups.current(cpu), functions);
        self.groups.end(counts)
    }
}
