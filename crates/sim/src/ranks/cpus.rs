//! The CPUs of all ranks: when each is free, and when its next detour begins.
//!
//! Most operations end before the next detour, which one comparison tells; only the others look at the
//! trace. Memory is some tens of bytes for each rank.

use units::Nanos;

use super::assigned::Assigned;
use super::trace::{Place, Trace};

/// Later than any run ends.
const NEVER: i64 = i64::MAX / 2;

/// The CPUs.
pub(super) struct Cpus<'a> {
    /// From when on each rank's CPU is free.
    pub(super) free: Vec<i64>,
    /// When its next detour begins.
    next: Vec<i64>,
    /// Empty without noise.
    places: Vec<Place>,
    traces: Vec<&'a Trace>,
}

impl<'a> Cpus<'a> {
    /// All ranks at the time 0; `None`: without noise.
    pub(super) fn new(ranks: usize, noise: Option<&Assigned<'a>>) -> Self {
        let free = vec![0; ranks];
        let Some(noise) = noise else {
            return Self {
                free,
                next: vec![NEVER; ranks],
                places: Vec::new(),
                traces: Vec::new(),
            };
        };
        let traces = noise.traces();
        let begin = |rank| {
            let (trace, phase) = noise.of_rank(rank);
            traces[trace as usize].begin(trace, phase)
        };
        let (places, next) = (0..ranks as u64).map(begin).unzip();
        Self { free, next, places, traces }
    }

    /// One rank for each trace, from its beginning on.
    #[cfg(test)]
    pub(super) fn each(traces: &'a [Trace]) -> Self {
        let begin = |(trace, number): (&Trace, u32)| trace.begin(number, Nanos::ZERO);
        let (places, next) = traces.iter().zip(0..).map(begin).unzip();
        Self {
            free: vec![0; traces.len()],
            next,
            places,
            traces: traces.iter().collect(),
        }
    }

    /// When work ends that a rank begins at `from`, which is not before it was free.
    #[inline(always)]
    pub(super) fn busy(&mut self, rank: usize, from: i64, work: i64) -> i64 {
        let end = from + work;
        if end <= self.next[rank] { end } else { self.interrupted(rank, from, work) }
    }

    #[cold]
    fn interrupted(&mut self, rank: usize, from: i64, work: i64) -> i64 {
        let Some(place) = self.places.get_mut(rank) else { return from + work };
        let (end, next) = self.traces[place.trace as usize].finish(place, from, work);
        self.next[rank] = next;
        end
    }

    /// When the last rank is free.
    pub(super) fn last(&self) -> Nanos {
        let last = self.free.iter().copied().max().unwrap_or(0);
        Nanos::from_nanos(last.unsigned_abs())
    }
}
