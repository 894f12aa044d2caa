//! The join: which gap is whose.
//!
//! An event's tracepoints lie inside the real interruption: entry, exit and the caches it
//! leaves cold are seen by the victim only. These edges belong to the event, up to twice
//! what is typical of its kind in this run; what is longer than that is nobody's, as is a
//! gap without any event. Nothing is rounded and nothing dropped: a gap's shares add up
//! to its length.
//!
//! It cannot see the time that a hypervisor takes within an event: that is the event's.

use recording::{Culprit, CulpritKind, Event, Share};
use units::{Nanos, Span};

use crate::edges::Edges;
use crate::layers::{Piece, innermost};

/// The steal clock is told in steps (`USER_HZ`), and may stand a step too low.
const STEP: Nanos = Nanos::from_millis(10);

/// What of a gap nobody is known to have taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rest {
    gap: usize,
    ns: Nanos,
    /// Whether all events were kept, so that it can only be the hypervisor's.
    is_known: bool,
}

/// Blames each gap. `gaps` and `events` may come in any order, and events may hold one
/// another. Gaps that touch one of `losses`, in which events were not kept, are nobody's,
/// and tell nothing of edges. What is left over elsewhere is the hypervisor's as far as
/// `steal` reaches, the longest first and the last one within a step of it, and else unexplained; both are added to `culprits`
/// where there is any.
pub fn join(
    gaps: &[Span],
    events: &[Event],
    losses: &[Span],
    steal: Nanos,
    culprits: &mut Vec<Culprit>,
) -> Vec<Share> {
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
        let is_known = pieces.is_some();
        let pieces = pieces.as_deref().unwrap_or_default();
        let taken = edges.share(*gap, pieces, culprits);
        let whole: Nanos = taken.values().map(|taken| taken.ns).sum();
        shares.extend(taken.into_iter().map(|(culprit, taken)| Share {
            gap: number,
            culprit,
            ns: taken.ns,
            inside_ns: taken.inside,
        }));
        let ns = gap.length.saturating_sub(whole);
        rests.push(Rest { gap: number, ns, is_known });
    }
    shares.extend(rest(rests, culprits, steal));
    shares.sort_by_key(|share| (share.gap, share.culprit));
    shares
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

/// The rests as shares of the hypervisor and of nobody.
fn rest(mut rests: Vec<Rest>, culprits: &mut Vec<Culprit>, steal: Nanos) -> Vec<Share> {
    rests.retain(|rest| !rest.ns.is_zero());
    rests.sort_by_key(|rest| (std::cmp::Reverse(rest.ns), rest.gap));
    let mut left = steal;
    let mut shares = Vec::new();
    for rest in rests {
        let is_stolen = rest.is_known && !left.is_zero() && rest.ns <= left + STEP;
        if is_stolen {
            left = left.saturating_sub(rest.ns);
        }
        let kind = if is_stolen { CulpritKind::Steal } else { CulpritKind::Unexplained };
        let culprit = nameless(culprits, kind);
        let Rest { gap, ns, .. } = rest;
        shares.push(Share { gap, culprit, ns, inside_ns: Nanos::ZERO });
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
