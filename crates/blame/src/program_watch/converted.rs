//! The sums of the kernel's tables as a series: with names, and threads that have ended by name.

use facts::Root;
use recording::{
    Culprit, CulpritKind, DelayKind, DelayRun, Source, WaitParts, WaitTaker, WatchLost,
    WatchSeries, WatchedDelay, WatchedInterruption, WatchedThread,
};
use units::{Cpu, Nanos};

use crate::bpf::threads::ThreadKey;
use crate::bpf::watch_programs::{Ended, Sums};
use crate::bpf::watch_tables::{self as tables, Delay, Taker, Thread, WATCHED};
use crate::names::of_sums::{Named, interrupt_record, run_record};
use crate::program_watch::by_name::{ByName, OTHERS, Summed};
use crate::records::Record;

/// `enum kind` there.
const INTERRUPTED: u32 = 1;

/// What was taken from the tables before the end.
#[derive(Debug, Default)]
pub(crate) struct Converted {
    ended: ByName<WatchedThread>,
    takers: ByName<WaitTaker>,
}

impl Converted {
    /// Adds threads that have ended, and threads that had the CPU meanwhile.
    pub(crate) fn add_ended(&mut self, root: &Root, ended: &Ended) {
        ended.threads.iter().for_each(|row| self.add_thread(row));
        let takers = named_takers(root, &ended.takers);
        takers.into_iter().for_each(|taker| self.add_taker(taker));
    }

    fn add_thread(&mut self, row: &Thread) {
        let name = crate::records::text_of(row.name);
        self.ended.add(name.clone(), ended_thread(name, row));
    }

    fn add_taker(&mut self, taker: WaitTaker) {
        let key = taker.thread.as_ref().map_or_else(String::new, |thread| {
            let tid = thread.thread.as_ref().map_or(0, |thread| thread.tid);
            format!("{} {tid}", thread.name)
        });
        self.takers.add(key, taker);
    }

    /// The series of the whole time.
    pub(crate) fn series(
        mut self,
        root: &Root,
        sums: Sums,
        began_ns: Nanos,
        elapsed_ns: Nanos,
    ) -> WatchSeries {
        let takers = named_takers(root, &sums.takers);
        takers.into_iter().for_each(|taker| self.add_taker(taker));
        let (ended, alive): (Vec<_>, Vec<_>) =
            sums.threads.into_iter().partition(Thread::has_ended);
        ended.iter().for_each(|row| self.add_thread(row));
        let alive = alive.iter().map(|row| thread(root, row));
        let mut takers: Vec<WaitTaker> = self.takers.into_values().collect();
        takers.sort_by_key(|taker| std::cmp::Reverse(taker.ns));
        let lengths = sums.lengths.iter();
        let lost = sums.lost;
        WatchSeries {
            source: Source::Bpf,
            began_ns,
            elapsed_ns,
            threads: alive.chain(self.ended.into_values()).collect(),
            takers,
            interruptions: interruptions(root, &sums.interruptions),
            lengths: lengths
                .map(|(ns, count)| (Nanos::from_nanos(*ns), *count))
                .collect(),
            longest: delays(root, &sums.longest),
            lost: WatchLost {
                events: lost.threads,
                taken_ns: Nanos::from_nanos(lost.takers),
                delays: lost.delays,
                unsure: lost.unsure,
                unseen_ns: Nanos::from_nanos(lost.unseen),
            },
        }
    }
}

impl Summed for WatchedThread {
    fn time(&self) -> Nanos {
        self.run_ns.saturating_add(self.wait_ns)
    }

    fn add(&mut self, other: &Self) {
        add(self, other);
    }

    fn as_others(&self) -> Self {
        Self { name: OTHERS.to_owned(), ..self.clone() }
    }
}

impl Summed for WaitTaker {
    fn time(&self) -> Nanos {
        self.ns
    }

    fn add(&mut self, other: &Self) {
        self.ns = self.ns.saturating_add(other.ns);
        self.runs += other.runs;
    }

    fn as_others(&self) -> Self {
        let (kind, name) = (CulpritKind::Thread, OTHERS.to_owned());
        Self { thread: Some(Culprit { kind, name, thread: None }), ..self.clone() }
    }
}

/// Adds another thread of the same name.
fn add(sum: &mut WatchedThread, other: &WatchedThread) {
    sum.pid = sum.pid.filter(|pid| other.pid == Some(*pid));
    sum.count += other.count;
    sum.run_ns = sum.run_ns.saturating_add(other.run_ns);
    sum.wait_ns = sum.wait_ns.saturating_add(other.wait_ns);
    sum.waits += other.waits;
    sum.wait_ns_max = both(sum.wait_ns_max, other.wait_ns_max, Nanos::max);
    sum.parts = sum.parts.zip(other.parts).map(|(one, other)| plus(one, other));
    sum.interrupted_ns = both(sum.interrupted_ns, other.interrupted_ns, |a, b| a + b);
    sum.interruptions = both(sum.interruptions, other.interruptions, |a, b| a + b);
    sum.preempted += other.preempted;
    sum.slept += other.slept;
    sum.migrations = both(sum.migrations, other.migrations, |a, b| a + b);
    sum.user_ns = sum.user_ns.saturating_add(other.user_ns);
    sum.system_ns = sum.system_ns.saturating_add(other.system_ns);
    sum.minor_faults += other.minor_faults;
    sum.major_faults += other.major_faults;
}

fn both<T>(one: Option<T>, other: Option<T>, sum: fn(T, T) -> T) -> Option<T> {
    Some(sum(one?, other?))
}

fn plus(one: WaitParts, other: WaitParts) -> WaitParts {
    let (mut sum, other) = (one.all(), other.all());
    for (to, from) in sum.iter_mut().zip(other) {
        *to = to.saturating_add(from);
    }
    sum.into()
}

fn thread(root: &Root, row: &Thread) -> WatchedThread {
    let name = crate::records::text_of(row.name);
    let name = crate::names::full_name(root, row.who.tid, &name).unwrap_or(name);
    WatchedThread { tid: Some(row.who.tid), ..ended_thread(name, row) }
}

fn ended_thread(name: String, row: &Thread) -> WatchedThread {
    let [user, system, minor_faults, major_faults] = row.usage();
    WatchedThread {
        tid: None,
        pid: Some(row.process),
        name,
        count: 1,
        run_ns: Nanos::from_nanos(row.run),
        wait_ns: Nanos::from_nanos(row.wait),
        waits: row.waits,
        wait_ns_max: Some(Nanos::from_nanos(row.longest)),
        parts: Some(parts(row.parts)),
        interrupted_ns: Some(Nanos::from_nanos(row.interrupted)),
        interruptions: Some(row.interruptions),
        preempted: row.preempted,
        slept: row.slept,
        migrations: Some(row.moved),
        user_ns: Nanos::from_nanos(user),
        system_ns: Nanos::from_nanos(system),
        minor_faults,
        major_faults,
    }
}

fn parts(parts: [u64; tables::GROUPS]) -> WaitParts {
    parts.map(Nanos::from_nanos).into()
}

fn named_takers(root: &Root, takers: &[(ThreadKey, Taker)]) -> Vec<WaitTaker> {
    let record = |(who, taker): &(ThreadKey, Taker)| {
        run_record(who.tid, taker.process, taker.prio, taker.name)
    };
    let names = Named::read(root, takers.iter().map(record).collect());
    let taker = |(who, taker): &(ThreadKey, Taker)| WaitTaker {
        thread: names.thread(&record(&(*who, *taker))),
        is_same: taker.group == WATCHED,
        ns: Nanos::from_nanos(taker.ns),
        runs: taker.runs,
    };
    takers.iter().map(taker).collect()
}

fn interruptions(
    root: &Root,
    found: &[(tables::Source, tables::Interruption)],
) -> Vec<WatchedInterruption> {
    let known = found.iter().filter_map(|(source, sum)| Some((record_of(*source)?, sum)));
    let names = Named::read(root, known.clone().map(|(record, _)| record).collect());
    let mut all: Vec<WatchedInterruption> = known
        .map(|(record, sum)| WatchedInterruption {
            culprit: names.culprit(&record),
            ns: Nanos::from_nanos(sum.ns),
            count: sum.count,
            ns_max: Nanos::from_nanos(sum.longest),
        })
        .collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.ns));
    all
}

/// The delays with the names of all threads.
pub(crate) fn delays(root: &Root, delays: &[Delay]) -> Vec<WatchedDelay> {
    let records = delays.iter().flat_map(|delay| {
        let own = run_record(delay.who.tid, delay.process, delay.prio, delay.name);
        let runs = delay.runs.iter();
        let runs = runs.map(|run| run_record(run.tid, run.process, run.prio, run.name));
        runs.chain([own]).chain(record_of(delay.source))
    });
    let names = Named::read(root, records.collect());
    delays.iter().map(|one| delay(&names, one)).collect()
}

fn delay(names: &Named, delay: &Delay) -> WatchedDelay {
    let own = run_record(delay.who.tid, delay.process, delay.prio, delay.name);
    let is_interruption = delay.kind == INTERRUPTED;
    let kind = match (is_interruption, delay.was_preempted != 0) {
        (true, _) => DelayKind::Interrupted,
        (false, true) => DelayKind::Preempted,
        (false, false) => DelayKind::Woken,
    };
    let source = record_of(delay.source).filter(|_| is_interruption);
    let listed = delay.runs.iter().filter(|run| run.since > 0).count();
    let seen = usize::try_from(delay.runs_seen).unwrap_or(usize::MAX);
    let before = if is_interruption { 0 } else { seen.saturating_sub(listed) };
    WatchedDelay {
        begin_ns: Nanos::from_nanos(delay.begin),
        ns: Nanos::from_nanos(delay.end.saturating_sub(delay.begin)),
        kind,
        thread: names.culprit(&own),
        cpu: Cpu::new(delay.cpu),
        elsewhere_ns: Nanos::from_nanos(delay.here.saturating_sub(delay.begin)),
        parts: parts(delay.parts),
        interruption: source.map(|source| names.culprit(&source)),
        runs: if is_interruption { Vec::new() } else { runs(names, delay) },
        runs_before: u64::try_from(before).unwrap_or(u64::MAX),
    }
}

/// The runs on the CPU during a delay. The first one may have begun before; the delayed thread's own
/// one before it was preempted is left out.
fn runs(names: &Named, delay: &Delay) -> Vec<DelayRun> {
    let all: Vec<_> = delay.runs.iter().filter(|run| run.since > 0).collect();
    let ends = all.iter().skip(1).map(|run| run.since).chain([delay.end]);
    let run = |(run, end): (&&tables::Run, u64)| {
        let from = run.since.max(delay.here);
        let record = run_record(run.tid, run.process, run.prio, run.name);
        DelayRun {
            thread: names.thread(&record),
            is_same: run.group == WATCHED,
            before_ns: Nanos::from_nanos(delay.here.saturating_sub(run.since)),
            ns: Nanos::from_nanos(end.saturating_sub(from)),
        }
    };
    let is_in = |(_, end): &(&&tables::Run, u64)| *end > delay.here;
    all.iter().zip(ends).filter(is_in).map(run).collect()
}

fn record_of(source: tables::Source) -> Option<Record> {
    interrupt_record(source.level, source.id)
}
