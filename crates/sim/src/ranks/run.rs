//! One run of a program of many ranks.

use std::sync::atomic::{AtomicBool, Ordering};

use recording::{Algorithm, Network, Pattern};
use units::Nanos;

use super::assigned::Assigned;
use super::cpus::Cpus;
use super::exchange::{Exchange, messages};
use super::links::{Costs, Links};

/// A program: each rank computes and exchanges messages, step by step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// The exchange.
    pub pattern: Pattern,
    /// The algorithm of an allreduce; `None`: recursive doubling.
    pub algorithm: Option<Algorithm>,
    /// The CPU time of each step.
    pub compute: Nanos,
    /// The number of steps.
    pub steps: u64,
    /// The size of a message; of a ring, of all of its parts.
    pub bytes: u64,
    /// The network.
    pub network: Network,
}

impl Program {
    /// When the last of so many ranks has ended all steps; `None` if it was ended before. Each rank has all
    /// parts of the noise. The number of ranks is at least 1, and less than 2^32.
    pub fn run(
        &self,
        ranks: usize,
        noise: &[Assigned<'_>],
        stop: &AtomicBool,
    ) -> Option<Nanos> {
        self.run_on(Cpus::new(ranks, noise), stop)
    }

    /// The same on these CPUs.
    pub(super) fn run_on(&self, cpus: Cpus<'_>, stop: &AtomicBool) -> Option<Nanos> {
        let ranks = cpus.free.len();
        let mut links = Links::new(cpus, Costs::new(&self.network, self.message(ranks)));
        let mut exchange = Exchange::new(self.pattern, self.algorithm, ranks);
        let compute = i64::try_from(self.compute.get()).unwrap_or(i64::MAX);
        for _ in 0..self.steps {
            exchange.step(&mut links, compute);
            if stop.load(Ordering::Relaxed) {
                return None;
            }
        }
        Some(links.cpus.last())
    }

    /// The number of messages of one step.
    pub fn messages(&self, ranks: u64) -> u64 {
        messages(self.pattern, self.algorithm, ranks)
    }

    /// The number of computations, sends, receives and messages of a run.
    pub fn events(&self, ranks: u64) -> u64 {
        let each = self.messages(ranks).saturating_mul(3).saturating_add(ranks);
        each.saturating_mul(self.steps)
    }

    /// A run cannot be shorter, and is not much longer without noise.
    pub(super) fn shortest(&self) -> Nanos {
        let Network {
            latency_ns,
            overhead_ns,
            gap_ns,
            byte_gap_ns,
            byte_overhead_ns,
            ..
        } = self.network;
        let bytes = (byte_gap_ns + byte_overhead_ns).saturating_mul(self.bytes);
        let message = latency_ns + overhead_ns.saturating_mul(2) + gap_ns + bytes;
        (self.compute + message).saturating_mul(self.steps)
    }

    /// The size of each message.
    fn message(&self, ranks: usize) -> u64 {
        let is_ring =
            self.pattern == Pattern::Allreduce && self.algorithm == Some(Algorithm::Ring);
        match is_ring {
            true => self.bytes.div_ceil(ranks as u64),
            false => self.bytes,
        }
    }
}
