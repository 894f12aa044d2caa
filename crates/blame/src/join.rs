//! The join: which gap is whose.
//!
//! An event's tracepoints lie inside the real interruption: entry, exit and the caches it
//! leaves cold are seen by the victim only. These edges belong to the event, up to twice
//! what is typical of its kind in this run. What is longer is a rest that no event explains, as is
//! a gap without any event: the hypervisor's as far as that is proven ([`crate::steal`]), and
//! else unexplained. Nothing is rounded and nothing dropped: a gap's shares add up to its length.
//!
//! It cannot see the time that a hypervisor takes within an event: that is the event's.

use recording::{Culprit, CulpritKind, Event, Share};
use units::{Nanos, Span};

use crate::edges::Edges;
use crate::layers::{Piece, innermost};
use crate::steal::{Rest, StealBounds, prove};

/// The shares of all gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// What each culprit took of each gap, gap by gap.
    pub shares: Vec<Share>,
    /// What of the unexplained time the hypervisor may have taken, at most.
    pub steal_max: Nanos,
}

/// Blames each gap. `gaps` and `events` may come in any order, and events may hold one
/// another. Gaps that touch one of `losses`, in which events were not kept, are unexplained,
/// and say nothing of edges. `steal` is what the hypervisor's clock counted. The hypervisor and
/// the unexplained are added to `culprits` where they have a share.
pub fn join(
    gaps: &[Span],
    events: &[Event],
    losses: &[Span],
    steal: &[StealBounds],
    culprits: &mut Vec<Culprit>,
) -> Joined {
    let pieces = innermost(events);
    let losses = merged(losses);
    let known = |gap: &Span| {
        let next = losses.partition_point(|loss| loss.end() <= gap.start);
        losses.get(next).is_none_or(|loss| loss.start >= gap.end())
    };
    let pieces_of = |gap: &Span| known(gap).then(|| within(&pieces, *gap));
    let found: Vec<Option<Vec<Piece>>> = gaps.iter().map(pieces_of).collect();
    let kept = gaps
        .iter()
        .zip(&found)
        .filter_map(|(gap, pieces)| Some((*gap, pieces.as_deref()?)));
    let edges = Edges::of(kept, culprits);
    let mut shares = Vec::new();
    let mut rests = Vec::new();
    for (number, (gap, pieces)) in gaps.iter().zip(&found).enumerate() {
        let taken = edges.share(*gap, pieces.as_deref().unwrap_or_default(), culprits);
        let whole: Nanos = taken.values().map(|taken| taken.ns).sum();
        shares.extend(taken.into_iter().map(|(culprit, taken)| Share {
            gap: number,
            culprit,
            ns: taken.ns,
            inside_ns: taken.inside,
            entry_ns: Some(taken.entry),
        }));
        let ns = gap.length.saturating_sub(whole);
        rests.push(Rest { gap: *gap, pieces: pieces.as_deref(), ns });
    }
    let proven = prove(&rests, steal);
    let rests = rests.iter().map(|rest| rest.ns).zip(proven.of_gaps);
    shares.extend(unexplained(rests, culprits));
    shares.sort_by_key(|share| (share.gap, share.culprit));
    Joined { shares, steal_max: proven.more_at_most }
}

/// The same stretches in order, those that touch as one.
fn merged(spans: &[Span]) -> Vec<Span> {
    let mut spans = spans.to_vec();
    spans.sort_by_key(|span| span.start);
    spans.dedup_by(|later, span| {
        let touches = later.start <= span.end();
        if touches {
            let end = span.end().max(later.end());
            span.length = end.saturating_sub(span.start);
        }
        touches
    });
    spans
}

/// The pieces that lie in a gap, cut to it. `pieces` are in order and do not overlap.
fn within(pieces: &[Piece], gap: Span) -> Vec<Piece> {
    let first = pieces.partition_point(|piece| piece.end <= gap.start);
    let inside = pieces[first..].iter().take_while(|piece| piece.start < gap.end());
    inside
        .map(|piece| Piece {
            start: piece.start.max(gap.start),
            end: piece.end.min(gap.end()),
            ..*piece
        })
        .collect()
}

/// The shares of the hypervisor and of the unexplained: of each gap its rest, and what of that the
/// hypervisor took.
fn unexplained(
    rests: impl Iterator<Item = (Nanos, Nanos)>,
    culprits: &mut Vec<Culprit>,
) -> Vec<Share> {
    let mut shares = Vec::new();
    for (gap, (rest, stolen)) in rests.enumerate() {
        let rest = rest.saturating_sub(stolen);
        let parts = [(CulpritKind::Steal, stolen), (CulpritKind::Unexplained, rest)];
        for (kind, ns) in parts.into_iter().filter(|(_, ns)| !ns.is_zero()) {
            let culprit = nameless(culprits, kind);
            let (inside_ns, entry_ns) = (Nanos::ZERO, Some(Nanos::ZERO));
            shares.push(Share { gap, culprit, ns, inside_ns, entry_ns });
        }
    }
    shares
}

/// The place of the culprit of that kind which has no other name.
fn nameless(culprits: &mut Vec<Culprit>, kind: CulpritKind) -> usize {
    if let Some(place) = culprits.iter().position(|culprit| culprit.kind == kind) {
        return place;
    }
    let name = if kind == CulpritKind::Steal { "hypervisor" } else { "unexplained" };
    culprits.push(Culprit { kind, name: name.to_owned(), thread: None });
    culprits.len() - 1
}
