//! What ranks do in one step: compute, and exchange messages.
//!
//! Collectives are loops over rounds; nothing is stored for a message but when it arrives. The algorithms
//! are the usual ones (R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
//! operations in MPICH. IJHPCA 19, 2005); recursive doubling of a number of ranks that is no power of two
//! begins and ends with messages between pairs of ranks. The CPU time of adding up numbers is not counted.

use recording::{Algorithm, Pattern};

use super::links::Links;

/// The exchanges of a number of ranks, and when the messages of the current round arrive.
pub(super) struct Exchange {
    kind: Kind,
    ranks: usize,
    /// Of halos: for each direction, the neighbour of each rank; directions are in pairs of opposite ones.
    directions: Vec<Vec<u32>>,
    /// By sender; of halos for each direction.
    arrivals: Vec<i64>,
    /// When the receiver of a rank's message began to receive it, if senders wait for that.
    begun: Vec<i64>,
}

/// A pattern with its algorithm.
#[derive(Clone, Copy)]
enum Kind {
    Dissemination,
    RecursiveDoubling,
    Ring,
    Tree,
    Halo,
    Pipeline,
}

impl Exchange {
    pub(super) fn new(
        pattern: Pattern,
        algorithm: Option<Algorithm>,
        ranks: usize,
    ) -> Self {
        let kind = match (pattern, algorithm) {
            (Pattern::Bsp, _) | (Pattern::Allreduce, Some(Algorithm::Dissemination)) => {
                Kind::Dissemination
            }
            (Pattern::Allreduce, Some(Algorithm::RecursiveDoubling) | None) => {
                Kind::RecursiveDoubling
            }
            (Pattern::Allreduce, Some(Algorithm::Ring)) => Kind::Ring,
            (Pattern::Allreduce, Some(Algorithm::Tree)) => Kind::Tree,
            (Pattern::Halo2d | Pattern::Halo3d, _) => Kind::Halo,
            (Pattern::Pipeline, _) => Kind::Pipeline,
        };
        let directions = match pattern {
            Pattern::Halo2d => neighbours(ranks, 2),
            Pattern::Halo3d => neighbours(ranks, 3),
            Pattern::Bsp | Pattern::Allreduce | Pattern::Pipeline => Vec::new(),
        };
        let messages = match kind {
            Kind::Halo => directions.len() * ranks,
            Kind::Pipeline => 0,
            Kind::Dissemination | Kind::RecursiveDoubling | Kind::Ring | Kind::Tree => {
                ranks
            }
        };
        let (arrivals, begun) = (vec![0; messages], vec![0; ranks]);
        Self { kind, ranks, directions, arrivals, begun }
    }

    /// One step: each rank computes, and exchanges messages.
    pub(super) fn step(&mut self, links: &mut Links<'_>, compute: i64) {
        let ranks = self.ranks;
        if !matches!(self.kind, Kind::Pipeline) {
            (0..ranks).for_each(|rank| links.compute(rank, compute));
        }
        match self.kind {
            Kind::Dissemination => {
                (0..rounds(ranks)).for_each(|round| self.shifted(links, 1 << round));
            }
            Kind::Ring => {
                (1..ranks).chain(1..ranks).for_each(|_| self.shifted(links, 1));
            }
            Kind::RecursiveDoubling => self.doubling(links),
            Kind::Tree => self.tree(links),
            Kind::Halo => self.halo(links),
            Kind::Pipeline => pipeline(links, ranks, compute),
        }
    }

    /// Each rank sends to the one so far after it.
    fn shifted(&mut self, links: &mut Links<'_>, distance: usize) {
        let ranks = self.ranks;
        let source = |rank| {
            if rank >= distance { rank - distance } else { rank + ranks - distance }
        };
        self.exchanged(links, ranks, |rank| rank, source);
    }

    /// Each of `count` ranks that have other numbers here sends a message, and receives that of its source.
    #[inline(always)]
    fn exchanged(
        &mut self,
        links: &mut Links<'_>,
        count: usize,
        rank: impl Fn(usize) -> usize,
        source: impl Fn(usize) -> usize,
    ) {
        for (number, arrival) in self.arrivals.iter_mut().enumerate().take(count) {
            *arrival = links.send(rank(number));
        }
        if !links.costs.waits {
            for number in 0..count {
                links.receive(rank(number), self.arrivals[source(number)]);
            }
            return;
        }
        for number in 0..count {
            let from = source(number);
            self.begun[from] = links.receive(rank(number), self.arrivals[from]);
        }
        (0..count).for_each(|number| links.wait(rank(number), self.begun[number]));
    }

    fn doubling(&mut self, links: &mut Links<'_>) {
        let (power, rest) = power_of_two(self.ranks);
        (0..rest).for_each(|pair| message(links, 2 * pair, 2 * pair + 1));
        for round in 0..power.trailing_zeros() {
            let partner = |number: usize| number ^ (1 << round);
            match rest {
                0 => self.exchanged(links, power, |number| number, partner),
                _ => {
                    let rank = |number| {
                        if number < rest { 2 * number + 1 } else { number + rest }
                    };
                    self.exchanged(links, power, rank, partner);
                }
            }
        }
        (0..rest).for_each(|pair| message(links, 2 * pair + 1, 2 * pair));
    }

    fn tree(&self, links: &mut Links<'_>) {
        let lower = |round: u32| ((1 << round)..self.ranks).step_by(2 << round);
        for round in 0..rounds(self.ranks) {
            lower(round).for_each(|rank| message(links, rank, rank - (1 << round)));
        }
        for round in (0..rounds(self.ranks)).rev() {
            lower(round).for_each(|rank| message(links, rank - (1 << round), rank));
        }
    }

    /// Each rank sends to all neighbours, and then receives in the order in which messages arrive.
    fn halo(&mut self, links: &mut Links<'_>) {
        let count = self.directions.len();
        for (rank, arrivals) in self.arrivals.chunks_exact_mut(count.max(1)).enumerate() {
            arrivals.fill_with(|| links.send(rank));
        }
        self.begun.fill(0);
        let mut messages = [(0, 0); 6];
        for rank in 0..self.ranks {
            let messages = &mut messages[..count];
            for (direction, (message, of)) in
                messages.iter_mut().zip(&self.directions).enumerate()
            {
                let from = of[rank] as usize;
                // What the neighbour sent in the opposite direction.
                *message = (self.arrivals[from * count + (direction ^ 1)], from);
            }
            messages.sort_unstable();
            for (arrival, from) in messages {
                let begun = links.receive(rank, *arrival);
                self.begun[*from] = self.begun[*from].max(begun);
            }
        }
        if links.costs.waits {
            (0..self.ranks).for_each(|rank| links.wait(rank, self.begun[rank]));
        }
    }
}

/// The number of messages of one step.
pub(super) fn messages(
    pattern: Pattern,
    algorithm: Option<Algorithm>,
    ranks: u64,
) -> u64 {
    let rounds = u64::from(ranks.max(1).next_power_of_two().trailing_zeros());
    match (pattern, algorithm) {
        (Pattern::Bsp, _) | (Pattern::Allreduce, Some(Algorithm::Dissemination)) => {
            ranks.saturating_mul(rounds)
        }
        (Pattern::Allreduce, Some(Algorithm::RecursiveDoubling) | None) => {
            let power: u64 = 1 << ranks.max(1).ilog2();
            power * u64::from(power.trailing_zeros()) + 2 * (ranks - power)
        }
        (Pattern::Allreduce, Some(Algorithm::Ring)) => {
            ranks.saturating_mul(2 * (ranks - 1))
        }
        (Pattern::Allreduce, Some(Algorithm::Tree)) => 2 * (ranks - 1),
        (Pattern::Halo2d, _) => ranks * directions(ranks, 2),
        (Pattern::Halo3d, _) => ranks * directions(ranks, 3),
        (Pattern::Pipeline, _) => ranks - 1,
    }
}

/// The number of neighbours of a rank.
fn directions(ranks: u64, dimensions: u32) -> u64 {
    let sides = sides(usize::try_from(ranks).unwrap_or(usize::MAX), dimensions);
    2 * sides.iter().filter(|side| **side > 1).count() as u64
}

/// One message.
fn message(links: &mut Links<'_>, from: usize, to: usize) {
    let arrival = links.send(from);
    let begun = links.receive(to, arrival);
    if links.costs.waits {
        links.wait(from, begun);
    }
}

fn pipeline(links: &mut Links<'_>, ranks: usize, compute: i64) {
    let mut arrival = None;
    for rank in 0..ranks {
        if let Some(arrival) = arrival {
            let begun = links.receive(rank, arrival);
            if links.costs.waits {
                links.wait(rank - 1, begun);
            }
        }
        links.compute(rank, compute);
        arrival = (rank + 1 < ranks).then(|| links.send(rank));
    }
}

/// The rounds in which all ranks can know of each other: the binary logarithm, rounded up.
fn rounds(ranks: usize) -> u32 {
    ranks.max(1).next_power_of_two().trailing_zeros()
}

/// The largest power of two that is not larger, and the rest.
fn power_of_two(ranks: usize) -> (usize, usize) {
    let power = 1 << ranks.max(1).ilog2();
    (power, ranks.saturating_sub(power))
}

/// The neighbours in a torus whose sides differ as little as possible; sides of one rank have none.
fn neighbours(ranks: usize, dimensions: u32) -> Vec<Vec<u32>> {
    let mut directions = Vec::new();
    let mut stride = 1;
    for side in sides(ranks, dimensions).into_iter().filter(|side| *side > 1) {
        let moved = |by: usize| {
            let other = |rank: usize| {
                let at = rank / stride % side;
                rank - at * stride + (at + by) % side * stride
            };
            // A rank is less than 2^32.
            (0..ranks).map(|rank| u32::try_from(other(rank)).unwrap_or(0)).collect()
        };
        directions.extend([moved(side - 1), moved(1)]);
        stride *= side;
    }
    directions
}

/// The sides of a torus, in rising order: each is the largest divisor that is not above the root.
fn sides(ranks: usize, dimensions: u32) -> Vec<usize> {
    if dimensions <= 1 {
        return vec![ranks];
    }
    let fits = |side: &usize| ranks % side == 0;
    let is_small =
        |side: usize| side.checked_pow(dimensions).is_some_and(|all| all <= ranks);
    let most = (1..).take_while(|side| is_small(*side)).filter(fits).last().unwrap_or(1);
    let mut all = vec![most];
    all.extend(sides(ranks / most, dimensions - 1));
    all
}
