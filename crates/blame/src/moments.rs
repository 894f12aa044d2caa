//! What happened at the moments of a measurement: the causes of each, the events before and during it,
//! and a trace of the time around all of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use recording::{
    Blamed, Body, CpuTrace, Culprit, Event, FoundMoment, Moment, MomentCause,
    MomentEvent, Moments,
};
use units::{Nanos, Span};

use crate::feedback::around;
use crate::join::{merged, overlaps};
use crate::level::Level;
use crate::names::Names;
use crate::records::{Lane, Record};
use crate::tally::Tally;

/// Events that ended this long before a moment are listed,
const BEFORE: Nanos = Nanos::from_micros(500);
/// the last ones,
const EVENTS_BEFORE: usize = 16;
/// and the longest ones during it.
const EVENTS_DURING: usize = 48;
/// The names of threads that measure; each CPU has its own.
const MEASURING: [&str; 3] = ["spin/", "late/", "jitter"];

/// The moments of a measurement whose values have been attributed to `causes`, with the trace around them if it is
/// `stored`.
pub(crate) fn moments(
    body: &Body,
    lanes: &[Lane],
    names: &Names,
    stored: bool,
    causes: impl Fn(&FoundMoment) -> Option<Vec<MomentCause>>,
) -> Moments {
    let explained = |found: FoundMoment| {
        let causes = causes(&found);
        let mut moment = Moment { causes, ..found.moment };
        if let Some(lane) = lanes.iter().find(|lane| lane.cpu == moment.cpu) {
            add_events(&mut moment, lane, names);
        }
        moment
    };
    let found: Vec<Moment> = body.moments().into_iter().map(explained).collect();
    let near = found.iter().map(|moment| around(span_of(moment)));
    let near = merged(near.collect(), Nanos::ZERO);
    let trace = |lane: &Lane| trace(lane, names, &near);
    let has_trace = stored && !found.is_empty();
    let lanes = lanes.iter().filter(|_| has_trace);
    Moments { trace: lanes.map(trace).collect(), found }
}

fn span_of(moment: &Moment) -> Span {
    Span { start: moment.at_ns, length: moment.length_ns }
}

/// The shares of a gap, an interruption or a test.
pub(crate) fn of_shares(blamed: &Blamed, place: usize) -> Vec<MomentCause> {
    let shares = blamed.shares.iter().filter(|share| share.gap == place);
    summed(shares.map(|share| (share.culprit, share.ns)), &blamed.culprits)
}

/// The time of each culprit, the largest first.
pub(crate) fn summed(
    shares: impl Iterator<Item = (usize, Nanos)>,
    culprits: &[Culprit],
) -> Vec<MomentCause> {
    let mut sums: BTreeMap<usize, Nanos> = BTreeMap::new();
    for (culprit, ns) in shares {
        let sum = sums.entry(culprit).or_default();
        *sum = *sum + ns;
    }
    let cause = |(culprit, ns): (usize, Nanos)| {
        Some(MomentCause { culprit: culprits.get(culprit)?.clone(), ns })
    };
    let mut causes: Vec<MomentCause> = sums.into_iter().filter_map(cause).collect();
    causes.sort_by_key(|cause| Reverse(cause.ns));
    causes
}

/// Adds the events before and during a moment.
fn add_events(moment: &mut Moment, lane: &Lane, names: &Names) {
    let during = span_of(moment);
    let from = during.start.saturating_sub(BEFORE);
    let is_near = |record: &&Record| {
        let span = record.span();
        span.end() >= from && span.start < during.end() && !is_measured(record)
    };
    let records = lane.charged();
    let mut near: Vec<&Record> = records.iter().filter(is_near).collect();
    near.sort_by_key(|record| record.start);
    let (mut before, mut inside): (Vec<&Record>, Vec<&Record>) =
        near.into_iter().partition(|record| record.span().end() <= during.start);
    before.drain(..before.len().saturating_sub(EVENTS_BEFORE));
    inside.sort_by_key(|record| Reverse(record.span().length));
    inside.truncate(EVENTS_DURING);
    inside.sort_by_key(|record| record.start);
    let event = |record: &Record| MomentEvent {
        culprit: names.culprit(record),
        start_ns: since(during.start, record.span().start),
        ns: record.span().length,
    };
    moment.before = before.into_iter().map(event).collect();
    moment.during = inside.into_iter().map(event).collect();
}

/// Whether it is a run of a thread that measures, or of the program that is measured.
fn is_measured(record: &Record) -> bool {
    let is_named = || MEASURING.iter().any(|name| record.name().starts_with(name));
    let is_thread = record.level == Level::Thread;
    is_thread && (record.mark.is_own || (record.mark.is_self && is_named()))
}

fn since(begin: Nanos, time: Nanos) -> i64 {
    let [begin, time] = [begin, time].map(|time| i128::from(time.get()));
    i64::try_from(time - begin).unwrap_or(i64::MAX)
}

/// The events of a CPU in these periods, which are in order and do not overlap.
fn trace(lane: &Lane, names: &Names, near: &[Span]) -> CpuTrace {
    let mut known = Tally::default();
    let records = lane.charged();
    let records = records.iter().filter(|record| overlaps(record.span(), near));
    let event = |record: &Record| Event {
        span: record.span(),
        culprit: known.count(names.culprit(record)),
    };
    let mut events: Vec<Event> = records.map(event).collect();
    events.sort_by_key(|event| event.span);
    CpuTrace { cpu: lane.cpu, culprits: known.into_parts().0, events }
}

#[cfg(test)]
mod tests {
    use facts::Root;
    use recording::{CulpritKind, MomentKind};
    use units::Cpu;

    use super::*;
    use crate::records::Mark;

    /// Times are in microseconds; `late/3` measures.
    fn record(level: Level, name: &str, from: u64, to: u64) -> Record {
        let mut comm = [0; 16];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        let mark = Mark { is_self: name == "late/3", ..Mark::default() };
        let (start, end) = (from * 1_000, to * 1_000);
        Record { level, start, end, detail: 0, id: 9, comm, mark }
    }

    fn moment() -> Moment {
        let length_ns = Nanos::from_micros(100);
        Moment {
            kind: MomentKind::Wakeup,
            cpu: Cpu::new(3),
            at_ns: Nanos::from_micros(5_000),
            time: String::new(),
            after_ns: Nanos::ZERO,
            length_ns,
            value_ns: length_ns,
            causes: None,
            before: Vec::new(),
            during: Vec::new(),
        }
    }

    /// Check which events are before a moment and which during it: one that continued into it took a part
    /// of it, the thread that measures did not, and nothing older or later belongs to it.
    #[test]
    fn events_of_a_moment() {
        let mut lane = Lane::new(Cpu::new(3));
        for one in [
            record(Level::Thread, "old", 4_000, 4_400),
            record(Level::Thread, "before", 4_700, 4_800),
            record(Level::Thread, "late/3", 4_800, 4_900),
            record(Level::Thread, "into", 4_900, 5_060),
            record(Level::Softirq, "", 5_010, 5_012),
            record(Level::Thread, "late/3", 5_060, 5_200),
            record(Level::Thread, "later", 5_200, 5_300),
        ] {
            lane.push(one.level, Some(one));
        }
        let names = Names::read(&Root::live(), std::slice::from_ref(&lane));
        let mut moment = moment();
        add_events(&mut moment, &lane, &names);
        let of = |events: &[MomentEvent]| {
            let one = |it: &MomentEvent| (it.culprit.kind, it.start_ns, it.ns.get());
            events.iter().map(one).collect::<Vec<_>>()
        };
        let (thread, softirq) = (CulpritKind::Thread, CulpritKind::Softirq);
        assert_eq!(of(&moment.before), [(thread, -300_000, 100_000)]);
        let during = [(thread, -100_000, 160_000), (softirq, 10_000, 2_000)];
        assert_eq!(of(&moment.during), during);
        let near = [around(span_of(&moment))];
        assert_eq!(trace(&lane, &names, &near).events.len(), 7);
    }

    /// Check that the shares of a culprit are one cause, and that the largest is the first.
    #[test]
    fn causes_of_a_moment() {
        let culprit = |kind| Culprit { kind, name: String::new(), thread: None };
        let culprits = [CulpritKind::Timer, CulpritKind::Thread].map(culprit);
        let shares = [(0, 3), (1, 5), (0, 4), (7, 99)];
        let shares = shares.map(|(culprit, ns)| (culprit, Nanos::from_nanos(ns)));
        let causes = summed(shares.into_iter(), &culprits);
        let found = causes.iter().map(|it| (it.culprit.kind, it.ns.get()));
        let expected = [(CulpritKind::Timer, 7), (CulpritKind::Thread, 5)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
