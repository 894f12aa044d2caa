//! The recorded events, CPU by CPU in the order of their ends, and the lost ones.

use std::borrow::Cow;

use recording::StoppedBy;
use units::{Cpu, Nanos, Span};

use crate::join::merged;
use crate::level::Level;

/// The maximum number of stored events of one CPU: 56 bytes each.
const RECORDS_MAX: usize = 1 << 22;
/// With more of them, the oldest may be forgotten,
const FILLING: usize = RECORDS_MAX / 4 * 3;
/// but not those of the last seconds.
const RECENT: Nanos = Nanos::from_secs(2);

/// The number of a vector without one (arm64).
pub(crate) const NAMED: u32 = u32::MAX;

/// An event that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) level: Level,
    /// On the kernel's monotonic clock, in nanoseconds.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// For a vector the function of the first timer that expired; for a thread its process in the
    /// upper half, its priority in the lower.
    pub(crate) detail: u64,
    /// The vector, IRQ, softirq or thread. [`NAMED`]: an interrupt without a number; `detail` is
    /// the address of its name in the kernel.
    pub(crate) id: u32,
    /// A thread's name.
    pub(crate) comm: [u8; 16],
    /// Properties of a thread, as far as they are known.
    pub(crate) mark: Mark,
}

/// Properties of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// It belongs to a program that is measured, or to a descendant of it.
    pub(crate) is_own: bool,
    /// It could have continued when it left the CPU.
    pub(crate) is_runnable: bool,
    /// It is known to be a kernel thread.
    pub(crate) is_kernel: bool,
    /// It belongs to this process, or supervises a program for it.
    pub(crate) is_self: bool,
    /// It has ended.
    pub(crate) is_dead: bool,
    /// What stopped it.
    pub(crate) stopped_by: Option<StoppedBy>,
}

impl Record {
    /// Its time, on the kernel's monotonic clock.
    pub(crate) fn span(&self) -> Span {
        span(self.start, self.end)
    }

    /// The same in each of these parts of its time.
    fn in_all(&self, parts: &[Span]) -> Vec<Self> {
        let part = |part: &Span| Self {
            start: part.start.get(),
            end: part.end().get(),
            ..*self
        };
        parts.iter().map(part).collect()
    }

    /// A thread's name.
    pub(crate) fn name(&self) -> String {
        text_of(self.comm)
    }

    /// Of a thread, its process.
    pub(crate) fn process(&self) -> u32 {
        u32::try_from(self.detail >> 32).unwrap_or(0)
    }

    /// Whether it is a thread of another process.
    fn is_other(&self) -> bool {
        self.level == Level::Thread && !self.mark.is_own && !self.mark.is_self
    }

    /// Whether it is the idle task.
    pub(crate) fn is_idle(&self) -> bool {
        self.level == Level::Thread && self.id == 0
    }
}

/// A thread's name, up to its terminating zero.
pub(crate) fn text_of(comm: [u8; 16]) -> String {
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(comm.len());
    String::from_utf8_lossy(&comm[..end]).into_owned()
}

/// Time that the hypervisor took from a CPU, according to its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stolen {
    /// When the clock was read before, on the records' clock.
    pub(crate) from: u64,
    /// When it was read.
    pub(crate) until: u64,
    /// The difference in between.
    pub(crate) ns: u64,
}

/// Lost events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loss {
    /// After that time of the records' clock.
    pub(crate) from: u64,
    /// Before that time.
    pub(crate) until: u64,
    /// Their number.
    pub(crate) events: u64,
}

impl Loss {
    /// No events in that period, so far.
    fn of(period: Span) -> Self {
        Self { from: period.start.get(), until: period.end().get(), events: 0 }
    }

    /// When they were lost, on the records' clock.
    pub(crate) fn span(&self) -> Span {
        span(self.from, self.until)
    }
}

/// The parts of a period that are in none of the others, which are in order and do not overlap.
fn without(period: Span, others: &[Span]) -> Vec<Span> {
    let mut from = period.start;
    let mut parts = Vec::new();
    let first = others.partition_point(|one| one.end() <= period.start);
    let within = others[first..].iter().take_while(|one| one.start < period.end());
    let end = Span { start: period.end(), length: Nanos::ZERO };
    for one in within.chain([&end]) {
        let length = one.start.saturating_sub(from);
        parts.extend((!length.is_zero()).then_some(Span { start: from, length }));
        from = from.max(one.end());
    }
    parts
}

fn span(start: u64, end: u64) -> Span {
    let start = Nanos::from_nanos(start);
    Span { start, length: Nanos::from_nanos(end).saturating_sub(start) }
}

/// The events of one CPU.
pub(crate) struct Lane {
    pub(crate) cpu: Cpu,
    /// Level by level in the order of their ends, as far as they were read at once.
    pub(crate) records: Vec<Record>,
    /// Those that were overwritten before they were read, or were too many to store: between which
    /// stored ones of their level they ended, or in which period if there are none.
    pub(crate) losses: Vec<Loss>,
    /// Stolen time, in rising order.
    pub(crate) stolen: Vec<Stolen>,
    /// Whether `stolen` is complete: its clock could be read.
    pub(crate) has_steal_clock: bool,
    /// Some of `stolen` was overwritten before it was read.
    has_lost_steal: bool,
    /// When the last event of each level ended, and the index in `losses` of those after it.
    last: [(u64, Option<usize>); Level::ALL.len()],
}

impl Lane {
    pub(crate) fn new(cpu: Cpu) -> Self {
        Self {
            cpu,
            records: Vec::new(),
            losses: Vec::new(),
            stolen: Vec::new(),
            has_steal_clock: false,
            has_lost_steal: false,
            last: [(0, None); Level::ALL.len()],
        }
    }

    /// Stores a record of that level; `None`: one was lost.
    pub(crate) fn push(&mut self, level: Level, record: Option<Record>) {
        let (end, place) = &mut self.last[level as usize];
        let Some(record) = record.filter(|_| self.records.len() < RECORDS_MAX) else {
            let place = *place.get_or_insert_with(|| {
                self.losses.push(Loss { from: *end, until: u64::MAX, events: 0 });
                self.losses.len() - 1
            });
            if let Some(loss) = self.losses.get_mut(place) {
                loss.events += 1;
            }
            return;
        };
        if let Some(loss) = place.take().and_then(|place| self.losses.get_mut(place)) {
            loss.until = record.end;
        }
        *end = record.end;
        self.records.push(record);
    }

    /// The records from the view of the measured threads: other threads have the CPU only while no CPU
    /// quota keeps the measured ones from running. The time until then belongs to the quota.
    pub(crate) fn charged(&self) -> Cow<'_, [Record]> {
        let quotas = self.records.iter().filter(|it| it.level == Level::Quota);
        let quotas: Vec<Span> = quotas.map(Record::span).collect();
        if quotas.is_empty() {
            return Cow::Borrowed(&self.records);
        }
        let records = self.records.iter().flat_map(|record| match record.is_other() {
            true => record.in_all(&without(record.span(), &quotas)),
            false => vec![*record],
        });
        Cow::Owned(records.collect())
    }

    /// Stores stolen time; `None`: some was lost.
    pub(crate) fn push_stolen(&mut self, stolen: Option<Stolen>) {
        self.has_lost_steal |= stolen.is_none();
        self.stolen.extend(stolen);
    }

    /// The stolen time; `None` if it is unknown.
    pub(crate) fn all_stolen(&self) -> Option<&[Stolen]> {
        (self.has_steal_clock && !self.has_lost_steal).then_some(&self.stolen)
    }

    /// Whether it will soon be full.
    pub(crate) fn is_filling(&self) -> bool {
        self.records.len() > FILLING
    }

    /// Forgets the older half of the events, but not those in these periods around moments, nor
    /// recent ones, nor the first run of a program. They count as lost in the time between those periods.
    pub(crate) fn forget(&mut self, around: &[Span]) {
        let mut ends: Vec<u64> = self.records.iter().map(|record| record.end).collect();
        let middle = ends.len() / 2;
        let last = ends.iter().copied().max().unwrap_or(0);
        let median = *ends.select_nth_unstable(middle).1;
        let until = median.min(last.saturating_sub(RECENT.get()));
        let holes = without(span(0, until), &merged(around.to_vec(), Nanos::ZERO));
        let mut losses: Vec<Loss> = holes.iter().map(|hole| Loss::of(*hole)).collect();
        let mut has_own = false;
        self.records.retain(|record| {
            let is_first = record.mark.is_own && !has_own;
            has_own |= record.mark.is_own;
            let next = losses.partition_point(|loss| loss.until < record.end);
            let loss = losses.get_mut(next).filter(|loss| loss.from < record.end);
            match loss.filter(|_| !is_first) {
                None => true,
                Some(loss) => {
                    loss.events += 1;
                    false
                }
            }
        });
        self.losses.extend(losses.into_iter().filter(|loss| loss.events > 0));
        if self.stolen.first().is_some_and(|stolen| stolen.until < until) {
            self.stolen.retain(|stolen| stolen.until >= until);
            self.has_lost_steal = true;
        }
    }

    /// Counts events of any level as lost between two times. Returns the index of the loss.
    pub(crate) fn add_loss(&mut self, events: u64, from: u64, until: u64) -> usize {
        self.losses.push(Loss { from, until, events });
        self.losses.len() - 1
    }

    /// Counts events as lost at an unknown time: with the last loss, or at any time.
    pub(crate) fn add_lost_events(&mut self, events: u64) {
        match self.losses.last_mut() {
            _ if events == 0 => {}
            Some(loss) => loss.events = loss.events.saturating_add(events),
            None => {
                self.add_loss(events, 0, u64::MAX);
            }
        }
    }

    /// Extends a loss: what was active when events were lost continued at least until then.
    pub(crate) fn extend_loss(&mut self, place: usize, until: u64) {
        if let Some(loss) = self.losses.get_mut(place) {
            loss.until = until.max(loss.until);
        }
    }
}

/// The runs of a program's threads on CPUs that are not measured, in the order of their ends.
#[derive(Default)]
pub(crate) struct Outside {
    pub(crate) runs: Vec<(Cpu, Record)>,
    /// The number of runs that are missing.
    pub(crate) lost: u64,
    /// Those that the source has lost.
    lost_before: u64,
}

impl Outside {
    /// Stores a run.
    pub(crate) fn push(&mut self, run: (Cpu, Record)) {
        match self.runs.len() < RECORDS_MAX {
            true => self.runs.push(run),
            false => self.lost += 1,
        }
    }

    /// Stores the number of runs that the source has lost since it was opened.
    pub(crate) fn set_lost(&mut self, lost: u64) {
        self.lost += lost.saturating_sub(self.lost_before);
        self.lost_before = lost;
    }

    /// Takes what was stored since the last call.
    pub(crate) fn take(&mut self) -> Self {
        let lost_before = self.lost_before;
        std::mem::replace(self, Self { lost_before, ..Self::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::tests::record;

    /// Check that the older half is forgotten, but not what is around moments nor the first run of a
    /// program, that the rest counts as lost in the time between moments, and that nothing recent is.
    #[test]
    fn old_events_are_forgotten() {
        let second = 1_000_000_000;
        let mut lane = Lane::new(Cpu::new(1));
        for at in 1..=20 {
            let mut one = record(Level::Thread, 1, at * second);
            one.mark.is_own = at <= 2;
            lane.push(Level::Thread, Some(one));
        }
        let ends = |lane: &Lane| {
            lane.records.iter().map(|record| record.end / second).collect::<Vec<_>>()
        };
        let losses = |lane: &Lane| {
            let seconds =
                |loss: &Loss| (loss.from / second, loss.until / second, loss.events);
            lane.losses.iter().map(seconds).collect::<Vec<_>>()
        };
        lane.forget(&[span(5 * second - 1, 6 * second)]);
        let recent = 12..=20;
        assert_eq!(
            ends(&lane),
            [&[1, 5, 6][..], &recent.clone().collect::<Vec<_>>()].concat()
        );
        assert_eq!(losses(&lane), [(0, 4, 3), (6, 11, 5)]);
        lane.forget(&[]);
        assert_eq!(ends(&lane)[..2], [1, 16]);
        assert_eq!(losses(&lane)[2..], [(0, 15, 6)]);
        // Nothing older than 2 seconds is left of few records.
        let mut lane = Lane::new(Cpu::new(1));
        for at in [1, 2, 3] {
            lane.push(Level::Thread, Some(record(Level::Thread, 1, at * second / 2)));
        }
        lane.forget(&[]);
        assert_eq!((lane.records.len(), losses(&lane)), (3, vec![]));
    }

    /// Check that a quota replaces other threads, but no interrupt and no measured thread.
    #[test]
    fn quota_replaces_threads() {
        let mut lane = Lane::new(Cpu::new(1));
        let at = |level, start, end| Record { start, ..record(level, 7, end) };
        let own = Mark { is_own: true, ..Mark::default() };
        for record in [
            at(Level::Thread, 0, 20),
            at(Level::Thread, 20, 30),
            Record { mark: own, ..at(Level::Thread, 30, 45) },
            at(Level::Thread, 45, 90),
            at(Level::Vector, 15, 25),
        ] {
            lane.push(record.level, Some(record));
        }
        assert!(matches!(lane.charged(), Cow::Borrowed(all) if all.len() == 5));
        for (start, end) in [(10, 40), (50, 60), (70, 90)] {
            lane.push(Level::Quota, Some(at(Level::Quota, start, end)));
        }
        let charged = lane.charged();
        let found = charged.iter().map(|it| (it.level, it.start, it.end));
        let (thread, quota) = (Level::Thread, Level::Quota);
        let expected = [
            (thread, 0, 10),
            (thread, 30, 45),
            (thread, 45, 50),
            (thread, 60, 70),
            (Level::Vector, 15, 25),
            (quota, 10, 40),
            (quota, 50, 60),
            (quota, 70, 90),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    /// Check the losses of each level: the number of events, and the stored ones between which they
    /// were lost.
    #[test]
    fn losses_are_counted() {
        let mut lane = Lane::new(Cpu::new(1));
        let thread = |end| Some(record(Level::Thread, 1, end));
        for taken in [None, thread(10), None, None, thread(40), None] {
            lane.push(Level::Thread, taken);
        }
        lane.push(Level::Softirq, None);
        let found: Vec<_> =
            lane.losses.iter().map(|loss| (loss.from, loss.until, loss.events)).collect();
        let end = u64::MAX;
        assert_eq!(found, [(0, 10, 1), (10, 40, 2), (40, end, 1), (0, end, 1)]);
        lane.add_lost_events(7);
        assert_eq!(lane.losses.iter().map(|loss| loss.events).sum::<u64>(), 12);
    }
}
