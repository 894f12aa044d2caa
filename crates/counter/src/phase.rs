//! The counts between the marks of a phase: instructions, interruptions, steps, and their kinds.

use std::collections::BTreeMap;

use crate::episode::{Count, What};
use crate::idle::Stretches;
use crate::kinds::Kinds;
use crate::tree::Tree;
use crate::whole::Called;

/// The counts of one CPU in the phase.
#[derive(Debug, Default)]
pub(crate) struct OnCpu {
    began: Count,
    /// Instructions between the marks; known when the phase has ended.
    pub(crate) executed: Count,
    /// The costs of each type of episode, with their frequencies.
    pub(crate) values: BTreeMap<What, BTreeMap<u64, u64>>,
    /// The kernel's instructions by call path; known when the phase has ended.
    pub(crate) whole: Vec<Called>,
    /// The instructions of each group; known when the phase has ended.
    pub(crate) groups: BTreeMap<u32, Count>,
    /// The idle stretches; known when the phase has ended, if this QEMU exports its clock.
    pub(crate) idle: Option<Stretches>,
}

/// One phase.
#[derive(Debug)]
pub(crate) struct Phase {
    pub(crate) cpus: Vec<OnCpu>,
    /// Its number, counted from 0.
    number: usize,
    /// The kinds of episodes of this phase and those before it.
    kinds: Kinds,
}

impl Phase {
    /// A phase that begins with those counts, after phases with those kinds of episodes.
    pub(crate) fn begin(number: usize, counts: &[Count], kinds: Kinds) -> Self {
        let on_cpu = |&began: &Count| OnCpu { began, ..OnCpu::default() };
        Self { cpus: counts.iter().map(on_cpu).collect(), number, kinds }
    }

    /// Ends the phase with those counts; returns the counts of each CPU, and all kinds so far.
    pub(crate) fn end(mut self, counts: &[Count]) -> (Vec<OnCpu>, Kinds) {
        for (cpu, &now) in self.cpus.iter_mut().zip(counts) {
            cpu.executed = now.since(cpu.began);
        }
        (self.cpus, self.kinds)
    }

    /// Adds an episode that has ended.
    pub(crate) fn add(&mut self, cpu: usize, what: What, total: u64, tree: Tree) {
        let values = self.cpus[cpu].values.entry(what).or_default();
        *values.entry(total).or_default() += 1;
        self.kinds.add(self.number, cpu, what, tree);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episode::Level;
    use crate::symbols::Function;

    /// Check that a phase has the instructions executed in it, and each cost with its number.
    #[test]
    fn counts_and_episodes() {
        let count = |user, kernel| Count { user, kernel };
        let counts = [count(10, 5), count(0, 0)];
        let mut phase = Phase::begin(0, &counts, Kinds::default());
        let what = What::Interruption(Function(1), Level::User);
        for total in [7, 9, 7] {
            let mut tree = Tree::new();
            tree.add(Tree::ROOT, total);
            phase.add(1, what, total, tree);
        }
        let (cpus, kinds) = phase.end(&[count(110, 6), count(1, 0)]);
        assert_eq!(cpus[0].executed, count(100, 1));
        assert_eq!(cpus[1].values[&what], BTreeMap::from([(7, 2), (9, 1)]));
        let totals: Vec<u64> = kinds.usual().iter().map(|kind| kind.total).collect();
        assert_eq!(totals, [7, 9]);
    }
}
