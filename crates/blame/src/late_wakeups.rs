//! The causes of late wake-ups: what had the CPU from the expiry of a timer until the thread that it wakes
//! had read the clock.
//!
//! The thread is recognised by its name, `late/CPU`, and by its process; its runs are events like those of
//! others. A wake-up is divided in four parts ([`WakePart`]): the timer's interrupt is the first one that
//! ends after the expiry, and the switch to the thread is the beginning of its run. In each part, a moment
//! belongs to the innermost event ([`crate::join::layers`]). A thread that another one preempts before it
//! sleeps sets its timer when that is over: at the expiry it did not wait for an interrupt, but for the CPU.
//!
//! Cannot see which interrupt woke the thread, if several expire between the expiry and the switch (if
//! another timer's comes first, a preemption before the sleep is not seen either, and the time until that
//! interrupt remains unexplained); why the timer's interrupt comes late; or interrupts on another CPU, to
//! which the kernel may move a timer while this one is idle.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use recording::{
    CpuLatency, Culprit, CulpritKind, Event, LateWakeup, WakeMoment, WakePart, WakeShare,
    WakeupCauses,
};
use units::{Cpu, Nanos, Span};

use crate::join::layers::{Piece, innermost};
use crate::join::{merged, nameless, overlaps, within};
use crate::level::Level;
use crate::names::Names;
use crate::records::{Lane, Loss, Record};
use crate::tally::Tally;

/// The name of the slack of a timer.
const SLACK: &str = "slack";
/// How many wake-ups are stored with what happened.
const LATEST: usize = 10;
/// What happened before a wake-up is stored for at least this time,
const BEFORE_MIN: Nanos = Nanos::from_micros(100);
/// and, if a thread ran at the expiry, since the beginning of its run, but for this time at most.
const BEFORE_MAX: Nanos = Nanos::from_millis(100);

/// The wake-ups of one CPU, from expiry to reading, on the records' clock.
pub(crate) fn wakeups(cpu: &CpuLatency, began: Nanos, interval: Nanos) -> Vec<Span> {
    let on_their_clock = |span: Span| Span { start: began + span.start, ..span };
    cpu.spans(interval).map(on_their_clock).collect()
}

/// The causes of these wake-ups by a timer with that slack; of so many of the latest, at least of ten,
/// what happened.
pub(crate) fn causes(
    lane: &Lane,
    names: &Names,
    wakeups: Vec<Span>,
    slack: Nanos,
    listed: usize,
) -> WakeupCauses {
    let mut seen = Seen::of(lane, names, slack);
    seen.limit_return(&wakeups);
    let mut shares = BTreeMap::new();
    for wakeup in wakeups.iter().filter(|wakeup| !wakeup.length.is_zero()) {
        seen.add_shares(&mut shares, *wakeup);
    }
    let mut latest: Vec<(usize, Span)> = wakeups.into_iter().enumerate().collect();
    latest.sort_by_key(|(_, wakeup)| Reverse(wakeup.length));
    latest.truncate(listed.max(LATEST));
    let latest = latest.into_iter().map(|(at, wakeup)| seen.around(at, wakeup));
    WakeupCauses {
        latest: latest.collect(),
        shares: shares.into_values().collect(),
        lost: seen.lost,
        culprits: seen.culprits,
    }
}

/// The time of each culprit in one wake-up, which add up to it.
pub(crate) fn shares(late: &LateWakeup, culprits: &[Culprit]) -> Vec<(usize, Nanos)> {
    let unexplained = culprits.iter().position(|it| it.kind == CulpritKind::Unexplained);
    let share = |moment: &WakeMoment| {
        let part = moment.part?;
        let culprit = explaining(part, moment.culprit, culprits);
        Some((culprit.or(unexplained)?, moment.span.length))
    };
    late.moments.iter().filter_map(share).collect()
}

/// The culprit, unless it does not explain that part of a wake-up: neither which thread ran nor a CPU quota
/// is why the timer's interrupt is late.
fn explaining(part: WakePart, culprit: usize, culprits: &[Culprit]) -> Option<usize> {
    let is_quota = culprits.get(culprit).is_some_and(|it| it.kind == CulpritKind::Quota);
    let explains =
        part != WakePart::Expiry || !(is_quota || is_thread(culprit, culprits));
    explains.then_some(culprit)
}

/// Whether it is a thread, and not the idle task.
fn is_thread(culprit: usize, culprits: &[Culprit]) -> bool {
    let thread = culprits.get(culprit).and_then(|it| it.thread.as_ref());
    thread.is_some_and(|thread| thread.tid != 0)
}

/// What was seen on a CPU, on the records' clock.
struct Seen {
    culprits: Vec<Culprit>,
    /// The index of the culprit of time without an event.
    unexplained: usize,
    /// How long the kernel may delay the timer, and the index of the culprit of that.
    slack: (Nanos, usize),
    /// The innermost event of each moment.
    pieces: Vec<Piece>,
    /// The runs of the thread that is woken, in order.
    runs: Vec<Span>,
    /// How long it may take to return to user mode; the rest is unexplained.
    return_max: Nanos,
    /// The interrupts of timers, in order.
    timers: Vec<Span>,
    /// The runs of other threads but the idle task, in order.
    others: Vec<Span>,
    losses: Vec<Span>,
    lost: u64,
}

impl Seen {
    fn of(lane: &Lane, names: &Names, slack: Nanos) -> Self {
        let mut known = Tally::default();
        let of_slack = known.count(Culprit {
            kind: CulpritKind::Timer,
            name: SLACK.to_owned(),
            thread: None,
        });
        let (mut runs, mut timers, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let records = lane.charged();
        let mut events = Vec::with_capacity(records.len());
        for record in records.iter() {
            let span = record.span();
            let culprit = known.count(names.culprit(record));
            events.push(Event { span, culprit });
            if known.culprits()[culprit].kind == CulpritKind::Timer {
                timers.push(span);
            }
            if is_woken(record, lane.cpu) {
                runs.push(span);
            } else if record.level == Level::Thread && !record.is_idle() {
                others.push(span);
            }
        }
        for spans in [&mut runs, &mut timers, &mut others] {
            spans.sort_unstable();
        }
        let losses = lane.losses.iter().map(Loss::span);
        let mut culprits = known.into_parts().0;
        Self {
            unexplained: nameless(&mut culprits, CulpritKind::Unexplained),
            culprits,
            slack: (slack, of_slack),
            pieces: innermost(&events),
            runs,
            return_max: Nanos::MAX,
            timers,
            others,
            losses: merged(losses.collect(), Nanos::ZERO),
            lost: lane.losses.iter().map(|loss| loss.events).sum(),
        }
    }

    /// Limits the time of returns to user mode to twice the median of these wake-ups.
    fn limit_return(&mut self, wakeups: &[Span]) {
        let is_return = |(part, _): &(WakePart, Span)| *part == WakePart::Return;
        let of_wakeup = |wakeup: &Span| {
            let parts = self.parts(*wakeup).into_iter().filter(is_return);
            parts.map(|(_, span)| span.length).sum()
        };
        let mut returns: Vec<Nanos> = wakeups.iter().map(of_wakeup).collect();
        returns.retain(|length| !length.is_zero());
        let middle = returns.len() / 2;
        if middle < returns.len() {
            let median = *returns.select_nth_unstable(middle).1;
            self.return_max = median.saturating_mul(2);
        }
    }

    /// Adds one wake-up to the shares of all.
    fn add_shares(
        &self,
        shares: &mut BTreeMap<(WakePart, usize), WakeShare>,
        wakeup: Span,
    ) {
        let mut own: BTreeMap<(WakePart, usize), Nanos> = BTreeMap::new();
        for WakeMoment { part, culprit, span } in self.moments(wakeup) {
            let Some(part) = part else { continue };
            let culprit = explaining(part, culprit, &self.culprits);
            let culprit = culprit.unwrap_or(self.unexplained);
            let sum = own.entry((part, culprit)).or_default();
            *sum = *sum + span.length;
        }
        for ((part, culprit), ns) in own {
            let (wakeups, none) = (0, Nanos::ZERO);
            let none = WakeShare { part, culprit, wakeups, ns: none, max_ns: none };
            let share = shares.entry((part, culprit)).or_insert(none);
            share.wakeups += 1;
            share.ns = share.ns + ns;
            share.max_ns = share.max_ns.max(ns);
        }
    }

    /// The moments of a wake-up, on the records' clock.
    fn moments(&self, wakeup: Span) -> Vec<WakeMoment> {
        let mut moments = Vec::new();
        for (part, span) in self.parts(wakeup) {
            let (slack, culprit) = self.slack;
            let slack = if part == WakePart::Expiry { slack } else { Nanos::ZERO };
            let (delay, rest) = split(span, slack);
            if !delay.length.is_zero() {
                moments.push(WakeMoment { part: Some(part), culprit, span: delay });
            }
            self.add_moments(&mut moments, Some(part), rest);
        }
        moments
    }

    /// The parts of a wake-up. Without an interrupt of a timer (it was another CPU's), all time until the
    /// switch to the thread is of scheduling; without that, too, and if the thread was not asleep yet.
    fn parts(&self, wakeup: Span) -> [(WakePart, Span); 4] {
        let end = wakeup.end();
        let switched = last_before(&self.runs, end).filter(|run| run.end() >= end);
        let switched = switched.map_or(end, |run| run.start.max(wakeup.start));
        let next = self.timers.partition_point(|timer| timer.end() <= wakeup.start);
        let timer = self.timers.get(next).filter(|timer| {
            timer.start < switched && !self.runs_between(wakeup.start, timer.start)
        });
        let (expired, woken) = timer.map_or((wakeup.start, wakeup.start), |timer| {
            (timer.start.max(wakeup.start), timer.end().min(switched))
        });
        let mut start = wakeup.start;
        let mut ends = [expired, woken, switched, end].into_iter();
        WakePart::ALL.map(|part| {
            let end = ends.next().unwrap_or(end);
            let span = Span { start, length: end.saturating_sub(start) };
            start = end;
            (part, span)
        })
    }

    /// Whether the thread has the CPU after an expiry and before the timer's interrupt: it did not sleep at
    /// the expiry.
    fn runs_between(&self, expiry: Nanos, interrupt: Nanos) -> bool {
        last_before(&self.runs, interrupt).is_some_and(|run| run.end() > expiry)
    }

    /// Adds what had the CPU in a period, of which no moment is missing.
    fn add_moments(
        &self,
        moments: &mut Vec<WakeMoment>,
        part: Option<WakePart>,
        period: Span,
    ) {
        let mut add = |culprit, start: Nanos, end: Nanos| {
            let length = end.saturating_sub(start);
            if !length.is_zero() {
                moments.push(WakeMoment { part, culprit, span: Span { start, length } });
            }
        };
        let pieces = match overlaps(period, &self.losses) {
            true => Vec::new(),
            false => within(&self.pieces, period),
        };
        let mut returning = match part {
            Some(WakePart::Return) => self.return_max,
            _ => Nanos::MAX,
        };
        let mut now = period.start;
        for Piece { start, end, culprit } in pieces {
            add(self.unexplained, now, start);
            let known = match is_thread(culprit, &self.culprits) {
                true => end.min(start + returning),
                false => end,
            };
            add(culprit, start, known);
            add(self.unexplained, known, end);
            returning = returning.saturating_sub(known.saturating_sub(start));
            now = end;
        }
        add(self.unexplained, now, period.end());
    }

    /// What happened before and during a wake-up.
    fn around(&self, number: usize, wakeup: Span) -> LateWakeup {
        let running = last_before(&self.others, wakeup.start)
            .filter(|run| run.end() > wakeup.start)
            .map_or(Nanos::ZERO, |run| wakeup.start.saturating_sub(run.start));
        let before = running.clamp(BEFORE_MIN, BEFORE_MAX);
        let start = wakeup.start.saturating_sub(before);
        let before = wakeup.start.saturating_sub(start);
        let mut moments = Vec::new();
        self.add_moments(&mut moments, None, Span { start, length: before });
        moments.extend(self.moments(wakeup));
        for moment in &mut moments {
            moment.span.start = moment.span.start.saturating_sub(start);
        }
        LateWakeup { wakeup: number, before_ns: before, moments }
    }
}

/// Whether it is a run of the thread that measures this CPU.
fn is_woken(record: &Record, cpu: Cpu) -> bool {
    let is_own = record.level == Level::Thread && record.mark.is_self;
    is_own && record.name() == format!("late/{cpu}")
}

/// The beginning of a span, of that length at most, and the rest.
fn split(span: Span, length: Nanos) -> (Span, Span) {
    let first = Span { length: span.length.min(length), ..span };
    let length = span.length.saturating_sub(first.length);
    (first, Span { start: first.end(), length })
}

/// The last of these spans, which are in order and do not overlap, that begins before a time.
fn last_before(spans: &[Span], time: Nanos) -> Option<Span> {
    let after = spans.partition_point(|span| span.start < time);
    after.checked_sub(1).and_then(|at| spans.get(at)).copied()
}

#[cfg(test)]
mod tests {
    use facts::Root;
    use proptest::prelude::*;
    use recording::{ProcCounts, Wakeup};

    use super::*;
    use crate::records::Mark;

    const CPU: Cpu = Cpu::new(3);

    /// Times are in microseconds. `late` is the thread that is woken, `idle` the idle task.
    fn record(level: Level, id: u32, name: &str, from: u64, to: u64) -> Record {
        let mut comm = [0; 16];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        let mark = Mark { is_self: name.starts_with("late/"), ..Mark::default() };
        let (start, end) = (from * 1_000, to * 1_000);
        Record { level, start, end, detail: 0, id, comm, mark }
    }

    /// Wake-ups with these expiries and latencies in microseconds.
    fn late_at(due: &[u64], late: &[u64]) -> Vec<Span> {
        let [due, late] =
            [due, late].map(|all| all.iter().map(|at| Nanos::from_micros(*at)));
        due.zip(late).map(|(start, length)| Span { start, length }).collect()
    }

    fn found(records: &[Record], wakeups: Vec<Span>) -> WakeupCauses {
        let mut lane = Lane::new(CPU);
        records.iter().for_each(|record| lane.push(record.level, Some(*record)));
        let names = Names::read(&Root::live(), std::slice::from_ref(&lane));
        causes(&lane, &names, wakeups, Nanos::ZERO, 0)
    }

    /// The shares as part, name and microseconds.
    fn shares(causes: &WakeupCauses) -> Vec<(WakePart, &str, u64)> {
        let name = |culprit: usize| causes.culprits[culprit].name.as_str();
        let shares = causes.shares.iter();
        shares.map(|s| (s.part, name(s.culprit), s.ns.get() / 1_000)).collect()
    }

    /// Check the parts of a wake-up of an idle CPU, and of one that another thread has for 2 ms: the tick
    /// meanwhile is not the interrupt that wakes.
    #[test]
    fn parts_of_a_wakeup() {
        let timer = |from, to| record(Level::Vector, 0xec, "", from, to);
        let idle = [
            record(Level::Thread, 0, "swapper/3", 0, 1_009),
            timer(1_003, 1_005),
            record(Level::Softirq, 1, "", 1_006, 1_008),
            record(Level::Thread, 70, "late/3", 1_009, 1_020),
        ];
        let causes = found(&idle, late_at(&[1_000], &[12]));
        let of_timer = causes.culprits[2].name.clone();
        let of_softirq = causes.culprits[3].name.clone();
        assert_eq!(
            shares(&causes),
            [
                (WakePart::Expiry, "swapper/3", 3),
                (WakePart::Interrupt, of_timer.as_str(), 2),
                (WakePart::Scheduling, "swapper/3", 2),
                (WakePart::Scheduling, of_softirq.as_str(), 2),
                (WakePart::Return, "late/3", 3),
            ]
        );
        let busy = [
            record(Level::Thread, 417, "pathd", 500, 3_100),
            timer(1_001, 1_003),
            timer(2_000, 2_004),
            record(Level::Thread, 70, "late/3", 3_100, 3_200),
        ];
        let causes = found(&busy, late_at(&[1_000], &[2_105]));
        let of_timer = causes.culprits[2].name.clone();
        assert_eq!(
            shares(&causes),
            [
                (WakePart::Expiry, "unexplained", 1),
                (WakePart::Interrupt, of_timer.as_str(), 2),
                (WakePart::Scheduling, "pathd", 2_093),
                (WakePart::Scheduling, of_timer.as_str(), 4),
                (WakePart::Return, "late/3", 5),
            ]
        );
        let latest = &causes.latest[0];
        assert_eq!((latest.wakeup, latest.before_ns), (0, Nanos::from_micros(500)));
        let ends: Nanos = latest.moments.iter().map(|moment| moment.span.length).sum();
        assert_eq!(ends, Nanos::from_micros(2_605));
        assert_eq!(latest.moments[0].culprit, 1);
    }

    /// Check that a thread explains a wake-up that it delays by preempting the other one before it has set its
    /// timer: the interrupt comes late because of that.
    #[test]
    fn preempted_before_its_sleep() {
        let timer = |from, to| record(Level::Vector, 0xec, "", from, to);
        let records = [
            record(Level::Thread, 70, "late/3", 904, 909),
            record(Level::Thread, 417, "pathd", 909, 1_119),
            record(Level::Thread, 70, "late/3", 1_119, 1_122),
            record(Level::Thread, 0, "swapper/3", 1_122, 1_127),
            timer(1_123, 1_125),
            record(Level::Thread, 70, "late/3", 1_127, 1_135),
        ];
        let causes = found(&records, late_at(&[900, 1_000], &[6, 130]));
        let of_timer = causes.culprits[4].name.clone();
        assert_eq!(
            shares(&causes),
            [
                (WakePart::Scheduling, "late/3", 3),
                (WakePart::Scheduling, "pathd", 119),
                (WakePart::Scheduling, "swapper/3", 3),
                (WakePart::Scheduling, of_timer.as_str(), 2),
                (WakePart::Scheduling, "unexplained", 4),
                (WakePart::Return, "late/3", 5),
            ]
        );
    }

    /// Check that the slack of a timer is its own, and that what is later is not.
    #[test]
    fn slack() {
        let mut lane = Lane::new(CPU);
        for (at, delay) in [(1_000, 40), (2_000, 70)] {
            let fired = at + delay;
            lane.push(
                Level::Vector,
                Some(record(Level::Vector, 0xec, "", fired, fired + 2)),
            );
            let run = record(Level::Thread, 70, "late/3", fired + 3, fired + 9);
            lane.push(Level::Thread, Some(run));
        }
        let names = Names::read(&Root::live(), std::slice::from_ref(&lane));
        let wakeups = late_at(&[1_000, 2_000], &[44, 74]);
        let causes = causes(&lane, &names, wakeups, Nanos::from_micros(50), 0);
        let expected =
            [(WakePart::Expiry, SLACK, 90), (WakePart::Expiry, "unexplained", 20)];
        assert_eq!(shares(&causes)[..2], expected);
    }

    /// Check that a return to user mode explains twice its usual time at most.
    #[test]
    fn long_return() {
        let runs = [1, 2, 3, 4].map(|at| {
            record(Level::Thread, 70, "late/3", at * 1_000 + 2, at * 1_000 + 900)
        });
        let due = [1_000, 2_000, 3_000, 4_000];
        let causes = found(&runs, late_at(&due, &[5, 5, 502, 5]));
        assert_eq!(
            shares(&causes),
            [
                (WakePart::Scheduling, "unexplained", 8),
                (WakePart::Return, "late/3", 15),
                (WakePart::Return, "unexplained", 494),
            ]
        );
    }

    /// Check that a wake-up answers the expiries that have passed, and that the next one is due after them.
    #[test]
    fn expiries() {
        let wakeup =
            |expiries, late| Wakeup { expiries, late_ns: Nanos::from_micros(late) };
        let cpu = CpuLatency {
            cpu: CPU,
            first_ns: Nanos::from_micros(5),
            slack_ns: Nanos::ZERO,
            clock_ns: Nanos::ZERO,
            wakeups: vec![wakeup(1, 2), wakeup(3, 25), wakeup(1, 4)],
            lost: None,
            causes: None,
            proc: ProcCounts::default(),
            wake_limit_us: None,
            idle_states: Vec::new(),
        };
        let found = wakeups(&cpu, Nanos::from_micros(100), Nanos::from_micros(10));
        assert_eq!(found, late_at(&[105, 115, 145], &[2, 25, 4]));
    }

    /// Check that a wake-up with lost events has no culprit, and that the latest come first.
    #[test]
    fn lost_and_latest() {
        let mut lane = Lane::new(CPU);
        lane.add_loss(7, 1_000_000, 1_001_000);
        let mut records = vec![record(Level::Thread, 90, "other", 990, 1_005)];
        records.extend(
            (2..=20).map(|at| {
                record(Level::Thread, 90, "other", at * 1_000, at * 1_000 + at)
            }),
        );
        records.iter().for_each(|record| lane.push(record.level, Some(*record)));
        let names = Names::read(&Root::live(), std::slice::from_ref(&lane));
        let due: Vec<u64> = (1..=20).map(|at| at * 1_000).collect();
        let late = late_at(&due, &(1..=20).collect::<Vec<_>>());
        let causes = causes(&lane, &names, late, Nanos::ZERO, 0);
        let shares = shares(&causes);
        assert_eq!(
            shares,
            [
                (WakePart::Scheduling, "other", (2..=20).sum::<u64>()),
                (WakePart::Scheduling, "unexplained", 1),
            ]
        );
        let numbers: Vec<usize> = causes.latest.iter().map(|late| late.wakeup).collect();
        assert_eq!(numbers, (10..20).rev().collect::<Vec<_>>());
        assert_eq!(causes.lost, 7);
    }

    proptest! {
        /// Check that the shares of any events add up to the latency.
        #[test]
        fn shares_add_up(
            events in prop::collection::vec((0_usize..5, 0_u64..60, 1_u64..20), 0..20),
            wakeups in prop::collection::vec((0_u64..60, 0_u64..30), 0..6),
        ) {
            let records: Vec<Record> = events
                .into_iter()
                .map(|(kind, start, length)| {
                    let (level, id, name) = [
                        (Level::Thread, 0, "swapper/3"),
                        (Level::Thread, 9, "other"),
                        (Level::Thread, 70, "late/3"),
                        (Level::Softirq, 1, ""),
                        (Level::Vector, 0xec, ""),
                    ][kind];
                    record(level, id, name, start, start + length)
                })
                .collect();
            let (due, late): (Vec<u64>, Vec<u64>) = wakeups.into_iter().unzip();
            let causes = found(&records, late_at(&due, &late));
            let sum: u64 = causes.shares.iter().map(|share| share.ns.get()).sum();
            prop_assert_eq!(sum, late.iter().sum::<u64>() * 1_000);
            for one in &causes.latest {
                let mut now = Nanos::ZERO;
                for moment in &one.moments {
                    prop_assert_eq!(moment.span.start, now);
                    now = moment.span.end();
                }
                let length = Nanos::from_micros(late[one.wakeup]);
                prop_assert_eq!(now, one.before_ns + length);
            }
        }
    }
}
