//! The part of gaps that is proven to be stolen time, and an upper bound of the rest.
//!
//! The hypervisor's clock has the time that it took between two readings, not when. All of that
//! time lies in the gaps between the readings. So what exceeds everything else in those gaps is
//! proven to lie in one gap's own rest, the part of it that no event explains. For the other rests
//! only an upper bound is known. The closer the readings are, the more is proven: see
//! [`crate::steal_clock`].
//!
//! Cannot see the time that the hypervisor takes without counting it: its own interrupts, and its
//! work on behalf of the guest, are not stolen time.

use units::{Nanos, Span};

use crate::join::layers::Piece;

/// A period, and the bounds of the stolen time in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StealBounds {
    /// From one reading of the clock to the next one.
    pub span: Span,
    /// The minimum of the time stolen from the loop.
    pub at_least: Nanos,
    /// The maximum.
    pub at_most: Nanos,
}

/// A gap, and the part that no event explains.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rest<'a> {
    pub(crate) gap: Span,
    /// Its events; `None` if some were lost.
    pub(crate) pieces: Option<&'a [Piece]>,
    pub(crate) ns: Nanos,
}

/// The stolen time in gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proven {
    /// The proven part of each gap's rest.
    pub(crate) of_gaps: Vec<Nanos>,
    /// The upper bound of further stolen time in all rests together.
    pub(crate) more_at_most: Nanos,
}

/// The proof for these gaps, which may have any order and do not overlap.
pub(crate) fn prove(rests: &[Rest<'_>], bounds: &[StealBounds]) -> Proven {
    let mut order: Vec<usize> = (0..rests.len()).collect();
    order.sort_by_key(|place| rests[*place].gap.start);
    let mut of_gaps = vec![Nanos::ZERO; rests.len()];
    let mut more_at_most = Nanos::ZERO;
    for bound in bounds {
        let first = order.partition_point(|at| rests[*at].gap.end() <= bound.span.start);
        let near = order[first..].iter().copied();
        let near: Vec<(usize, Overlap)> = near
            .take_while(|at| rests[*at].gap.start < bound.span.end())
            .map(|at| (at, Overlap::of(&rests[at], bound.span)))
            .collect();
        let all: Nanos = near.iter().map(|(_, overlap)| overlap.gap).sum();
        let at_most: Nanos = near.iter().map(|(_, overlap)| overlap.at_most).sum();
        let mut proven = Nanos::ZERO;
        for (at, overlap) in near {
            let elsewhere = all.saturating_sub(overlap.at_least);
            let own = bound.at_least.saturating_sub(elsewhere).min(overlap.at_least);
            of_gaps[at] = of_gaps[at] + own;
            proven = proven + own;
        }
        let more = bound.at_most.min(at_most).saturating_sub(proven);
        more_at_most = more_at_most + more;
    }
    Proven { of_gaps, more_at_most }
}

/// The part of a gap, and of its rest, within a period.
struct Overlap {
    gap: Nanos,
    /// The minimum of the rest; 0 if events of the gap were lost.
    at_least: Nanos,
    at_most: Nanos,
}

impl Overlap {
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

/// The common length of two periods.
pub(crate) fn common(one: Span, other: Span) -> Nanos {
    one.end().min(other.end()).saturating_sub(one.start.max(other.start))
}
