//! Which gaps the hypervisor is proven to have taken, and what else it may have.
//!
//! Its clock says how much it took between two moments, not when. All that it took there lies in
//! the gaps there. So what exceeds everything else in those gaps is proven to be a gap's own rest:
//! the part of it that no event explains. Of the other rests only an upper bound is known. The
//! closer together the moments are, the more is proven: see [`crate::steal_clock`].
//!
//! It cannot see what the hypervisor takes without counting it: its own interrupts, and what it
//! does on the guest's behalf, are not stolen.

use units::{Nanos, Span};

use crate::layers::Piece;

/// A stretch of time, and how much of it the hypervisor took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StealBounds {
    /// From one reading of its clock to the next one.
    pub span: Span,
    /// What it took of the loop's time there, at least.
    pub at_least: Nanos,
    /// The same at most.
    pub at_most: Nanos,
}

/// A gap, and what of it no event explains.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rest<'a> {
    pub(crate) gap: Span,
    /// Its events; `None` where some were not kept.
    pub(crate) pieces: Option<&'a [Piece]>,
    pub(crate) ns: Nanos,
}

/// What the hypervisor took of gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proven {
    /// Of each gap's rest, what is proven.
    pub(crate) of_gaps: Vec<Nanos>,
    /// What it may have taken of the rests beyond that, all together.
    pub(crate) more_at_most: Nanos,
}

/// What is proven of these gaps, which are in any order and do not overlap.
pub(crate) fn prove(rests: &[Rest<'_>], bounds: &[StealBounds]) -> Proven {
    let mut order: Vec<usize> = (0..rests.len()).collect();
    order.sort_by_key(|place| rests[*place].gap.start);
    let mut of_gaps = vec![Nanos::ZERO; rests.len()];
    let mut more_at_most = Nanos::ZERO;
    for bound in bounds {
        let first = order.partition_point(|at| rests[*at].gap.end() <= bound.span.start);
        let near = order[first..].iter().copied();
        let near: Vec<(usize, Room)> = near
            .take_while(|at| rests[*at].gap.start < bound.span.end())
            .map(|at| (at, Room::of(&rests[at], bound.span)))
            .collect();
        let all: Nanos = near.iter().map(|(_, room)| room.gap).sum();
        let at_most: Nanos = near.iter().map(|(_, room)| room.at_most).sum();
        let mut proven = Nanos::ZERO;
        for (at, room) in near {
            let elsewhere = all.saturating_sub(room.at_least);
            let own = bound.at_least.saturating_sub(elsewhere).min(room.at_least);
            of_gaps[at] = of_gaps[at] + own;
            proven = proven + own;
        }
        let more = bound.at_most.min(at_most).saturating_sub(proven);
        more_at_most = more_at_most + more;
    }
    Proven { of_gaps, more_at_most }
}

/// How much of a gap, and of its rest, lies in a stretch.
struct Room {
    gap: Nanos,
    /// Of the rest, at least; nothing where it is not known what else the gap holds.
    at_least: Nanos,
    at_most: Nanos,
}

impl Room {
    fn of(rest: &Rest<'_>, stretch: Span) -> Self {
        let Rest { gap, pieces, ns } = *rest;
        let events = pieces.unwrap_or_default();
        let spans = events
            .iter()
            .map(|piece| (piece.start, piece.end.saturating_sub(piece.start)));
        let spans: Vec<Span> = spans.map(Span::from).collect();
        let part = common(gap, stretch);
        let holes: Nanos =
            gap.length.saturating_sub(spans.iter().map(|s| s.length).sum());
        let events = spans.iter().map(|span| common(*span, stretch)).sum();
        let holes_there = part.saturating_sub(events);
        let outside = holes.saturating_sub(holes_there);
        let is_known = pieces.is_some();
        let at_least = if is_known { ns.saturating_sub(outside) } else { Nanos::ZERO };
        Self { gap: part, at_least, at_most: ns.min(holes_there) }
    }
}

/// How much two stretches have in common.
pub(crate) fn common(one: Span, other: Span) -> Nanos {
    one.end().min(other.end()).saturating_sub(one.start.max(other.start))
}
