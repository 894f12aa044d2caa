//! The CPUs of all ranks: when each is free, and when its next detour begins.
//!
//! Most operations end before the next detour, which one comparison tells; only the others look at the
//! traces. Memory is some tens of bytes for each rank.
//!
//! The noise of a CPU is in one trace, or in several with moments of their own, if only some sources are
//! co-scheduled. The time of all is conserved: a detour that begins during one of another trace runs after
//! it. Which of the two runs first does not change when both have ended. So those of the first trace are
//! simulated as the interruptions that they are, and those of the others as work before that of the rank.

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
    /// All noise, or a part of it; empty without noise.
    first: Part<'a>,
    others: Vec<Part<'a>>,
}

/// A part of the noise: traces, and where each rank is in one of them.
#[derive(Default)]
struct Part<'a> {
    traces: Vec<&'a Trace>,
    places: Vec<Place>,
}

impl<'a> Cpus<'a> {
    /// All ranks at the time 0, with these parts of the noise.
    pub(super) fn new(ranks: usize, noise: &[Assigned<'a>]) -> Self {
        let part = |noise: &Assigned<'a>| {
            let traces = noise.traces();
            let begin = |rank| {
                let (trace, phase) = noise.of_rank(rank);
                traces[trace as usize].begin(trace, phase)
            };
            let (places, next) = (0..ranks as u64).map(begin).unzip();
            (Part { traces, places }, next)
        };
        Self::of(ranks, noise.iter().map(part))
    }

    /// One rank for each trace, from that moment of it on; in several parts, each of which has all ranks.
    #[cfg(test)]
    pub(super) fn each(parts: &[(&'a [Trace], Nanos)]) -> Self {
        let part = |(traces, phase): &(&'a [Trace], Nanos)| {
            let begin = |(trace, number): (&Trace, u32)| trace.begin(number, *phase);
            let (places, next) = traces.iter().zip(0..).map(begin).unzip();
            (Part { traces: traces.iter().collect(), places }, next)
        };
        Self::of(parts[0].0.len(), parts.iter().map(part))
    }

    /// These parts, each with the moments of the next detours.
    fn of(ranks: usize, mut all: impl Iterator<Item = (Part<'a>, Vec<i64>)>) -> Self {
        let none = || (Part::default(), vec![NEVER; ranks]);
        let (first, mut next) = all.next().unwrap_or_else(none);
        let mut others = Vec::new();
        for (part, of_part) in all {
            others.push(part);
            for (next, of_part) in next.iter_mut().zip(of_part) {
                *next = of_part.min(*next);
            }
        }
        Self { free: vec![0; ranks], next, first, others }
    }

    /// When work ends that a rank begins at `from`, which is not before it was free.
    #[inline(always)]
    pub(super) fn busy(&mut self, rank: usize, from: i64, work: i64) -> i64 {
        let end = from + work;
        if end <= self.next[rank] { end } else { self.interrupted(rank, from, work) }
    }

    #[cold]
    fn interrupted(&mut self, rank: usize, from: i64, work: i64) -> i64 {
        let Some(place) = self.first.places.get_mut(rank) else { return from + work };
        let trace = self.first.traces[place.trace as usize];
        let (end, next) = match self.others.is_empty() {
            true => trace.finish(place, from, work),
            false => finish(trace, place, &mut self.others, rank, from, work),
        };
        self.next[rank] = next;
        end
    }

    /// When the last rank is free.
    pub(super) fn last(&self) -> Nanos {
        let last = self.free.iter().copied().max().unwrap_or(0);
        Nanos::from_nanos(last.unsigned_abs())
    }
}

impl Part<'_> {
    /// When a rank's next detour begins.
    fn next(&self, rank: usize) -> i64 {
        let place = &self.places[rank];
        self.traces[place.trace as usize].next(place)
    }
}

/// The same as [`Trace::finish`], with the detours of other parts.
#[inline(never)]
fn finish(
    trace: &Trace,
    place: &mut Place,
    others: &mut [Part<'_>],
    rank: usize,
    from: i64,
    work: i64,
) -> (i64, i64) {
    // Those that began while the rank waited; of one that began before the run, the rest.
    let mut busy = 0;
    while let Some((start, length)) = take(others, rank, from) {
        (busy, _) = trace.finish(place, busy.max(start), length + start.min(0));
    }
    let (mut end, mut next) = trace.finish(place, from.max(busy), work);
    while let Some((_, length)) = take(others, rank, end) {
        (end, next) = trace.finish(place, end, length);
    }
    (end, others.iter().map(|part| part.next(rank)).fold(next, i64::min))
}

/// The next detour of a rank in all of these parts, as [`Trace::take`].
fn take(parts: &mut [Part<'_>], rank: usize, limit: i64) -> Option<(i64, i64)> {
    let part = parts.iter_mut().min_by_key(|part| part.next(rank))?;
    let place = &mut part.places[rank];
    part.traces[place.trace as usize].take(place, limit)
}
