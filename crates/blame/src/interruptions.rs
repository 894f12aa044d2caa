//! The times in which a program could have run and did not: interrupts during the run of one of its
//! threads, and runs of other threads that preempted one of its threads.
//!
//! Its threads are recognised by their marks ([`crate::Threads::Marked`]). What runs while all of
//! them wait interrupts none of them. Each CPU has its own interruptions; one ends when the program
//! gets the CPU back, or when the thread continues on another CPU. The tracepoints of its events lie
//! within the real interruption: it is extended by typical edges of these kinds of events
//! ([`crate::join::edges`]), if they were measured. Cannot see how long a woken thread waits for the
//! CPU.

use std::collections::HashMap;

use recording::{Blamed, Culprit, Edges, Event, Interruptions, Share};
use units::{Cpu, Nanos, Span};

use crate::join::edges::TypicalEdges;
use crate::join::layers::innermost;
use crate::join::steal::common;
use crate::join::{Joined, join, merged, overlaps, within as pieces_within};
use crate::level::Level;
use crate::names::Names;
use crate::records::{Lane, Loss, Outside, Record, Stolen};
use crate::tally::Tally;

/// The time from the end of an interrupt to the switch that it causes; it does not count as a run
/// of the program.
const NEAR: Nanos = Nanos::from_micros(2);

/// The interruptions of the program that ran on the CPUs of these lanes in that period of the
/// records' clock, one CPU after the other, and the number of lost events of each CPU. `outside` are its
/// runs on other CPUs.
pub(crate) fn interruptions(
    lanes: &[&Lane],
    outside: &Outside,
    names: &Names,
    ran: Span,
    edges: &TypicalEdges,
) -> (Interruptions, Vec<(Cpu, u64)>) {
    let runs = lanes.iter().map(|lane| own_runs(&lane.records, ran));
    let runs: Vec<Vec<Run>> = runs.collect();
    let away = own_runs(outside.runs.iter().map(|(_, record)| record), ran);
    let resumes = Resumes::of(runs.iter().flatten().chain(&away));
    let mut all = Interruptions {
        ready_ns: Nanos::ZERO,
        gaps: Vec::new(),
        gap_cpus: Vec::new(),
        blamed: Blamed::default(),
        steal_ns: Some(Nanos::ZERO),
        edges: of_kinds(edges),
    };
    let mut lost = Vec::new();
    for (lane, own) in lanes.iter().zip(&runs) {
        let found = on_cpu(lane, own, &resumes, names, ran, edges);
        let cpus = (lanes.len() > 1).then_some(lane.cpu);
        all.gap_cpus.extend(cpus.into_iter().cycle().take(found.gaps.len()));
        lost.push((lane.cpu, found.blamed.lost));
        append(&mut all, found);
    }
    (all, lost)
}

/// Appends the interruptions of one CPU.
fn append(all: &mut Interruptions, one: Interruptions) {
    let before = all.gaps.len();
    all.ready_ns = all.ready_ns + one.ready_ns;
    all.steal_ns = all.steal_ns.zip(one.steal_ns).map(|(all, one)| all + one);
    all.gaps.extend(one.gaps);
    all.blamed.lost = all.blamed.lost.saturating_add(one.blamed.lost);
    all.blamed.losses.extend(one.blamed.losses);
    let mut places = Vec::new();
    for (culprit, events) in one.blamed.culprits.into_iter().zip(one.blamed.events) {
        let known = all.blamed.culprits.iter().position(|known| *known == culprit);
        let place = known.unwrap_or(all.blamed.culprits.len());
        if known.is_none() {
            all.blamed.culprits.push(culprit);
            all.blamed.events.push(0);
        }
        if let Some(count) = all.blamed.events.get_mut(place) {
            *count += events;
        }
        places.push(place);
    }
    let shares = one.blamed.shares.into_iter().filter_map(|share| {
        let culprit = *places.get(share.culprit)?;
        Some(Share { gap: share.gap + before, culprit, ..share })
    });
    all.blamed.shares.extend(shares);
}

/// The interruptions on one CPU.
fn on_cpu(
    lane: &Lane,
    own: &[Run],
    resumes: &Resumes,
    names: &Names,
    ran: Span,
    edges: &TypicalEdges,
) -> Interruptions {
    let met = |loss: &Loss| Some((clipped(loss.from, loss.until, ran)?, loss.events));
    let (losses, lost): (Vec<Span>, Vec<u64>) =
        lane.losses.iter().filter_map(met).unzip();
    let losses = merged(losses, NEAR);
    let preemptions = preemptions(own, resumes, &losses);
    let runs: Vec<Span> = own.iter().map(|run| run.span).collect();
    let records = lane.charged();
    let is_interrupt =
        |record: &&Record| !matches!(record.level, Level::Thread | Level::Quota);
    let interrupts = records.iter().filter(is_interrupt);
    let interrupts = interrupts.filter_map(|record| within(record, ran));
    let interrupts = interrupts.filter(|span| is_in(*span, &runs));
    let gaps = merged(interrupts.chain(preemptions.iter().copied()).collect(), NEAR);

    let mut known = Tally::default();
    let foreign = records.iter().filter(|record| !record.mark.is_own);
    let events = foreign.filter_map(|record| {
        let span = within(record, ran)?;
        overlaps(span, &gaps)
            .then(|| Event { span, culprit: known.count(names.culprit(record)) })
    });
    let events: Vec<Event> = events.collect();
    let gaps = extended(&gaps, &events, known.culprits(), edges, ran.length);
    let ready = runs.iter().chain(&preemptions).map(|span| span.length).sum();
    let blamed = blamed(known, &gaps, &events, losses, &lost);
    let steal_ns = stolen(lane, &runs, &gaps, ran);
    Interruptions {
        ready_ns: ready,
        gaps,
        gap_cpus: Vec::new(),
        blamed,
        steal_ns,
        edges: vec![],
    }
}

fn of_kinds(edges: &TypicalEdges) -> Vec<Edges> {
    let of =
        |kind| Edges { kind, entry_ns: edges.entry(kind), exit_ns: edges.exit(kind) };
    edges.kinds().map(of).collect()
}

/// Interruptions with the edges of their first and last event.
fn extended(
    gaps: &[Span],
    events: &[Event],
    culprits: &[Culprit],
    edges: &TypicalEdges,
    end: Nanos,
) -> Vec<Span> {
    let pieces = innermost(events);
    let extended = gaps.iter().map(|gap| {
        let own = pieces_within(&pieces, *gap);
        let (Some(first), Some(last)) = (own.first(), own.last()) else { return *gap };
        let [first, last] = [first, last].map(|piece| culprits[piece.culprit].kind);
        let start = gap.start.saturating_sub(edges.entry(first));
        let until = (gap.end() + edges.exit(last)).min(end);
        Span { start, length: until.saturating_sub(start) }
    });
    merged(extended.collect(), Nanos::ZERO)
}

/// The time that the hypervisor took from runs of the program, outside of its interruptions. What was
/// stolen between two readings of the clock is at most the time that the program ran between them.
fn stolen(lane: &Lane, runs: &[Span], gaps: &[Span], ran: Span) -> Option<Nanos> {
    let from_runs = |stolen: &Stolen| {
        let span = clipped(stolen.from, stolen.until, ran)?;
        let own = time_in(span, runs);
        let gap: Nanos = parts_in(span, gaps).map(|gap| time_in(gap, runs)).sum();
        Some(Nanos::from_nanos(stolen.ns).min(own.saturating_sub(gap)))
    };
    Some(lane.all_stolen()?.iter().filter_map(from_runs).sum())
}

/// The parts of these periods, which are in order, that lie in a period.
fn parts_in(span: Span, stretches: &[Span]) -> impl Iterator<Item = Span> {
    let first = stretches.partition_point(|stretch| stretch.end() <= span.start);
    let near = stretches[first..].iter().take_while(move |it| it.start < span.end());
    near.map(move |stretch| {
        let start = stretch.start.max(span.start);
        Span { start, length: common(*stretch, span) }
    })
}

/// How much of a period lies in these periods, which are in order.
fn time_in(span: Span, stretches: &[Span]) -> Nanos {
    parts_in(span, stretches).map(|part| part.length).sum()
}

/// Attributes these gaps, without the hypervisor. `lost` has the number of lost events of each of
/// `losses`, some of which may touch.
fn blamed(
    known: Tally,
    gaps: &[Span],
    events: &[Event],
    losses: Vec<Span>,
    lost: &[u64],
) -> Blamed {
    let (mut culprits, mut counts) = known.into_parts();
    let Joined { shares, .. } = join(gaps, events, &losses, &[], &mut culprits);
    counts.resize(culprits.len(), 0);
    let lost = lost.iter().copied().fold(0, u64::saturating_add);
    Blamed { culprits, shares, events: counts, lost, losses, ..Blamed::default() }
}

/// The times in which a CPU was busy within these periods of the records' clock, relative to the
/// first one's start, and their causes.
pub(crate) fn busy(lane: &Lane, names: &Names, waits: &[Span]) -> (Vec<Span>, Blamed) {
    let Some(first) = waits.first() else { return (Vec::new(), Blamed::default()) };
    let in_waits = |from: u64, to: u64| {
        waits.iter().filter_map(move |wait| {
            let part = clipped(from, to, *wait)?;
            let start = part.start + wait.start.saturating_sub(first.start);
            Some(Span { start, ..part })
        })
    };
    let mut known = Tally::default();
    let mut events = Vec::new();
    // No measured thread waits meanwhile.
    let is_busy = |record: &&Record| !record.is_idle() && record.level != Level::Quota;
    for record in lane.records.iter().filter(is_busy) {
        let parts = in_waits(record.start, record.end);
        events.extend(
            parts.map(|span| Event { span, culprit: known.count(names.culprit(record)) }),
        );
    }
    let spans = merged(events.iter().map(|event| event.span).collect(), Nanos::ZERO);
    let met = lane.losses.iter().map(|loss| (in_waits(loss.from, loss.until), loss));
    let mut losses = Vec::new();
    let mut lost = Vec::new();
    for (spans, loss) in met {
        let before = losses.len();
        losses.extend(spans);
        lost.extend((losses.len() > before).then_some(loss.events));
    }
    let blamed = blamed(known, &spans, &events, losses, &lost);
    (spans, blamed)
}

/// A run of one of the program's threads on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    span: Span,
    thread: u32,
    /// Whether the thread could have continued at the end.
    is_runnable: bool,
}

/// The runs of the program's threads, in order.
fn own_runs<'a>(records: impl IntoIterator<Item = &'a Record>, ran: Span) -> Vec<Run> {
    let own = records.into_iter().filter(|record| record.mark.is_own);
    let run = |record: &Record| {
        let (thread, is_runnable) = (record.id, record.mark.is_runnable);
        Some(Run { span: within(record, ran)?, thread, is_runnable })
    };
    let mut runs: Vec<Run> = own.filter_map(run).collect();
    runs.sort_unstable();
    runs
}

/// The starts of each thread's runs, on any CPU.
struct Resumes(HashMap<u32, Vec<Nanos>>);

impl Resumes {
    fn of<'a>(runs: impl Iterator<Item = &'a Run>) -> Self {
        let mut starts: HashMap<u32, Vec<Nanos>> = HashMap::new();
        for run in runs {
            starts.entry(run.thread).or_default().push(run.span.start);
        }
        starts.values_mut().for_each(|starts| starts.sort_unstable());
        Self(starts)
    }

    /// When the thread of that run continued.
    fn after(&self, run: &Run) -> Option<Nanos> {
        let starts = self.0.get(&run.thread)?;
        let next = starts.partition_point(|start| *start < run.span.end());
        starts.get(next).copied()
    }
}

/// The periods from each involuntary end of a run to the next run, or until its thread continued on
/// another CPU. One that overlaps lost records is omitted, as they may include that run.
fn preemptions(own: &[Run], resumes: &Resumes, losses: &[Span]) -> Vec<Span> {
    let nexts = own.iter().skip(1).map(|next| Some(next.span.start)).chain([None]);
    let pairs = own.iter().zip(nexts).filter(|(run, _)| run.is_runnable);
    let off = pairs.filter_map(|(run, next)| {
        let start = run.span.end();
        let end = next.into_iter().chain(resumes.after(run)).min()?;
        Some(Span { start, length: end.saturating_sub(start) })
    });
    off.filter(|span| !span.length.is_zero() && !overlaps(*span, losses)).collect()
}

/// A record's period, relative to the program's start; `None` if it was not running.
fn within(record: &Record, ran: Span) -> Option<Span> {
    clipped(record.start, record.end, ran)
}

/// The part of a period of the records' clock in which the program ran, relative to its start.
pub(crate) fn clipped(from: u64, to: u64, ran: Span) -> Option<Span> {
    let begin = Nanos::from_nanos(from).max(ran.start);
    let end = Nanos::from_nanos(to).min(ran.end());
    let length = end.saturating_sub(begin);
    let start = begin.saturating_sub(ran.start);
    (!length.is_zero()).then_some(Span { start, length })
}

/// Whether it began in one of these periods, which are in order.
fn is_in(span: Span, stretches: &[Span]) -> bool {
    let after = stretches.partition_point(|stretch| stretch.start <= span.start);
    let last = after.checked_sub(1).and_then(|at| stretches.get(at));
    last.is_some_and(|stretch| span.start < stretch.end())
}

#[cfg(test)]
mod tests {
    use facts::Root;
    use recording::CulpritKind;

    use super::*;
    use crate::join::layers::Piece;
    use crate::records::Mark;

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
            mark: Mark {
                is_own: mark != "other",
                is_runnable: mark == "runnable",
                ..Mark::default()
            },
        }
    }

    fn lane(cpu: u32, records: Vec<Record>, losses: &[(u64, u64)]) -> Lane {
        let mut lane = Lane::new(Cpu::new(cpu));
        lane.records = records;
        for (from, until) in losses {
            lane.add_loss(1, *from, *until);
        }
        lane
    }

    fn found_on(lanes: &[&Lane]) -> Interruptions {
        let names = Names::read(&Root::live(), &[]);
        let (start, length) = (Nanos::from_secs(1), Nanos::from_millis(10));
        let ran = Span { start, length };
        interruptions(lanes, &Outside::default(), &names, ran, &TypicalEdges::default()).0
    }

    fn found(records: Vec<Record>, losses: &[(u64, u64)]) -> Interruptions {
        found_on(&[&lane(1, records, losses)])
    }

    fn micros_of(found: &Interruptions) -> Vec<(u64, u64)> {
        let micros = |nanos: Nanos| nanos.get() / 1_000;
        found.gaps.iter().map(|gap| (micros(gap.start), micros(gap.length))).collect()
    }

    /// Check that everything that ran in the waits is found, an interrupt of a thread as its own,
    /// cut off at the ends; that idle time is none, and that touching pieces are merged.
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
        let micros_of: Vec<_> =
            spans.iter().map(|s| (micros(s.start), micros(s.length))).collect();
        assert_eq!(micros_of, [(50, 10), (940, 10), (5_050, 40)]);
        let of = |kind| {
            let shares = blamed.shares.iter();
            let own = shares.filter(|share| blamed.culprits[share.culprit].kind == kind);
            micros(own.map(|share| share.ns).sum())
        };
        let kinds = [CulpritKind::Thread, CulpritKind::Softirq, CulpritKind::Unexplained];
        assert_eq!(kinds.map(of), [45, 6, 0]);
        assert_eq!(busy(&lane, &names, &[]).0, []);
    }

    /// Check what is an interruption: an interrupt in a run, with what follows from it, and an
    /// involuntary preemption; and what is none.
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
        assert_eq!(micros_of(&found), [(200, 10), (400, 50)]);
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

    /// Check that interruptions are extended by typical edges of the kinds of their events, not beyond the
    /// program's end, and that those that meet then are one.
    #[test]
    fn edges() {
        use Level::{Thread, Vector};
        let micros = |from: u64, length: u64| Span {
            start: Nanos::from_micros(from),
            length: Nanos::from_micros(length),
        };
        let records = vec![
            record(Thread, 500, 0, 9_998, "runnable"),
            record(Vector, 0xec, 200, 210, "other"),
            record(Vector, 0xec, 222, 230, "other"),
            record(Vector, 0xec, 5_000, 5_010, "other"),
            record(Vector, 0xec, 9_990, 9_997, "other"),
        ];
        let lane = lane(1, records, &[]);
        let names = Names::read(&Root::live(), &[]);
        let timer = names.culprit(&lane.records[1]);
        let [start, end] = [9, 15].map(Nanos::from_micros);
        let piece = Piece { start, end, culprit: 0 };
        let gaps = [(micros(0, 20), &[piece][..])];
        let edges = TypicalEdges::of(gaps.into_iter(), &[timer]);
        let ran = Span { start: Nanos::from_secs(1), length: Nanos::from_millis(10) };
        let away = Outside::default();
        let (found, _) = interruptions(&[&lane], &away, &names, ran, &edges);
        assert_eq!(micros_of(&found), [(191, 44), (4_991, 24), (9_981, 19)]);
        let [one] = found.edges[..] else { panic!("{:?}", found.edges) };
        let edges = [one.entry_ns, one.exit_ns];
        assert_eq!(edges, [9, 5].map(Nanos::from_micros));
        let shares = found.blamed.shares.iter().map(|share| share.ns);
        assert_eq!(shares.sum::<Nanos>(), Nanos::from_micros(44 + 24 + 19));
    }

    /// Check that the interruption of a thread that migrates ends there, that each CPU has its own,
    /// and that those of two CPUs add up.
    #[test]
    fn several_cpus() {
        use Level::{Thread, Vector};
        let first = lane(
            1,
            vec![
                record(Thread, 500, 0, 100, "runnable"),
                record(Thread, 70, 100, 900, "other"),
                record(Thread, 500, 900, 950, "waits"),
            ],
            &[],
        );
        let second = lane(
            2,
            vec![
                record(Thread, 500, 130, 600, "waits"),
                record(Vector, 0xec, 200, 210, "other"),
            ],
            &[],
        );
        let both = found_on(&[&first, &second]);
        assert_eq!(micros_of(&both), [(100, 30), (200, 10)]);
        assert_eq!(both.gap_cpus, [Cpu::new(1), Cpu::new(2)]);
        assert_eq!(both.ready_ns, Nanos::from_micros(100 + 30 + 50 + 470));
        let taken = |gap| {
            let own = both.blamed.shares.iter().filter(move |share| share.gap == gap);
            own.map(|share| share.ns).sum::<Nanos>()
        };
        assert_eq!([taken(0), taken(1)], [30, 10].map(Nanos::from_micros));
        // The interruption ends there, too, if the other CPU is not the program's.
        let mut outside = Outside::default();
        for run in second.records.iter().filter(|record| record.mark.is_own) {
            outside.push((second.cpu, *run));
        }
        let ran = Span { start: Nanos::from_secs(1), length: Nanos::from_millis(10) };
        let (names, edges) = (Names::read(&Root::live(), &[]), TypicalEdges::default());
        let (moved, _) = interruptions(&[&first], &outside, &names, ran, &edges);
        assert_eq!(micros_of(&moved), [(100, 30)]);
        // With one CPU alone the other is unknown.
        let alone = found_on(&[&first]);
        assert_eq!((micros_of(&alone), alone.gap_cpus), (vec![(100, 800)], vec![]));
    }

    /// Check that threads of the program do not interrupt each other, and that its end and lost
    /// records are no interruption.
    #[test]
    fn no_interruptions() {
        let own = |id, from, to, mark| record(Level::Thread, id, from, to, mark);
        let two =
            found(vec![own(500, 0, 50, "runnable"), own(501, 50, 90, "waits")], &[]);
        assert_eq!(micros_of(&two), []);
        let last = found(vec![own(500, 0, 50, "runnable")], &[]);
        assert_eq!((micros_of(&last), last.ready_ns), (vec![], Nanos::from_micros(50)));
        let runs = || vec![own(500, 0, 50, "runnable"), own(500, 90, 95, "waits")];
        assert_eq!(micros_of(&found(runs(), &[])), [(50, 40)]);
        let lost = found(runs(), &[(1_000_060_000, 1_000_070_000)]);
        assert_eq!((micros_of(&lost), lost.blamed.lost), (vec![], 1));
    }
}
