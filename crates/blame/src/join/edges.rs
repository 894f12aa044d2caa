//! Edges: the time of an interruption outside of its tracepoints.
//!
//! A gap has an entry before its first event, and an exit after each event, up to the next one. Its
//! edges cannot be measured one by one: another interruption in the same gap, without a tracepoint,
//! would look like a long edge. So their length is limited by what is typical of a kind of event in
//! this run: twice the median, for entries and exits separately. The limit applies to the sum of a
//! gap's edges, not to each: how the time outside of tracepoints divides into entry and exit
//! varies, and only an excess of the sum shows that something else took time. An edge may therefore
//! exceed its own limit by what the other edges of the gap leave of theirs. The time beyond that is
//! not attributed to the event.

use std::collections::BTreeMap;

use recording::{Culprit, CulpritKind};
use units::{Nanos, Span};

use crate::join::layers::Piece;

/// The limit of an edge, in typical edges of its kind.
const BOUND: u64 = 2;

/// The share of one culprit in one gap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Portion {
    pub(crate) ns: Nanos,
    /// Its part before the gap's first event.
    pub(crate) entry: Nanos,
    /// Its part between the event's tracepoints.
    pub(crate) inside: Nanos,
}

/// The share of each culprit in one gap, by the culprit's index.
pub(crate) type Shares = BTreeMap<usize, Portion>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Entry,
    Exit,
}

/// The typical edges of each kind of event: the median of those in some gaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypicalEdges(BTreeMap<(CulpritKind, Side), Nanos>);

impl TypicalEdges {
    /// The typical edges of these gaps.
    pub(crate) fn of<'a>(
        gaps: impl Iterator<Item = (Span, &'a [Piece])>,
        culprits: &[Culprit],
    ) -> Self {
        let mut lengths: BTreeMap<(CulpritKind, Side), Vec<Nanos>> = BTreeMap::new();
        for edge in gaps.flat_map(|(gap, pieces)| edges_of(gap, pieces)) {
            let key = (culprits[edge.culprit].kind, edge.side);
            lengths.entry(key).or_default().push(edge.length);
        }
        let median = |mut lengths: Vec<Nanos>| {
            let middle = lengths.len() / 2;
            *lengths.select_nth_unstable(middle).1
        };
        Self(lengths.into_iter().map(|(key, lengths)| (key, median(lengths))).collect())
    }

    /// The time before the first tracepoint of a gap that begins with an event of that kind; zero if
    /// none was measured.
    pub(crate) fn entry(&self, kind: CulpritKind) -> Nanos {
        self.0.get(&(kind, Side::Entry)).copied().unwrap_or_default()
    }

    /// The time after the last tracepoint of an event of that kind.
    pub(crate) fn exit(&self, kind: CulpritKind) -> Nanos {
        self.0.get(&(kind, Side::Exit)).copied().unwrap_or_default()
    }

    /// The kinds with an edge.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = CulpritKind> {
        let mut kinds: Vec<CulpritKind> = self.0.keys().map(|(kind, _)| *kind).collect();
        kinds.dedup();
        kinds.into_iter()
    }
}

/// The limit of the edges of each kind of event.
pub(crate) struct EdgeLimits(BTreeMap<(CulpritKind, Side), Nanos>);

/// A period of a gap without an event, and the culprit that it belongs to.
struct Edge {
    culprit: usize,
    side: Side,
    length: Nanos,
}

impl EdgeLimits {
    /// The limits from the edges of these gaps.
    pub(crate) fn of<'a>(
        gaps: impl Iterator<Item = (Span, &'a [Piece])>,
        culprits: &[Culprit],
    ) -> Self {
        let TypicalEdges(typical) = TypicalEdges::of(gaps, culprits);
        let limit = |(key, typical): (_, Nanos)| (key, typical.saturating_mul(BOUND));
        Self(typical.into_iter().map(limit).collect())
    }

    /// The share of each culprit in a gap: its pieces, and its edges up to the limit.
    pub(crate) fn share(
        &self,
        gap: Span,
        pieces: &[Piece],
        culprits: &[Culprit],
    ) -> Shares {
        let mut shares = Shares::new();
        for piece in pieces {
            let portion = shares.entry(piece.culprit).or_default();
            let length = piece.end.saturating_sub(piece.start);
            portion.ns = portion.ns + length;
            portion.inside = portion.inside + length;
        }
        let edges = edges_of(gap, pieces);
        let bounds: Vec<Nanos> =
            edges.iter().map(|edge| self.bound(edge, culprits)).collect();
        let mut spare = bounds.iter().copied().sum::<Nanos>();
        for (edge, bound) in edges.iter().zip(&bounds) {
            spare = spare.saturating_sub(edge.length.min(*bound));
        }
        for (edge, bound) in edges.iter().zip(bounds) {
            let more = edge.length.saturating_sub(bound).min(spare);
            spare = spare.saturating_sub(more);
            let portion = shares.entry(edge.culprit).or_default();
            let length = edge.length.min(bound) + more;
            portion.ns = portion.ns + length;
            if edge.side == Side::Entry {
                portion.entry = portion.entry + length;
            }
        }
        shares
    }

    fn bound(&self, edge: &Edge, culprits: &[Culprit]) -> Nanos {
        let kind = culprits[edge.culprit].kind;
        self.0.get(&(kind, edge.side)).copied().unwrap_or_default()
    }
}

/// The edges of a gap's events; none for a gap without events.
fn edges_of(gap: Span, pieces: &[Piece]) -> Vec<Edge> {
    let Some(first) = pieces.first() else { return Vec::new() };
    let entry = Edge {
        culprit: first.culprit,
        side: Side::Entry,
        length: first.start.saturating_sub(gap.start),
    };
    let next = pieces.iter().skip(1).map(|piece| piece.start).chain([gap.end()]);
    let exits = pieces.iter().zip(next).map(|(piece, next)| Edge {
        culprit: piece.culprit,
        side: Side::Exit,
        length: next.saturating_sub(piece.end),
    });
    // An event nested in another one has no edge of its own.
    let exits = exits.filter(|edge| !edge.length.is_zero());
    std::iter::once(entry).chain(exits).collect()
}
