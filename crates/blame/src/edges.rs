//! The edges: what an interruption takes outside of its tracepoints.
//!
//! Before the first event of a gap lies its entry, after each event its exit. Typical of a
//! kind of event is the median of a run, entries and exits apart. The edges of a gap may be
//! twice as long as is typical of them all together: an exit that takes long is made up for by
//! an entry that did not, and is not worth a doubt.

use std::collections::BTreeMap;

use recording::{Culprit, CulpritKind};
use units::{Nanos, Span};

use crate::layers::Piece;

/// Edges may be so many times as long as is typical.
const BOUND: u64 = 2;

/// What one culprit takes of one gap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) ns: Nanos,
    /// Of that, before the gap's first event.
    pub(crate) entry: Nanos,
    /// Of that, between the event's tracepoints.
    pub(crate) inside: Nanos,
}

/// What each culprit takes of one gap.
pub(crate) type Shares = BTreeMap<usize, Taken>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Entry,
    Exit,
}

/// How long the edges of each kind of event may be.
pub(crate) struct Edges(BTreeMap<(CulpritKind, Side), Nanos>);

/// A stretch of a gap in which no event went on, and whose it is.
struct Hole {
    culprit: usize,
    side: Side,
    length: Nanos,
}

impl Edges {
    /// What is typical of these gaps.
    pub(crate) fn of<'a>(
        gaps: impl Iterator<Item = (Span, &'a [Piece])>,
        culprits: &[Culprit],
    ) -> Self {
        let mut lengths: BTreeMap<(CulpritKind, Side), Vec<Nanos>> = BTreeMap::new();
        for hole in gaps.flat_map(|(gap, pieces)| holes(gap, pieces)) {
            let key = (culprits[hole.culprit].kind, hole.side);
            lengths.entry(key).or_default().push(hole.length);
        }
        let bound = |mut lengths: Vec<Nanos>| {
            let middle = lengths.len() / 2;
            lengths.select_nth_unstable(middle).1.saturating_mul(BOUND)
        };
        Self(lengths.into_iter().map(|(key, lengths)| (key, bound(lengths))).collect())
    }

    /// What each culprit takes of a gap: its pieces, and its edges as far as they are
    /// typical.
    pub(crate) fn share(
        &self,
        gap: Span,
        pieces: &[Piece],
        culprits: &[Culprit],
    ) -> Shares {
        let mut shares = Shares::new();
        for piece in pieces {
            let taken = shares.entry(piece.culprit).or_default();
            let length = piece.end.saturating_sub(piece.start);
            taken.ns = taken.ns + length;
            taken.inside = taken.inside + length;
        }
        let holes = holes(gap, pieces);
        let bounds: Vec<Nanos> =
            holes.iter().map(|hole| self.bound(hole, culprits)).collect();
        let mut spare = bounds.iter().copied().sum::<Nanos>();
        for (hole, bound) in holes.iter().zip(&bounds) {
            spare = spare.saturating_sub(hole.length.min(*bound));
        }
        for (hole, bound) in holes.iter().zip(bounds) {
            let more = hole.length.saturating_sub(bound).min(spare);
            spare = spare.saturating_sub(more);
            let taken = shares.entry(hole.culprit).or_default();
            let edge = hole.length.min(bound) + more;
            taken.ns = taken.ns + edge;
            if hole.side == Side::Entry {
                taken.entry = taken.entry + edge;
            }
        }
        shares
    }

    fn bound(&self, hole: &Hole, culprits: &[Culprit]) -> Nanos {
        let kind = culprits[hole.culprit].kind;
        self.0.get(&(kind, hole.side)).copied().unwrap_or_default()
    }
}

/// The edges of a gap's events. A gap without any has none.
fn holes(gap: Span, pieces: &[Piece]) -> Vec<Hole> {
    let Some(first) = pieces.first() else { return Vec::new() };
    let entry = Hole {
        culprit: first.culprit,
        side: Side::Entry,
        length: first.start.saturating_sub(gap.start),
    };
    let next = pieces.iter().skip(1).map(|piece| piece.start).chain([gap.end()]);
    let exits = pieces.iter().zip(next).map(|(piece, next)| Hole {
        culprit: piece.culprit,
        side: Side::Exit,
        length: next.saturating_sub(piece.end),
    });
    // What goes on within an event has no edge of its own there.
    let exits = exits.filter(|hole| !hole.length.is_zero());
    std::iter::once(entry).chain(exits).collect()
}
