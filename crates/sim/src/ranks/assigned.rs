//! Which noise each rank has: the trace of a CPU, and the moment at which it begins.
//!
//! Ranks of one node have the CPUs of one recording, in order, at one moment; further ranks share them. With
//! one rank on a node, it has a random CPU of a random recording. All follows from the seed and the number
//! of the node.

use units::Nanos;

use super::random;
use super::trace::Trace;

/// The CPUs of one recording, measured at the same time.
pub type Machine = Vec<Trace>;

/// The noise of all ranks, or a part of it.
#[derive(Debug, Clone, Copy)]
pub struct Assigned<'a> {
    /// The recordings; each has a CPU. Those of several parts have the same CPUs, for the same time.
    pub machines: &'a [Machine],
    /// The number of ranks of one node.
    pub ranks_per_node: u64,
    /// Whether all nodes begin at the same moment.
    pub coscheduled: bool,
    /// The seed.
    pub seed: u64,
}

/// The numbers of a node that are drawn.
const DRAWN: u64 = 3;
/// The place of the moment that all nodes have.
const COMMON: u64 = u64::MAX;

impl<'a> Assigned<'a> {
    /// The traces of all recordings.
    pub(super) fn traces(&self) -> Vec<&'a Trace> {
        self.machines.iter().flatten().collect()
    }

    /// The number of a rank's trace, and the moment at which it begins.
    pub(super) fn of_rank(&self, rank: u64) -> (u32, Nanos) {
        let node = rank / self.ranks_per_node;
        let drawn =
            |number| random::at(self.seed, node.wrapping_mul(DRAWN).wrapping_add(number));
        let below = |random, limit: usize| {
            usize::try_from(random::below(random, limit as u64)).unwrap_or(0)
        };
        let machine = below(drawn(0), self.machines.len());
        let cpus = self.machines[machine].len();
        let cpu = match self.ranks_per_node {
            1 => below(drawn(1), cpus),
            all => usize::try_from(rank % all).unwrap_or(0) % cpus,
        };
        let moment =
            if self.coscheduled { random::at(self.seed, COMMON) } else { drawn(2) };
        // The CPUs of a recording were measured together, for about the same time.
        let window = self.machines[machine].iter().map(Trace::window).max();
        let moment = random::below(moment, window.unwrap_or(Nanos::ZERO).get());
        let before: usize = self.machines[..machine].iter().map(Vec::len).sum();
        // There are fewer traces than that.
        (u32::try_from(before + cpu).unwrap_or(0), Nanos::from_nanos(moment))
    }
}
