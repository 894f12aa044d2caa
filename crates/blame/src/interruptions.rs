//! When a program could have run and did not: interrupts while one of its threads had the CPU,
//! and others' turns that began while its thread could have run on.
//!
//! Its threads are known by their marks ([`crate::Threads::Marked`]). What others do while all of
//! them wait for something interrupts nobody. Between tracepoints only: an interruption is
//! longer by its way in and out. Cannot see how long a thread that is woken waits for its turn.

use recording::{Blamed, Event, Interruptions};
use units::{Nanos, Span};

use crate::events::Known;
use crate::join::join;
use crate::level::Level;
use crate::names::Names;
use crate::seen::{Lane, Record};

/// From the end of an interrupt to the switch that it brings about; what lies between is no
/// turn of the program's.
const NEAR: Nanos = Nanos::from_micros(2);

/// The interruptions of the program that ran in that time of the records' clock.
pub(crate) fn interruptions(lane: &Lane, names: &Names, ran: Span) -> Interruptions {
    let own = own_turns(lane, ran);
    let losses = lane.losses.iter().filter_map(|(from, to)| clipped(*from, *to, ran));
    let losses = together(losses.collect());
    let kept_off = kept_off(&own, &losses);
    let turns: Vec<Span> = own.iter().map(|(span, _)| *span).collect();
    let interrupts = lane.records.iter().filter(|record| record.level != Level::Thread);
    let interrupts = interrupts.filter_map(|record| within(record, ran));
    let interrupts = interrupts.filter(|span| is_in(*span, &turns));
    let gaps = together(interrupts.chain(kept_off.iter().copied()).collect());

    let mut known = Known::default();
    let foreign = lane.records.iter().filter(|record| !record.mark.is_own);
    let events = foreign.filter_map(|record| {
        let span = within(record, ran)?;
        overlaps(span, &gaps)
            .then(|| Event { span, culprit: known.saw(names.culprit(record)) })
    });
    let events: Vec<Event> = events.collect();
    let ready = turns.iter().chain(&kept_off).map(|span| span.length).sum();
    let blamed = blamed(lane, known, &gaps, &events, &losses);
    Interruptions { ready_ns: ready, gaps, blamed }
}

/// What took these gaps; of the hypervisor nothing is known.
fn blamed(
    lane: &Lane,
    known: Known,
    gaps: &[Span],
    events: &[Event],
    losses: &[Span],
) -> Blamed {
    let (mut culprits, mut counts) = known.into_parts();
    let shares = join(gaps, events, losses, Nanos::ZERO, &mut culprits);
    counts.resize(culprits.len(), 0);
    Blamed { culprits, shares, events: counts, lost: lane.lost, trace: None }
}

/// When anything ran on a CPU within these stretches of the records' clock, counted from the
/// first one's start, and what it was.
pub(crate) fn busy(lane: &Lane, names: &Names, waits: &[Span]) -> (Vec<Span>, Blamed) {
    let Some(first) = waits.first() else { return (Vec::new(), Blamed::default()) };
    let in_waits = |from: u64, to: u64| {
        waits.iter().filter_map(move |wait| {
            let part = clipped(from, to, *wait)?;
            let start = part.start + wait.start.saturating_sub(first.start);
            Some(Span { start, ..part })
        })
    };
    let mut known = Known::default();
    let mut events = Vec::new();
    for record in lane.records.iter().filter(|record| !record.is_idle()) {
        let parts = in_waits(record.start, record.end);
        events.extend(
            parts.map(|span| Event { span, culprit: known.saw(names.culprit(record)) }),
        );
    }
    let spans = touching(events.iter().map(|event| event.span).collect(), Nanos::ZERO);
    let losses = lane.losses.iter().flat_map(|(from, to)| in_waits(*from, *to));
    let losses: Vec<Span> = losses.collect();
    let blamed = blamed(lane, known, &spans, &events, &losses);
    (spans, blamed)
}

/// When the program's threads had the CPU, in order, and whether they could have run on at
/// each end.
fn own_turns(lane: &Lane, ran: Span) -> Vec<(Span, bool)> {
    let own = lane.records.iter().filter(|record| record.mark.is_own);
    let turn = |record: &Record| Some((within(record, ran)?, record.mark.is_runnable));
    let mut turns: Vec<(Span, bool)> = own.filter_map(turn).collect();
    turns.sort_unstable();
    turns
}

/// From each turn that ended against the program's will to its next one. Where records were
/// lost, that may be one of those.
fn kept_off(own: &[(Span, bool)], losses: &[Span]) -> Vec<Span> {
    let pairs = own.iter().zip(own.iter().skip(1));
    let off = pairs.filter(|((_, is_runnable), _)| *is_runnable).map(|(turn, next)| {
        let (start, end) = (turn.0.end(), next.0.start);
        Span { start, length: end.saturating_sub(start) }
    });
    off.filter(|span| !span.length.is_zero() && !overlaps(*span, losses)).collect()
}

/// A record's time, counted from the program's start; `None` where it was not running.
fn within(record: &Record, ran: Span) -> Option<Span> {
    clipped(record.start, record.end, ran)
}

fn clipped(from: u64, to: u64, ran: Span) -> Option<Span> {
    let begin = Nanos::from_nanos(from).max(ran.start);
    let end = Nanos::from_nanos(to).min(ran.end());
    let length = end.saturating_sub(begin);
    let start = begin.saturating_sub(ran.start);
    (!length.is_zero()).then_some(Span { start, length })
}

/// Whether it began in one of these stretches, which are in order.
fn is_in(span: Span, stretches: &[Span]) -> bool {
    let after = stretches.partition_point(|stretch| stretch.start <= span.start);
    let last = after.checked_sub(1).and_then(|at| stretches.get(at));
    last.is_some_and(|stretch| span.start < stretch.end())
}

/// Whether any of these stretches, which are in order, has a moment in common with it.
fn overlaps(span: Span, stretches: &[Span]) -> bool {
    let next = stretches.partition_point(|stretch| stretch.end() <= span.start);
    stretches.get(next).is_some_and(|stretch| stretch.start < span.end())
}

/// The same stretches in order, those that touch, or nearly so, as one.
fn together(spans: Vec<Span>) -> Vec<Span> {
    touching(spans, NEAR)
}

/// The same stretches in order, those as one that are no further apart than that.
fn touching(mut spans: Vec<Span>, near: Nanos) -> Vec<Span> {
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

#[cfg(test)]
mod tests {
    use facts::Root;
    use recording::CulpritKind;
    use units::Cpu;

    use super::*;
    use crate::seen::Mark;

    /// The program is 500; 70 is another. Times are microseconds from 1 s on.
    fn record(level: Level, id: u32, from: u64, to: u64, mark: &str) -> Record {
        let time = |micros: u64| 1_000_000_000 + micros * 1_000;
        let mut comm = [0; 16];
        comm[..2].copy_from_slice(b"it");
        Record {
            level,
            start: time(from),
            end: time(to),
            detail: u64::from(id) << 32 | 120,
            id,
            comm,
            mark: Mark { is_own: mark != "other", is_runnable: mark == "runnable" },
        }
    }

    fn found(records: Vec<Record>, losses: &[(u64, u64)]) -> Interruptions {
        let mut lane = Lane::new(Cpu::new(1));
        lane.records = records;
        lane.losses = losses.to_vec();
        lane.lost = u64::try_from(losses.len()).unwrap();
        let names = Names::read(&Root::live(), &[]);
        let (start, length) = (Nanos::from_secs(1), Nanos::from_millis(10));
        interruptions(&lane, &names, Span { start, length })
    }

    fn told(found: &Interruptions) -> Vec<(u64, u64)> {
        let micros = |nanos: Nanos| nanos.get() / 1_000;
        found.gaps.iter().map(|gap| (micros(gap.start), micros(gap.length))).collect()
    }

    /// Check that all that ran in the waits is found, an interrupt of a thread as its own, what lies
    /// outside cut off; that idleness is none, and that touching pieces are one stretch.
    #[test]
    fn busy_in_waits() {
        use Level::{Softirq, Thread, Vector};
        let mut lane = Lane::new(Cpu::new(1));
        lane.records = vec![
            record(Thread, 0, 0, 9_000, "other"),
            record(Vector, 239, 100, 104, "other"),
            record(Softirq, 1, 104, 110, "other"),
            record(Thread, 70, 990, 1_010, "other"),
            record(Thread, 70, 5_100, 5_140, "other"),
            record(Vector, 239, 5_110, 5_115, "other"),
        ];
        let at = |micros: u64| Nanos::from_secs(1) + Nanos::from_micros(micros);
        let wait =
            |from, micros| Span { start: at(from), length: Nanos::from_micros(micros) };
        let names = Names::read(&Root::live(), &[]);
        let (spans, blamed) = busy(&lane, &names, &[wait(50, 950), wait(5_000, 1_000)]);
        let micros = |nanos: Nanos| nanos.get() / 1_000;
        let told: Vec<_> =
            spans.iter().map(|s| (micros(s.start), micros(s.length))).collect();
        assert_eq!(told, [(50, 10), (940, 10), (5_050, 40)]);
        let of = |kind| {
            let shares = blamed.shares.iter();
            let own = shares.filter(|share| blamed.culprits[share.culprit].kind == kind);
            micros(own.map(|share| share.ns).sum())
        };
        let kinds = [CulpritKind::Thread, CulpritKind::Softirq, CulpritKind::Unexplained];
        assert_eq!(kinds.map(of), [45, 6, 0]);
        assert_eq!(busy(&lane, &names, &[]).0, []);
    }

    /// Check what is an interruption: an interrupt in a turn, with what it brings about, and a
    /// turn of somebody else's that the program did not make room for; and what is none.
    #[test]
    fn interruptions_of_a_program() {
        use Level::{Softirq, Thread, Vector};
        let found = found(
            vec![
                record(Thread, 70, 0, 100, "other"),
                record(Vector, 0xec, 50, 60, "other"),
                record(Vector, 0xec, 200, 210, "other"),
                record(Vector, 0xec, 400, 405, "other"),
                record(Softirq, 1, 402, 404, "other"),
                record(Thread, 500, 100, 406, "runnable"),
                record(Thread, 70, 406, 450, "other"),
                record(Thread, 500, 450, 600, "waits"),
                record(Thread, 0, 600, 700, "other"),
                record(Vector, 0xec, 650, 660, "other"),
                record(Thread, 500, 700, 800, "waits"),
            ],
            &[],
        );
        assert_eq!(told(&found), [(200, 10), (400, 50)]);
        assert_eq!(found.ready_ns, Nanos::from_micros(306 + 44 + 150 + 100));
        let whole: Nanos = found.gaps.iter().map(|gap| gap.length).sum();
        assert_eq!(
            found.blamed.shares.iter().map(|share| share.ns).sum::<Nanos>(),
            whole
        );
        let of = |kind: CulpritKind| -> u64 {
            let is = |share: &&recording::Share| {
                found.blamed.culprits[share.culprit].kind == kind
            };
            let inside =
                found.blamed.shares.iter().filter(is).map(|share| share.inside_ns);
            inside.sum::<Nanos>().get() / 1_000
        };
        assert_eq!([of(CulpritKind::Timer), of(CulpritKind::Softirq)], [13, 2]);
        assert_eq!([of(CulpritKind::Thread), of(CulpritKind::Unexplained)], [44, 0]);
    }

    /// Check that a thread of the program's takes nothing from another one, and that the end
    /// of the program and lost records are no interruption.
    #[test]
    fn no_interruptions() {
        let own = |id, from, to, mark| record(Level::Thread, id, from, to, mark);
        let two =
            found(vec![own(500, 0, 50, "runnable"), own(501, 50, 90, "waits")], &[]);
        assert_eq!(told(&two), []);
        let last = found(vec![own(500, 0, 50, "runnable")], &[]);
        assert_eq!((told(&last), last.ready_ns), (vec![], Nanos::from_micros(50)));
        let turns = || vec![own(500, 0, 50, "runnable"), own(500, 90, 95, "waits")];
        assert_eq!(told(&found(turns(), &[])), [(50, 40)]);
        let lost = found(turns(), &[(1_000_060_000, 1_000_070_000)]);
        assert_eq!((told(&lost), lost.blamed.lost), (vec![], 1));
    }
}
