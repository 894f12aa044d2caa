//! The join: attributes each gap to the events that caused it.
//!
//! The tracepoints of an event lie inside the real interruption. The entry into the kernel, the
//! exit, and the refill of caches that the interruption evicted are outside of them, and only
//! visible as parts of the gap, so that a gap is longer than its events. It is divided in these
//! steps:
//!
//! 1. Each moment belongs to the innermost event ([`crate::join::layers`]): an interrupt during the run
//!    of a thread counts once, as the interrupt.
//! 2. The time before, between and after the events, their edges, belongs to the adjacent event, up
//!    to twice what is typical of its kind in this run ([`crate::join::edges`]).
//! 3. The rest, or all of a gap without events, is attributed to the hypervisor as far as its clock
//!    proves that it took the time ([`crate::join::steal`]), and is else unexplained.
//! 4. Of the gaps of all CPUs that are unexplained as a whole, some may be proven to be the firmware's
//!    ([`crate::join::firmware`]).
//!
//! A gap that overlaps a period with lost events may have had any of them: all of it is
//! unexplained, and it does not count for typical edges. Nothing is rounded or dropped: the shares
//! of a gap add up to its length.
//!
//! Cannot see the time that a hypervisor takes within an event: it is attributed to the event.

pub(crate) mod edges;
pub(crate) mod firmware;
pub(crate) mod layers;
pub(crate) mod steal;

use recording::{Culprit, CulpritKind, Event, Share};
use units::{Nanos, Span};

use crate::join::edges::EdgeLimits;
use crate::join::layers::{Piece, innermost};
use crate::join::steal::{Rest, StealBounds, prove};

/// The shares of all gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// The share of each culprit in each gap, gap by gap.
    pub shares: Vec<Share>,
    /// The upper bound of the hypervisor's share in the unexplained time.
    pub steal_max: Nanos,
}

/// Attributes each gap. `gaps` and `events` may have any order, and events may be nested. Gaps that
/// overlap one of `losses`, in which events were lost, are unexplained, and do not count for
/// typical edges. `steal` is what the hypervisor's clock counted. Culprits for the hypervisor and
/// for unexplained time are added to `culprits` if they have a share.
pub fn join(
    gaps: &[Span],
    events: &[Event],
    losses: &[Span],
    steal: &[StealBounds],
    culprits: &mut Vec<Culprit>,
) -> Joined {
    let pieces = innermost(events);
    let losses = merged(losses.to_vec(), Nanos::ZERO);
    let pieces_of =
        |gap: &Span| (!overlaps(*gap, &losses)).then(|| within(&pieces, *gap));
    let found: Vec<Option<Vec<Piece>>> = gaps.iter().map(pieces_of).collect();
    let complete = gaps
        .iter()
        .zip(&found)
        .filter_map(|(gap, pieces)| Some((*gap, pieces.as_deref()?)));
    let edges = EdgeLimits::of(complete, culprits);
    let mut shares = Vec::new();
    let mut rests = Vec::new();
    for (number, (gap, pieces)) in gaps.iter().zip(&found).enumerate() {
        let portions = edges.share(*gap, pieces.as_deref().unwrap_or_default(), culprits);
        let whole: Nanos = portions.values().map(|portion| portion.ns).sum();
        shares.extend(portions.into_iter().map(|(culprit, portion)| Share {
            gap: number,
            culprit,
            ns: portion.ns,
            inside_ns: portion.inside,
            entry_ns: Some(portion.entry),
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

/// The same spans in order, with those merged that are at most `near` apart.
pub(crate) fn merged(mut spans: Vec<Span>, near: Nanos) -> Vec<Span> {
    spans.sort_unstable();
    spans.dedup_by(|later, span| {
        let touches = later.start <= span.end() + near;
        if touches {
            let end = span.end().max(later.end());
            span.length = end.saturating_sub(span.start);
        }
        touches
    });
    spans
}

/// Whether a span overlaps any of these periods, which are in order and do not overlap.
pub(crate) fn overlaps(span: Span, stretches: &[Span]) -> bool {
    let next = stretches.partition_point(|stretch| stretch.end() <= span.start);
    stretches.get(next).is_some_and(|stretch| stretch.start < span.end())
}

/// The pieces within a gap, cut to it. `pieces` are in order and do not overlap.
pub(crate) fn within(pieces: &[Piece], gap: Span) -> Vec<Piece> {
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

/// The shares of the hypervisor and of unexplained time, from the rest of each gap and the proven
/// steal time in it.
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

/// The index of the culprit of that kind, which has one name only.
pub(crate) fn nameless(culprits: &mut Vec<Culprit>, kind: CulpritKind) -> usize {
    if let Some(place) = culprits.iter().position(|culprit| culprit.kind == kind) {
        return place;
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "other kinds have names")]
    let name = match kind {
        CulpritKind::Steal => "hypervisor",
        CulpritKind::Firmware => "firmware",
        _ => "unexplained",
    };
    culprits.push(Culprit { kind, name: name.to_owned(), thread: None });
    culprits.len() - 1
}
