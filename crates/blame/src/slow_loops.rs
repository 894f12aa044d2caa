//! The causes of jitter: what had the CPU during the slowest loop of each test.
//!
//! The thread is recognised by its name, `jitter`, and by its process. Each moment of a loop belongs to the
//! innermost event ([`crate::join::layers`]); what the slowest loop took more than the fastest, and no event
//! explains, is unexplained: the time of events outside of their tracepoints, caches, the hypervisor.
//!
//! Cannot see what slows all loops alike.

use std::collections::BTreeMap;

use recording::{Blamed, CulpritKind, Event, JitterSeries, Share};
use units::{Nanos, Span};

use crate::join::layers::{Piece, innermost};
use crate::join::{merged, nameless, overlaps, within};
use crate::level::Level;
use crate::names::Names;
use crate::records::{Lane, Loss, Record};
use crate::tally::Tally;

/// The name of the thread that measures.
const THREAD: &str = "jitter";

/// The slowest loop of a test on the records' clock, and how much longer it took than the fastest.
pub(crate) type SlowLoop = (Span, Nanos);

/// The slowest loops of a series.
pub(crate) fn of(series: &JitterSeries) -> Vec<SlowLoop> {
    let ns = |delta| series.clock_hz.span(delta);
    let tests = series.tests.iter().zip(&series.slowest_at_ns);
    tests
        .map(|(test, at)| {
            (Span { start: *at, length: ns(test.slowest) }, ns(test.jitter()))
        })
        .collect()
}

/// The causes of the jitter of these tests.
pub(crate) fn blamed(lane: &Lane, names: &Names, loops: &[SlowLoop]) -> Blamed {
    let mut known = Tally::default();
    let records = lane.charged();
    let others = records.iter().filter(|record| !is_measuring(record));
    let event = |record: &Record| Event {
        span: record.span(),
        culprit: known.count(names.culprit(record)),
    };
    let pieces = innermost(&others.map(event).collect::<Vec<_>>());
    let (mut culprits, mut events) = known.into_parts();
    let unexplained = nameless(&mut culprits, CulpritKind::Unexplained);
    events.resize(culprits.len(), 0);
    let losses = lane.losses.iter().map(Loss::span);
    let losses = merged(losses.collect(), Nanos::ZERO);
    let mut shares = Vec::new();
    for (test, (slow, jitter)) in loops.iter().enumerate() {
        let pieces = match overlaps(*slow, &losses) {
            true => Vec::new(),
            false => within(&pieces, *slow),
        };
        shares.extend(shares_of(test, *jitter, &pieces, unexplained));
    }
    let lost = lane.losses.iter().map(|loss| loss.events).sum();
    Blamed { culprits, shares, events, lost, losses, ..Blamed::default() }
}

/// The shares of one test, which add up to its jitter. Events take no more: the workload took some time,
/// too, in the slowest loop.
fn shares_of(
    test: usize,
    jitter: Nanos,
    pieces: &[Piece],
    unexplained: usize,
) -> Vec<Share> {
    let mut times: BTreeMap<usize, Nanos> = BTreeMap::new();
    for Piece { start, end, culprit } in pieces {
        let time = times.entry(*culprit).or_default();
        *time = *time + end.saturating_sub(*start);
    }
    let mut rest = jitter;
    let mut shares = Vec::new();
    let share = |culprit, ns, inside_ns| Share {
        gap: test,
        culprit,
        ns,
        inside_ns,
        entry_ns: Some(Nanos::ZERO),
    };
    for (culprit, time) in times {
        let ns = time.min(rest);
        rest = rest.saturating_sub(ns);
        shares.push(share(culprit, ns, ns));
    }
    shares.push(share(unexplained, rest, Nanos::ZERO));
    shares.retain(|share| !share.ns.is_zero());
    shares
}

fn is_measuring(record: &Record) -> bool {
    record.level == Level::Thread && record.mark.is_self && record.name() == THREAD
}

#[cfg(test)]
mod tests {
    use facts::Root;
    use units::Cpu;

    use super::*;
    use crate::records::Mark;

    /// Times are in microseconds; `jitter` is the measuring thread.
    fn record(level: Level, id: u32, name: &str, from: u64, to: u64) -> Record {
        let mut comm = [0; 16];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        let mark = Mark { is_self: name == THREAD, ..Mark::default() };
        let (start, end) = (from * 1_000, to * 1_000);
        Record { level, start, end, detail: 0, id, comm, mark }
    }

    /// Check that a thread and a softirq within it are blamed for the slowest loop of a test, that the rest
    /// is unexplained, and that a test with lost events is.
    #[test]
    fn slowest_loops() {
        let mut lane = Lane::new(Cpu::new(3));
        for record in [
            record(Level::Softirq, 1, "", 120, 125),
            record(Level::Thread, 70, THREAD, 0, 110),
            record(Level::Thread, 9, "other", 110, 130),
            record(Level::Thread, 70, THREAD, 130, 900),
        ] {
            lane.push(record.level, Some(record));
        }
        lane.add_loss(2, 500_000, 510_000);
        let names = Names::read(&Root::live(), std::slice::from_ref(&lane));
        let us = Nanos::from_micros;
        let of = |start, length, jitter| {
            (Span { start: us(start), length: us(length) }, us(jitter))
        };
        let loops = [
            of(100, 40, 24),
            of(200, 12, 2),
            of(505, 30, 20),
            of(600, 10, 0),
            of(105, 25, 18),
        ];
        let blamed = blamed(&lane, &names, &loops);
        let found: Vec<(usize, &str, u64)> = blamed
            .shares
            .iter()
            .map(|share| {
                (share.gap, &*blamed.culprits[share.culprit].name, share.ns.get() / 1_000)
            })
            .collect();
        let softirq = &*blamed.culprits[0].name;
        assert_eq!(
            found,
            [
                (0, softirq, 5),
                (0, "other", 15),
                (0, "unexplained", 4),
                (1, "unexplained", 2),
                (2, "unexplained", 20),
                // Of a loop of 25 us, the workload took 7 us.
                (4, softirq, 5),
                (4, "other", 13),
            ]
        );
        assert_eq!((blamed.lost, blamed.losses.len()), (2, 1));
    }
}
