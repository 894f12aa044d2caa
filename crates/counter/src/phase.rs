//! What is counted between the marks of a phase: instructions, interruptions, steps, and
//! the first episode of each kind and cost, taken apart.

use std::collections::BTreeMap;

use crate::symbols::Function;
use crate::tree::Tree;

/// Episodes of one kind that are kept whole while the phase lasts; later ones are only
/// counted.
const EPISODES_MAX: usize = 64;
/// Those of them that are told: the ones that cost what was seen most often.
const EPISODES_TOLD: usize = 8;

/// Instructions executed so far on one CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) user: u64,
    pub(crate) kernel: u64,
}

impl Count {
    /// What was executed since an earlier count.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self { user: self.user - earlier.user, kernel: self.kernel - earlier.kernel }
    }

    /// User's and kernel's together.
    pub(crate) fn all(self) -> u64 {
        self.user + self.kernel
    }
}

/// What was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    User,
    Kernel,
}

/// What an episode is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// From one step mark to the next.
    Step,
    /// From entering the kernel there to leaving it.
    Interruption(Function, Level),
}

/// An episode that was kept.
#[derive(Debug)]
pub(crate) struct Episode {
    pub(crate) cpu: usize,
    pub(crate) what: What,
    pub(crate) total: u64,
    pub(crate) tree: Tree,
}

/// What one CPU did in the phase.
#[derive(Debug, Default)]
pub(crate) struct OnCpu {
    began: Count,
    /// What was executed between the marks; known when the phase has ended.
    pub(crate) executed: Count,
    /// How often each kind of episode cost how much.
    pub(crate) values: BTreeMap<What, BTreeMap<u64, u64>>,
}

/// One phase.
#[derive(Debug)]
pub(crate) struct Phase {
    pub(crate) cpus: Vec<OnCpu>,
    pub(crate) episodes: Vec<Episode>,
}

impl Phase {
    /// A phase that begins with those counts.
    pub(crate) fn begin(counts: &[Count]) -> Self {
        let on_cpu = |&began: &Count| OnCpu { began, ..OnCpu::default() };
        Self { cpus: counts.iter().map(on_cpu).collect(), episodes: Vec::new() }
    }

    /// Ends the phase with those counts.
    pub(crate) fn end(&mut self, counts: &[Count]) {
        for (cpu, &now) in self.cpus.iter_mut().zip(counts) {
            cpu.executed = now.since(cpu.began);
        }
    }

    /// The episodes that are worth telling, in the order in which they were seen.
    pub(crate) fn usual_episodes(&self) -> impl Iterator<Item = &Episode> {
        self.episodes.iter().filter(|episode| self.is_usual(episode))
    }

    fn is_usual(&self, episode: &Episode) -> bool {
        let Some(values) = self.cpus[episode.cpu].values.get(&episode.what) else {
            return false;
        };
        let times = values.get(&episode.total).copied().unwrap_or(0);
        let before = |(&total, &other): (&u64, &u64)| {
            other > times || (other == times && total < episode.total)
        };
        values.iter().filter(|&value| before(value)).count() < EPISODES_TOLD
    }

    /// Takes in an episode that has ended; `tree` is worked out only where it is the
    /// first of its kind and cost.
    pub(crate) fn add(
        &mut self,
        cpu: usize,
        what: What,
        total: u64,
        tree: impl FnOnce() -> Tree,
    ) {
        let values = self.cpus[cpu].values.entry(what).or_default();
        let times = values.entry(total).or_default();
        *times += 1;
        if *times == 1 && values.len() <= EPISODES_MAX {
            self.episodes.push(Episode { cpu, what, total, tree: tree() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a phase has what was executed in it, and keeps the first episode of
    /// each cost only.
    #[test]
    fn counts_and_episodes() {
        let count = |user, kernel| Count { user, kernel };
        let mut phase = Phase::begin(&[count(10, 5), count(0, 0)]);
        let what = What::Interruption(Function(1), Level::User);
        for total in [7, 9, 7] {
            phase.add(1, what, total, Tree::new);
        }
        phase.end(&[count(110, 6), count(1, 0)]);
        assert_eq!(phase.cpus[0].executed, count(100, 1));
        assert_eq!(phase.cpus[1].values[&what], BTreeMap::from([(7, 2), (9, 1)]));
        let kept: Vec<u64> = phase.episodes.iter().map(|episode| episode.total).collect();
        assert_eq!(kept, [7, 9]);
    }

    /// Check that of many costs the most frequent ones are told, and of equals the least.
    #[test]
    fn usual_episodes() {
        let mut phase = Phase::begin(&[Count::default()]);
        for total in (0..50).rev().chain([33, 44, 44]) {
            phase.add(0, What::Step, total, Tree::new);
        }
        let told: Vec<u64> = phase.usual_episodes().map(|e| e.total).collect();
        assert_eq!(told, [44, 33, 5, 4, 3, 2, 1, 0]);
    }
}
