//! The innermost events: events may be nested, and each moment counts once.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use recording::Event;
use units::Nanos;

/// A period in which one event was the innermost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) culprit: usize,
}

/// The order of concurrent events: the innermost, which began last, is the last. Of two that began
/// together the shorter one is inside.
type Depth = (Nanos, Reverse<Nanos>, usize);

/// The innermost event of every moment: pieces in order of time, which do not overlap. The order
/// and the nesting of `events` do not matter.
pub(crate) fn innermost(events: &[Event]) -> Vec<Piece> {
    let mut begins: Vec<&Event> =
        events.iter().filter(|event| !event.span.length.is_zero()).collect();
    begins.sort_by_key(|event| depth(event));
    let mut pieces: Vec<Piece> = Vec::new();
    let mut open: BTreeSet<Depth> = BTreeSet::new();
    let mut now = Nanos::ZERO;
    for event in begins {
        advance(&mut pieces, &mut open, now, event.span.start);
        now = event.span.start;
        open.insert(depth(event));
    }
    advance(&mut pieces, &mut open, now, Nanos::from_nanos(u64::MAX));
    pieces
}

fn depth(event: &Event) -> Depth {
    (event.span.start, Reverse(event.span.end()), event.culprit)
}

/// Advances to `until`: the innermost event continues until its end, then the one around it.
fn advance(
    pieces: &mut Vec<Piece>,
    open: &mut BTreeSet<Depth>,
    mut now: Nanos,
    until: Nanos,
) {
    while let Some(&(_, Reverse(end), culprit)) = open.last() {
        if end <= now {
            open.pop_last();
            continue;
        }
        let end = end.min(until);
        push(pieces, Piece { start: now, end, culprit });
        now = end;
        if end == until {
            return;
        }
    }
}

/// Adds a piece, or extends the last one if it continues.
fn push(pieces: &mut Vec<Piece>, piece: Piece) {
    if piece.start == piece.end {
        return;
    }
    match pieces.last_mut() {
        Some(last) if last.end == piece.start && last.culprit == piece.culprit => {
            last.end = piece.end;
        }
        _ => pieces.push(piece),
    }
}
