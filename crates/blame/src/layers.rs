//! What goes on innermost: events hold one another, and each moment counts once.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use recording::Event;
use units::Nanos;

/// A stretch in which one event was the innermost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) culprit: usize,
}

/// What sorts events that go on at once: the innermost, which began last, comes last. Of
/// two that began together the shorter one is inside.
type Depth = (Nanos, Reverse<Nanos>, usize);

/// The innermost event of every moment: pieces in order of time, which do not overlap.
/// Neither the events' order nor their nesting matters.
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

/// Lets time pass: the innermost goes on until it ends, then the one around it does.
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

/// Adds a piece, or makes the last one longer that it goes on with.
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
