//! For any gaps and events the shares add up, and their order and nesting do not matter.

use blame::{StealBounds, join};
use proptest::prelude::*;
use recording::{Culprit, CulpritKind, Event, Share};
use units::{Nanos, Span};

const KINDS: [CulpritKind; 4] =
    [CulpritKind::Thread, CulpritKind::Softirq, CulpritKind::Irq, CulpritKind::Timer];

fn culprits() -> Vec<Culprit> {
    KINDS.map(|kind| Culprit { kind, name: format!("{kind:?}"), thread: None }).to_vec()
}

fn span(start: u64, length: u64) -> Span {
    Span { start: Nanos::from_nanos(start), length: Nanos::from_nanos(length) }
}

fn event(start: u64, length: u64, culprit: usize) -> Event {
    Event { span: span(start, length), culprit }
}

/// Gaps that do not overlap: a pause and a length each.
fn gaps() -> impl Strategy<Value = Vec<Span>> {
    let pairs = prop::collection::vec((1u64..500, 1u64..500), 0..20);
    pairs.prop_map(|pairs| {
        let mut now = 0;
        let gap = |(pause, length)| {
            let start = now + pause;
            now = start + length;
            span(start, length)
        };
        pairs.into_iter().map(gap).collect()
    })
}

/// Events that need neither nest nor lie in gaps.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let one = (0u64..6_000, 0u64..400, 0..KINDS.len());
    let one = one.prop_map(|(start, length, culprit)| event(start, length, culprit));
    prop::collection::vec(one, 0..60)
}

/// The shares of each gap, by kind, independent of the order of culprits.
fn told_of(
    shares: &[Share],
    culprits: &[Culprit],
) -> Vec<(usize, CulpritKind, Nanos, Nanos)> {
    let told = |share: &Share| {
        (share.gap, culprits[share.culprit].kind, share.ns, share.inside_ns)
    };
    let mut all: Vec<_> = shares.iter().map(told).collect();
    all.sort();
    all
}

fn joined(
    gaps: &[Span],
    events: &[Event],
    steal: u64,
) -> Vec<(usize, CulpritKind, Nanos, Nanos)> {
    let mut culprits = culprits();
    let joined = join(gaps, events, &[], &in_all(steal), &mut culprits);
    told_of(&joined.shares, &culprits)
}

/// That much was stolen, at any time.
fn in_all(steal: u64) -> [StealBounds; 1] {
    let (span, steal) = (span(0, 100_000), Nanos::from_nanos(steal));
    [StealBounds { span, at_least: steal, at_most: steal }]
}

/// Periods of the run, and the stolen time in each: in those parts of gaps.
fn stolen_between(cuts: &[u64], parts: &[Span]) -> Vec<StealBounds> {
    let mut cuts = [&[0, 100_000], cuts].concat();
    cuts.sort_unstable();
    let between = cuts.windows(2).map(|ends| span(ends[0], ends[1] - ends[0]));
    let stolen = |stretch: Span| -> Nanos {
        parts.iter().map(|part| common(*part, stretch)).sum()
    };
    let bounds = between.map(|span| StealBounds {
        span,
        at_least: stolen(span),
        at_most: stolen(span),
    });
    bounds.collect()
}

fn common(one: Span, other: Span) -> Nanos {
    one.end().min(other.end()).saturating_sub(one.start.max(other.start))
}

fn sum(
    told: &[(usize, CulpritKind, Nanos, Nanos)],
    is_of: impl Fn(usize, CulpritKind) -> bool,
) -> Nanos {
    told.iter()
        .filter(|(gap, kind, ..)| is_of(*gap, *kind))
        .map(|(_, _, ns, _)| *ns)
        .sum()
}

proptest! {
    /// Check that each gap's shares add up to its length, that an event's entry and inside do not
    /// exceed its share, and that the hypervisor's share does not exceed the stolen time.
    #[test]
    fn shares_add_up(gaps in gaps(), events in events(), steal in 0u64..1_000) {
        let told = joined(&gaps, &events, steal);
        for (number, gap) in gaps.iter().enumerate() {
            prop_assert_eq!(sum(&told, |gap, _| gap == number), gap.length);
        }
        let stolen = sum(&told, |_, kind| kind == CulpritKind::Steal);
        prop_assert!(stolen <= Nanos::from_nanos(steal));
        let joined = join(&gaps, &events, &[], &in_all(steal), &mut culprits());
        for share in &joined.shares {
            prop_assert!(share.entry_ns.unwrap() + share.inside_ns <= share.ns);
        }
        prop_assert!(stolen + joined.steal_max <= Nanos::from_nanos(steal));
    }

    /// Check that the proven stolen time of a gap was stolen in it, wherever in gaps the hypervisor
    /// took its time and whenever its clock was read; and that all of it in gaps without events
    /// lies within the bounds.
    #[test]
    fn steal_is_proven(
        gaps in gaps(),
        events in events(),
        thirds in prop::collection::vec(0u64..4, 20),
        cuts in prop::collection::vec(0u64..11_000, 0..30),
    ) {
        // Of each gap nothing, its first or last two thirds, or all.
        let part = |(gap, third): (&Span, &u64)| {
            let (start, length) = (gap.start.get(), gap.length.get());
            match third {
                0 => span(start, 0),
                1 => span(start, length * 2 / 3),
                2 => span(start + length / 3, length - length / 3),
                _ => *gap,
            }
        };
        let parts: Vec<Span> = gaps.iter().zip(&thirds).map(part).collect();
        let bounds = stolen_between(&cuts, &parts);
        let mut culprits = culprits();
        let joined = join(&gaps, &events, &[], &bounds, &mut culprits);
        for share in &joined.shares {
            if culprits[share.culprit].kind == CulpritKind::Steal {
                prop_assert!(share.ns <= parts[share.gap].length);
            }
        }
        let mut culprits = Vec::new();
        let joined = join(&gaps, &[], &[], &bounds, &mut culprits);
        let all: Nanos = parts.iter().map(|part| part.length).sum();
        let told = told_of(&joined.shares, &culprits);
        let named = sum(&told, |_, kind| kind == CulpritKind::Steal);
        prop_assert!(named <= all && all <= named + joined.steal_max);
    }

    /// Check that the events' order does not matter.
    #[test]
    fn order_does_not_matter(
        gaps in gaps(),
        (events, shuffled) in events().prop_flat_map(|events| {
            (Just(events.clone()), Just(events).prop_shuffle())
        }),
    ) {
        prop_assert_eq!(joined(&gaps, &events, 0), joined(&gaps, &shuffled, 0));
    }

    /// Check that an event cut in two, at the start of a nested one, has the same share, inside its
    /// tracepoints too.
    #[test]
    fn nesting_does_not_matter(gaps in gaps(), start in 0u64..5_000, length in 3u64..900) {
        let third = length / 3;
        let nested = [event(start, length, 0), event(start + third, third, 3)];
        let flat = [
            event(start, third, 0),
            event(start + third, third, 3),
            event(start + 2 * third, length - 2 * third, 0),
        ];
        prop_assert_eq!(joined(&gaps, &nested, 0), joined(&gaps, &flat, 0));
    }

    /// Check that gaps with lost events are unexplained, and that all others are attributed as if
    /// those did not exist.
    #[test]
    fn lost_events_are_unexplained(
        gaps in gaps(),
        events in events(),
        loss in (0u64..6_000, 1u64..900),
        steal in 0u64..1_000,
    ) {
        let loss = span(loss.0, loss.1);
        let touched =
            |gap: &Span| gap.start < loss.end() && loss.start < gap.end();
        let others: Vec<Span> = gaps.iter().copied().filter(|gap| !touched(gap)).collect();
        // The stolen time may lie in these gaps: then less is proven for the others.
        for steal in [steal, 0] {
            let mut culprits = culprits();
            let shares = join(&gaps, &events, &[loss], &in_all(steal), &mut culprits).shares;
            for share in shares.iter().filter(|share| touched(&gaps[share.gap])) {
                prop_assert_eq!(culprits[share.culprit].kind, CulpritKind::Unexplained);
                prop_assert_eq!(share.ns, gaps[share.gap].length);
            }
        }
        let mut culprits = culprits();
        let shares = join(&gaps, &events, &[loss], &[], &mut culprits).shares;
        let kept = shares.iter().filter(|share| !touched(&gaps[share.gap]));
        let places: Vec<usize> = (0..gaps.len()).filter(|at| !touched(&gaps[*at])).collect();
        let kept: Vec<Share> = kept.copied().collect();
        let without: Vec<_> = joined(&others, &events, 0)
            .into_iter()
            .map(|(gap, kind, ns, inside)| (places[gap], kind, ns, inside))
            .collect();
        prop_assert_eq!(told_of(&kept, &culprits), without);
    }
}

/// Check one gap by hand: a timer interrupt during the run of another thread, with edges.
#[test]
fn one_gap() {
    let gaps = [span(1_000, 100)];
    let events = [event(1_010, 80, 0), event(1_030, 20, 3)];
    let nanos = Nanos::from_nanos;
    let expected = [
        (0, CulpritKind::Timer, nanos(20), nanos(20)),
        (0, CulpritKind::Thread, nanos(80), nanos(60)),
    ];
    assert_eq!(joined(&gaps, &events, 0), expected);
    let shares = join(&gaps, &events, &[], &[], &mut culprits()).shares;
    let entries: Vec<_> = shares.iter().map(|share| share.entry_ns).collect();
    assert_eq!(entries, [Some(nanos(10)), Some(nanos(0))]);
}

/// Check that an edge above twice the typical one is unexplained beyond that, and the hypervisor's
/// as far as the stolen time does not fit into the tick and its edges.
#[test]
fn long_edges() {
    let mut gaps: Vec<Span> = (0..9).map(|number| span(number * 1_000, 30)).collect();
    gaps[4].length = Nanos::from_nanos(530);
    let events: Vec<Event> =
        (0..9).map(|number| event(number * 1_000 + 10, 10, 3)).collect();
    let told = joined(&gaps, &events, 0);
    let rest = sum(&told, |gap, kind| gap == 4 && kind == CulpritKind::Unexplained);
    assert_eq!(rest, Nanos::from_nanos(480));
    assert_eq!(
        sum(&told, |gap, kind| gap != 4 && kind == CulpritKind::Unexplained),
        Nanos::ZERO
    );
    let mut culprits = culprits();
    let bounds = StealBounds { span: span(3_500, 1_100), at_least: rest, at_most: rest };
    let joined = join(&gaps, &events, &[], &[bounds], &mut culprits);
    let with_steal = told_of(&joined.shares, &culprits);
    let stolen = sum(&with_steal, |gap, kind| gap == 4 && kind == CulpritKind::Steal);
    assert_eq!(stolen, Nanos::from_nanos(430));
    assert_eq!(joined.steal_max, Nanos::from_nanos(50));
    // Read before and after the run only, the stolen time may lie in all other gaps as well.
    let told = self::joined(&gaps, &events, 480);
    assert_eq!(sum(&told, |_, kind| kind == CulpritKind::Steal), Nanos::from_nanos(190));
}
