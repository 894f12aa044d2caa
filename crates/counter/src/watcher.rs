//! The whole machine: its CPUs, the current phase, and the phases that have ended.
//!
//! Independent of QEMU: it is called for blocks and marks, with the counts so far.

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

/// The whole machine.
#[derive(Debug)]
pub(crate) struct Watcher {
    cpus: Vec<Cpu>,
    whole: Whole,
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
    pub(crate) fn new(cpus: usize, symbols: &Symbols) -> Self {
        let whole = Whole::new(cpus, symbols);
        let idle = Idle::new(cpus);
        let cpus = (0..cpus).map(Cpu::new).collect();
        Self {
            cpus,
            whole,
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
        self.whole.user(cpu, now);
        self.cpus[cpu].user(now, self.present.as_mut());
    }

    /// A CPU switches to another thread, whose stack pointer was at that address.
    pub(crate) fn switch(&mut self, cpu: usize, thread: u64, now: Count) {
        self.whole.switch(cpu, thread, now);
    }

    /// A CPU executes a mark; `counts` are those of all CPUs.
    pub(crate) fn mark(&mut self, cpu: usize, mark: Mark, counts: &[Count]) {
        match mark {
            Mark::Begin => self.begin(counts),
            Mark::Step => self.cpus[cpu].step(counts[cpu], self.present.as_mut()),
            Mark::End => self.end(counts),
            Mark::Attend => {}
        }
    }

    fn begin(&mut self, counts: &[Count]) {
        self.begun += 1;
        if self.begun == 1 {
            let kinds = std::mem::take(&mut self.kinds);
            self.present = Some(Phase::begin(self.phases.len(), counts, kinds));
            self.whole.begin(counts);
            self.idle.begin(counts);
            for (cpu, &now) in self.cpus.iter_mut().zip(counts) {
                cpu.begin(now);
            }
        }
    }

    fn end(&mut self, counts: &[Count]) {
        self.begun = self.begun.saturating_sub(1);
        let Some(phase) = self.present.take_if(|_| self.begun == 0) else { return };
        let (mut on_cpus, kinds) = phase.end(counts);
        self.kinds = kinds;
        let idle = self.idle.end(counts).into_iter().flatten();
        on_cpus.iter_mut().zip(idle).for_each(|(cpu, idle)| cpu.idle = Some(idle));
        // Further phases are not explained; the first ones contain every kind of episode.
        if self.phases.len() < WHOLE_MAX {
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
    use crate::decode::Ending;
    use crate::episode::{Level, What};
    use crate::symbols::Function;
    use std::collections::BTreeMap;

    /// Check that a phase of two threads is from the first's beginning to the last's end.
    #[test]
    fn phases_of_two_threads() {
        let count = |user| [Count { user, kernel: 0 }];
        let mut watcher = Watcher::new(1, &Symbols::parse(""));
        for (mark, user) in [
            (Mark::End, 1),
            (Mark::Begin, 10),
            (Mark::Begin, 20),
            (Mark::End, 30),
            (Mark::End, 50),
            (Mark::End, 60),
        ] {
            watcher.mark(0, mark, &count(user));
        }
        assert_eq!(watcher.phases.len(), 1);
        assert_eq!(watcher.phases[0][0].executed.user, 40);
    }

    /// Check that an interruption is counted on its CPU, and that one outside of the phase is
    /// not counted.
    #[test]
    fn interruptions_of_two_cpus() {
        let (began, back) = (Count { user: 7, kernel: 0 }, Count { user: 7, kernel: 50 });
        let (address, after) = (0x1000, 0x1010);
        let (function, ending) = (Function(1), Ending::Other);
        let (starts_function, is_entry) = (true, true);
        let block = Block { address, after, function, starts_function, is_entry, ending };
        let mut watcher = Watcher::new(2, &Symbols::parse(""));
        for marks in [&[][..], &[Mark::Begin]] {
            let counts = [Count::default(), began];
            marks.iter().for_each(|&mark| watcher.mark(0, mark, &counts));
            watcher.kernel(1, block, began);
            watcher.user(1, back);
        }
        watcher.mark(0, Mark::End, &[Count::default(), back]);
        let what = What::Interruption(Function(1), Level::User);
        let [idle, busy] = watcher.phases[0].as_slice() else { panic!() };
        assert!(idle.values.is_empty());
        assert_eq!(busy.values, BTreeMap::from([(what, BTreeMap::from([(50, 1)]))]));
        assert_eq!(busy.executed, Count { user: 0, kernel: 50 });
    }

    /// Check that the profile of a phase has the instructions executed in it.
    #[test]
    fn whole_phases() {
        let symbols = Symbols::parse("");
        let count = |kernel| Count { user: 7, kernel };
        let block = Block {
            address: 0x1000,
            after: 0x1010,
            function: Function(1),
            starts_function: true,
            is_entry: true,
            ending: Ending::Other,
        };
        let mut watcher = Watcher::new(1, &symbols);
        watcher.mark(0, Mark::Begin, &[count(5)]);
        watcher.kernel(0, block, count(5));
        watcher.switch(0, 0xaa, count(11));
        watcher.kernel(0, block, count(12));
        watcher.user(0, count(40));
        watcher.mark(0, Mark::End, &[count(40)]);
        let cpu = &watcher.phases[0][0];
        assert_eq!(cpu.executed.kernel, 35);
        assert_eq!(cpu.whole.iter().map(|called| called.own).sum::<u64>(), 35);
    }
}
