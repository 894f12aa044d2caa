//! Sending and receiving, by the rules of LogGOPS (T. Hoefler, T. Schneider, A. Lumsdaine: LogGOPSim.
//! HPDC 2010).
//!
//! A message of s bytes occupies the sender's CPU for o + (s-1)O, its first byte arrives L after the first
//! o, and the receiver is done with it o + (s-1)max(G, O) after it began to receive. Two sends of a rank,
//! and two receives, begin g + (s-1)G apart or more. The sender of a message that is larger than S waits
//! until the receiver begins. Without noise, all times are those of LogGOPSim. Noise delays o and O, and a
//! message leaves when o has ended; a rank receives in its own order, while it waits (its CPU does not
//! receive messages of later rounds during a computation).

use recording::Network;
use units::Nanos;

use super::cpus::Cpus;

/// The times of messages of one size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    overhead: i64,
    /// The CPU time of the bytes after the first.
    bytes: i64,
    /// The time of these in the network that is longer than that.
    rest: i64,
    latency: i64,
    /// The shortest time between two messages in one direction.
    apart: i64,
    /// Whether that can delay a message.
    has_gap: bool,
    pub(super) waits: bool,
}

impl Costs {
    pub(super) fn new(network: &Network, bytes: u64) -> Self {
        let further = bytes.saturating_sub(1);
        // Of lengths that are too long, the run is refused.
        let time = |nanos: Nanos| i64::try_from(nanos.get()).unwrap_or(i64::MAX);
        let [own, under_way] = [network.byte_overhead_ns, network.byte_gap_ns]
            .map(|each| time(each.saturating_mul(further)));
        let [overhead, latency, gap] =
            [network.overhead_ns, network.latency_ns, network.gap_ns].map(time);
        let rest = (under_way - own).max(0);
        let apart = gap + under_way;
        Self {
            overhead,
            bytes: own,
            rest,
            latency,
            apart,
            has_gap: apart > overhead + own,
            waits: bytes > network.eager_bytes,
        }
    }
}

/// All ranks with their connections to the network.
pub(super) struct Links<'a> {
    pub(super) cpus: Cpus<'a>,
    pub(super) costs: Costs,
    /// When each rank can send, and receive, again; empty if that is never later than its CPU is free.
    sends: Vec<i64>,
    receives: Vec<i64>,
}

impl<'a> Links<'a> {
    pub(super) fn new(cpus: Cpus<'a>, costs: Costs) -> Self {
        let gaps = if costs.has_gap { cpus.free.len() } else { 0 };
        Self { cpus, costs, sends: vec![0; gaps], receives: vec![0; gaps] }
    }

    /// A rank computes.
    #[inline(always)]
    pub(super) fn compute(&mut self, rank: usize, work: i64) {
        self.cpus.free[rank] = self.cpus.busy(rank, self.cpus.free[rank], work);
    }

    /// A rank sends; returns when the first byte arrives.
    #[inline(always)]
    pub(super) fn send(&mut self, rank: usize) -> i64 {
        let Costs { overhead, bytes, latency, apart, .. } = self.costs;
        let mut start = self.cpus.free[rank];
        if let Some(next) = self.sends.get_mut(rank) {
            start = start.max(*next);
            *next = start + apart;
        }
        let left = self.cpus.busy(rank, start, overhead);
        self.cpus.free[rank] =
            if bytes > 0 { self.cpus.busy(rank, left, bytes) } else { left };
        left + latency
    }

    /// A rank receives what arrives then; returns when it began to.
    #[inline(always)]
    pub(super) fn receive(&mut self, rank: usize, arrival: i64) -> i64 {
        let Costs { overhead, bytes, rest, apart, .. } = self.costs;
        let mut start = self.cpus.free[rank].max(arrival);
        if let Some(next) = self.receives.get_mut(rank) {
            start = start.max(*next);
            *next = start + apart;
        }
        self.cpus.free[rank] = self.cpus.busy(rank, start, overhead + bytes) + rest;
        start
    }

    /// A rank goes on when the receiver of its message has begun to receive it.
    #[inline]
    pub(super) fn wait(&mut self, rank: usize, received: i64) {
        let free = &mut self.cpus.free[rank];
        *free = (*free).max(received);
        if let Some(next) = self.sends.get_mut(rank) {
            *next = (*next).max(received);
        }
    }
}
