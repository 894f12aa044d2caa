//! Whatever gaps and events there are, the shares add up, and nothing else matters.

use blame::join;
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

/// What each gap's shares are, by kind, which do not depend on the culprits' places.
fn told(
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
    let shares = join(gaps, events, &[], Nanos::from_nanos(steal), &mut culprits);
    told(&shares, &culprits)
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
    /// Check that each gap's shares add up to its length, that nobody has more inside than
    /// whole, and that the hypervisor gets no more than it took.
    #[test]
    fn shares_add_up(gaps in gaps(), events in events(), steal in 0u64..1_000) {
        let told = joined(&gaps, &events, steal);
        for (number, gap) in gaps.iter().enumerate() {
            prop_assert_eq!(sum(&told, |gap, _| gap == number), gap.length);
        }
        prop_assert!(told.iter().all(|(_, _, ns, inside)| inside <= ns));
        let stolen = sum(&told, |_, kind| kind == CulpritKind::Steal);
        let shares = told.iter().filter(|(_, kind, ..)| *kind == CulpritKind::Steal);
        let last = shares.map(|(_, _, ns, _)| *ns).min().unwrap_or_default();
        // The last one may take it a step further.
        prop_assert!(stolen.is_zero() || stolen.saturating_sub(last) < Nanos::from_nanos(steal));
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

    /// Check that an event cut in two, where something in it began, is blamed no less and
    /// no more inside its tracepoints.
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

    /// Check that what was taken while events were not kept is nobody's, and that
    /// everywhere else all is as if those gaps had not been.
    #[test]
    fn lost_events_are_unexplained(
        gaps in gaps(),
        events in events(),
        loss in (0u64..6_000, 1u64..900),
        steal in 0u64..1_000,
    ) {
        let (loss, mut culprits) = (span(loss.0, loss.1), culprits());
        let steal = Nanos::from_nanos(steal);
        let touched =
            |gap: &Span| gap.start < loss.end() && loss.start < gap.end();
        let others: Vec<Span> = gaps.iter().copied().filter(|gap| !touched(gap)).collect();
        let shares = join(&gaps, &events, &[loss], steal, &mut culprits);
        let (lost, kept): (Vec<&Share>, Vec<&Share>) =
            shares.iter().partition(|share| touched(&gaps[share.gap]));
        for share in lost {
            prop_assert_eq!(culprits[share.culprit].kind, CulpritKind::Unexplained);
            prop_assert_eq!(share.ns, gaps[share.gap].length);
        }
        let places: Vec<usize> = (0..gaps.len()).filter(|at| !touched(&gaps[*at])).collect();
        let kept: Vec<Share> = kept.into_iter().copied().collect();
        let without: Vec<_> = joined(&others, &events, steal.get())
            .into_iter()
            .map(|(gap, kind, ns, inside)| (places[gap], kind, ns, inside))
            .collect();
        prop_assert_eq!(told(&kept, &culprits), without);
    }
}

/// Check one gap by hand: a timer interrupt in a thread that took the CPU, with edges.
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
}

/// Check that an edge that is longer than twice the typical one is nobody's as far as it
/// is, and the hypervisor's where it took so much.
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
    let told = joined(&gaps, &events, 480);
    assert_eq!(sum(&told, |_, kind| kind == CulpritKind::Steal), rest);
}
