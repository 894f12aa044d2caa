//! The whole machine: its CPUs, the current phase, and the phases that have ended.
//!
//! Independent of QEMU: it is called for blocks and marks, with the counts so far.

use crate::borders::Borders;
use crate::cpu::Cpu;
use crate::decode::Mark;
use crate::episode::Count;
use crate::idle::Idle;
use crate::kinds::Kinds;
use crate::phase::{OnCpu, Phase};
use crate::symbols::Symbols;
use crate::walk::Block;
use crate::whole::Whole;

/// An upper limit for the phases of a measurement.
const PHASES_MAX: usize = 4096;
/// Number of phases whose calls are stored.
const WHOLE_MAX: usize = 128;

/// Functions of arm64 kernels that tell what an exception or interrupt is: their entries do not. A system call
/// (arch/arm64/kernel/entry-common.c), the timer (drivers/clocksource/arm_arch_timer.c), an interrupt of
/// another CPU, and accesses to memory.
const HANDLERS: [&str; 8] = [
    "el0_svc",
    "arch_timer_handler_virt",
    "arch_timer_handler_phys",
    "ipi_handler",
    "el0_da",
    "el0_ia",
    "el1_abort",
    "el1_undef",
];

/// How the kernel's instructions are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// By call path, in each interruption and step: every block of the kernel calls back.
    Calls,
    /// By context, and by function: only borders call back, which is twice as fast.
    Contexts,
}

/// The whole machine.
#[derive(Debug)]
pub(crate) struct Watcher {
    cpus: Vec<Cpu>,
    whole: Whole,
    /// Instead of `cpus` and `whole`.
    pub(crate) borders: Option<Borders>,
    /// The halts of the CPUs.
    pub(crate) idle: Idle,
    /// Number of begin marks without their end: several threads may each mark one phase.
    begun: usize,
    present: Option<Phase>,
    /// The counts of each CPU in the phases that have ended, in order.
    pub(crate) phases: Vec<Vec<OnCpu>>,
    /// The kinds of episodes in them.
    pub(crate) kinds: Kinds,
}

impl Watcher {
    /// A machine of that many CPUs, with a kernel of those functions.
    pub(crate) fn new(cpus: usize, symbols: &Symbols, detail: Detail) -> Self {
        let borders = (detail == Detail::Contexts).then(|| Borders::new(cpus, symbols));
        let (whole, idle) = (Whole::new(cpus, symbols), Idle::new(cpus));
        let handlers = match symbols.has_vectors() {
            true => symbols.named(&HANDLERS),
            false => Vec::new(),
        };
        let cpu = |number| Cpu::new(number).with_handlers(handlers.clone());
        let cpus = (0..cpus).map(cpu).collect();
        Self {
            cpus,
            whole,
            borders,
            idle,
            begun: 0,
            present: None,
            phases: Vec::new(),
            kinds: Kinds::default(),
        }
    }

    /// A CPU begins a block of the kernel.
    pub(crate) fn kernel(&mut self, cpu: usize, block: Block, now: Count) {
        self.whole.kernel(cpu, block, now);
        self.cpus[cpu].kernel(block, now, self.present.as_mut());
    }

    /// A CPU returns to user mode.
    pub(crate) fn user(&mut self, cpu: usize, now: Count) {
        if let Some(borders) = &mut self.borders {
            return borders.contexts.user(cpu, now);
        }
        self.whole.user(cpu, now);
        self.cpus[cpu].user(now, self.present.as_mut());
    }

    /// A CPU switches to the thread at that address; `functions` are the counters of functions.
    pub(crate) fn switch(
        &mut self,
        cpu: usize,
        thread: u64,
        now: Count,
        functions: &[u64],
    ) {
        match &mut self.borders {
            Some(borders) => borders.switch(cpu, thread, now, functions),
            None => self.whole.switch(cpu, thread, now),
        }
    }

    /// A CPU executes a mark; `counts` are those of all CPUs, `functions` the counters of
    /// functions.
    pub(crate) fn mark(
        &mut self,
        cpu: usize,
        mark: Mark,
        counts: &[Count],
        functions: &[u64],
    ) {
        let borders = self.borders.as_mut();
        match mark {
            Mark::Begin => self.begin(counts, functions),
            Mark::Step => self.cpus[cpu].step(counts[cpu], self.present.as_mut()),
            Mark::End => self.end(cpu, counts, functions),
            Mark::Join => {
                borders.into_iter().for_each(|it| it.join(cpu, counts[cpu], functions));
            }
            Mark::Leave => {
                borders.into_iter().for_each(|it| it.leave(cpu, counts[cpu], functions));
            }
            Mark::Attend => {}
        }
    }

    fn begin(&mut self, counts: &[Count], functions: &[u64]) {
        self.begun += 1;
        if self.begun == 1 {
            let kinds = std::mem::take(&mut self.kinds);
            self.present = Some(Phase::begin(self.phases.len(), counts, kinds));
            self.idle.begin(counts);
            self.whole.begin(counts);
            if let Some(borders) = &mut self.borders {
                borders.begin(counts, functions);
            }
            for (cpu, &now) in self.cpus.iter_mut().zip(counts) {
                cpu.begin(now);
            }
        }
    }

    fn end(&mut self, cpu: usize, counts: &[Count], functions: &[u64]) {
        self.begun = self.begun.saturating_sub(1);
        let Some(phase) = self.present.take_if(|_| self.begun == 0) else { return };
        let (mut on_cpus, kinds) = phase.end(counts);
        self.kinds = kinds;
        let idle = self.idle.end(counts).into_iter().flatten();
        on_cpus.iter_mut().zip(idle).for_each(|(cpu, idle)| cpu.idle = Some(idle));
        if let Some(borders) = &mut self.borders {
            let groups = borders.end(cpu, counts, functions);
            on_cpus.iter_mut().zip(groups).for_each(|(cpu, groups)| cpu.groups = groups);
        } else if self.phases.len() < WHOLE_MAX {
            // Further phases are not explained; the first ones contain every kind of episode.
            let ended = self.whole.end(counts);
            on_cpus.iter_mut().zip(ended).for_each(|(cpu, whole)| cpu.whole = whole);
        }
        self.cpus.iter_mut().for_each(Cpu::end);
        if self.phases.len() < PHASES_MAX {
            self.phases.push(on_cpus);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contexts::{From, Point};
    use crate::decode::Ending;
    use crate::episode::{Level, What};
    use crate::symbols::Function;
    use std::collections::BTreeMap;

    /// A block at the start of a function.
    fn start(function: Function, is_entry: bool, ending: Ending) -> Block {
        let (address, after, starts_function) = (0x1000, 0x1010, true);
        Block { address, after, function, starts_function, is_entry, ending }
    }

    /// Check that a phase of two threads is from the first's beginning to the last's end.
    #[test]
    fn phases_of_two_threads() {
        let count = |user| [Count { user, kernel: 0 }];
        let mut watcher = Watcher::new(1, &Symbols::parse(""), Detail::Calls);
        for (mark, user) in [
            (Mark::End, 1),
            (Mark::Begin, 10),
            (Mark::Begin, 20),
            (Mark::End, 30),
            (Mark::End, 50),
            (Mark::End, 60),
        ] {
            watcher.mark(0, mark, &count(user), &[]);
        }
        assert_eq!(watcher.phases.len(), 1);
        assert_eq!(watcher.phases[0][0].executed.user, 40);
    }

    /// Check that an interruption is counted on its CPU, and that one outside of the phase is
    /// not counted.
    #[test]
    fn interruptions_of_two_cpus() {
        let (began, back) = (Count { user: 7, kernel: 0 }, Count { user: 7, kernel: 50 });
        let block = start(Function(1), true, Ending::Other);
        let mut watcher = Watcher::new(2, &Symbols::parse(""), Detail::Calls);
        for marks in [&[][..], &[Mark::Begin]] {
            let counts = [Count::default(), began];
            marks.iter().for_each(|&mark| watcher.mark(0, mark, &counts, &[]));
            watcher.kernel(1, block, began);
            watcher.user(1, back);
        }
        watcher.mark(0, Mark::End, &[Count::default(), back], &[]);
        let what = What::Interruption(Function(1), Level::User);
        let [idle, busy] = watcher.phases[0].as_slice() else { panic!() };
        assert!(idle.values.is_empty());
        assert_eq!(busy.values, BTreeMap::from([(what, BTreeMap::from([(50, 1)]))]));
        assert_eq!(busy.executed, Count { user: 0, kernel: 50 });
    }

    /// Check that the threads that a group's thread creates belong to its group, in the counts and
    /// in the contexts.
    #[test]
    fn groups() {
        let count = |user, kernel| Count { user, kernel };
        let block = start(Function(1), true, Ending::Other);
        let mut watcher = Watcher::new(1, &Symbols::parse(""), Detail::Contexts);
        watcher.switch(0, 0xa0, count(0, 0), &[]);
        watcher.mark(0, Mark::Begin, &[count(0, 0)], &[]);
        watcher.mark(0, Mark::Join, &[count(1, 0)], &[]);
        watcher.borders.as_mut().unwrap().create(0, 0xb0);
        watcher.mark(0, Mark::Leave, &[count(3, 0)], &[]);
        let contexts = &mut watcher.borders.as_mut().unwrap().contexts;
        contexts.kernel(0, block, None, From::User, count(3, 0));
        watcher.switch(0, 0xb0, count(3, 10), &[]);
        watcher.user(0, count(3, 17));
        watcher.mark(0, Mark::End, &[count(103, 17)], &[]);
        let groups = [(0, count(1, 10)), (1, count(102, 7))];
        assert_eq!(watcher.phases[0][0].groups, BTreeMap::from(groups));
        let costs = &watcher.borders.as_ref().unwrap().costs;
        let own = |wanted| {
            let of = costs.iter().filter(|((group, _), _)| *group == wanted);
            of.map(|(_, cost)| cost.own).sum::<u64>()
        };
        assert_eq!([own(0), own(1)], [10, 7]);
    }

    /// Check that contexts and functions are counted by group, if these are counted instead of call
    /// paths, and that both add up to the kernel's instructions of each group.
    #[test]
    fn contexts() {
        let count = |user, kernel| Count { user, kernel };
        let symbols = Symbols::parse("ffffffff80001000 T handle_softirqs");
        let function = symbols.named(&["handle_softirqs"])[0];
        let block = start(function, false, Ending::Return);
        let mut watcher = Watcher::new(1, &symbols, Detail::Contexts);
        watcher.mark(0, Mark::Begin, &[count(0, 0)], &[0, 0]);
        watcher.mark(0, Mark::Join, &[count(0, 4)], &[4, 0]);
        let borders = watcher.borders.as_mut().unwrap();
        borders.create(0, 0xb0);
        let point = Point::of("handle_softirqs").filter(|point| point.is_left());
        let contexts = &mut borders.contexts;
        contexts.kernel(0, block, point, From::User, count(0, 4));
        contexts.leave(0, function, count(0, 10));
        watcher.user(0, count(0, 10));
        watcher.mark(0, Mark::End, &[count(9, 10)], &[4, 6]);
        let borders = watcher.borders.as_ref().unwrap();
        let own: Vec<_> =
            borders.costs.iter().map(|((group, _), cost)| (*group, cost.own)).collect();
        assert_eq!(own, [(0, 4), (1, 6)]);
        assert_eq!(borders.functions.all().collect::<Vec<_>>(), [(0, 0, 4), (1, 1, 6)]);
    }

    /// Check that the profile of a phase has the instructions executed in it.
    #[test]
    fn whole_phases() {
        let symbols = Symbols::parse("");
        let count = |kernel| Count { user: 7, kernel };
        let block = start(Function(1), true, Ending::Other);
        let mut watcher = Watcher::new(1, &symbols, Detail::Calls);
        watcher.mark(0, Mark::Begin, &[count(5)], &[]);
        watcher.kernel(0, block, count(5));
        watcher.switch(0, 0xaa, count(11), &[]);
        watcher.kernel(0, block, count(12));
        watcher.user(0, count(40));
        watcher.mark(0, Mark::End, &[count(40)], &[]);
        let cpu = &watcher.phases[0][0];
        assert_eq!(cpu.executed.kernel, 35);
        assert_eq!(cpu.whole.iter().map(|called| called.own).sum::<u64>(), 35);
    }
}
