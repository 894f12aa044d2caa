//! What a measurement and the reader of its events tell each other while both run: moments whose events
//! are not forgotten, and interruptions of a program.
//!
//! An interruption is known before it is over: a thread that preempted one of the program's is recorded
//! when it leaves the CPU. An interrupt during a run of the program counts when that run ends: only then
//! is it known whose run it was. The exact lengths are found afterwards ([`crate::interruptions`]).

use std::time::Duration;

use units::{Cpu, Nanos, Span};

use crate::level::Level;
use crate::records::{Lane, Record};

/// How often events are read if interruptions are reported.
const PERIOD: Duration = Duration::from_millis(100);
/// Events are stored this long before and after a moment.
pub(crate) const AROUND: Nanos = Nanos::from_secs(1);
/// The most interrupts during a run that has not ended.
const PENDING: usize = 4096;

/// The moments so far, on `CLOCK_MONOTONIC`.
type Moments = Box<dyn Fn() -> Vec<Span> + Send>;
/// Takes an interruption, on `CLOCK_MONOTONIC`.
type Report = Box<dyn FnMut(Cpu, Span) + Send>;

/// What a measurement and the reader of its events tell each other.
pub struct Feedback {
    moments: Moments,
    interruptions: Option<Interruptions>,
}

impl Feedback {
    /// Does not forget the events around these moments.
    pub fn new(moments: impl Fn() -> Vec<Span> + Send + 'static) -> Self {
        Self { moments: Box::new(moments), interruptions: None }
    }

    /// Reports interruptions of a program that are longer than that, within a second.
    #[must_use]
    pub fn reporting(
        self,
        above: Nanos,
        report: impl FnMut(Cpu, Span) + Send + 'static,
    ) -> Self {
        let report = Box::new(report);
        let found = Interruptions { above, report, states: Vec::new() };
        Self { interruptions: Some(found), ..self }
    }

    /// The longest time between two readings of events; `None`: that of their source.
    pub(crate) fn period(&self) -> Option<Duration> {
        self.interruptions.as_ref().map(|_| PERIOD)
    }

    /// Looks at the events that were read, and forgets the oldest ones where there are many.
    pub(crate) fn after_reading(&mut self, lanes: &mut [Lane]) {
        if let Some(interruptions) = &mut self.interruptions {
            interruptions.look(lanes);
        }
        if lanes.iter().any(Lane::is_filling) {
            let moments = (self.moments)();
            let near: Vec<Span> = moments.into_iter().map(around).collect();
            lanes.iter_mut().filter(|lane| lane.is_filling()).for_each(|lane| {
                lane.forget(&near);
            });
            if let Some(interruptions) = &mut self.interruptions {
                interruptions.skip(lanes);
            }
        }
    }
}

/// The time around a moment.
pub(crate) fn around(moment: Span) -> Span {
    let start = moment.start.saturating_sub(AROUND);
    Span { start, length: moment.end().saturating_add(AROUND).saturating_sub(start) }
}

/// The search for interruptions of a program.
struct Interruptions {
    above: Nanos,
    report: Report,
    states: Vec<State>,
}

/// What is known of a CPU.
#[derive(Default)]
struct State {
    /// The number of records that have been looked at.
    seen: usize,
    /// When the program lost the CPU.
    preempted: Option<Nanos>,
    /// Long interrupts of a run that has not ended.
    pending: Vec<Span>,
}

impl Interruptions {
    fn look(&mut self, lanes: &[Lane]) {
        self.states.resize_with(lanes.len(), State::default);
        for (lane, state) in lanes.iter().zip(&mut self.states) {
            for record in lane.records.get(state.seen..).unwrap_or_default() {
                for found in state.add(record, self.above) {
                    (self.report)(lane.cpu, found);
                }
            }
            state.seen = lane.records.len();
        }
    }

    /// Skips records that have been looked at before some were removed.
    fn skip(&mut self, lanes: &[Lane]) {
        for (lane, state) in lanes.iter().zip(&mut self.states) {
            state.seen = lane.records.len();
        }
    }
}

impl State {
    /// The interruptions above the limit that a record shows, each once.
    fn add(&mut self, record: &Record, above: Nanos) -> Vec<Span> {
        let span = record.span();
        if record.level != Level::Thread {
            if span.length > above && self.pending.len() < PENDING {
                self.pending.push(span);
            }
            return Vec::new();
        }
        let pending = std::mem::take(&mut self.pending);
        let (mut of_run, later): (Vec<Span>, Vec<Span>) =
            pending.into_iter().partition(|one| one.start < span.end());
        of_run.retain(|one| one.start >= span.start);
        self.pending = later;
        if record.mark.is_own {
            self.preempted = record.mark.is_runnable.then_some(span.end());
            return of_run;
        }
        if record.is_idle() {
            self.preempted = None;
        }
        let lost = |since: Nanos| Span {
            start: since,
            length: span.end().saturating_sub(since),
        };
        let found = self.preempted.map(lost).filter(|lost| lost.length > above);
        if found.is_some() {
            self.preempted = None;
        }
        found.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::tests::record;
    use crate::records::Mark;

    /// A record from and to these microseconds; `own` is of the program.
    fn of(level: Level, from: u64, to: u64, own: &str) -> Record {
        let mark = Mark {
            is_own: own != "other",
            is_runnable: own == "preempted",
            ..Mark::default()
        };
        let id = u32::from(own != "idle");
        let mark = if own == "idle" { Mark::default() } else { mark };
        Record { start: from * 1_000, mark, ..record(level, id, to * 1_000) }
    }

    fn found(records: &[Record]) -> Vec<(u64, u64)> {
        let mut state = State::default();
        let above = Nanos::from_micros(10);
        let found = records.iter().flat_map(|one| state.add(one, above));
        found.map(|span| (span.start.get() / 1_000, span.length.get() / 1_000)).collect()
    }

    /// Check that threads after a preemption are reported once when they are too long together, that
    /// what runs while the program waits is not, and that an interrupt counts in a run of the program.
    #[test]
    fn interruptions() {
        use Level::{Softirq, Thread};
        let preempting = [
            of(Thread, 0, 100, "preempted"),
            of(Thread, 100, 106, "other"),
            of(Thread, 106, 113, "other"),
            of(Thread, 113, 150, "other"),
            of(Thread, 150, 300, "waits"),
            of(Thread, 300, 340, "other"),
        ];
        assert_eq!(found(&preempting), [(100, 13)]);
        let idle = [
            of(Thread, 0, 100, "preempted"),
            of(Thread, 100, 160, "idle"),
            of(Thread, 160, 200, "other"),
        ];
        assert_eq!(found(&idle), [(0, 0); 0]);
        let interrupts = [
            of(Softirq, 20, 50, "other"),
            of(Softirq, 60, 65, "other"),
            of(Softirq, 120, 170, "other"),
            of(Thread, 0, 100, "waits"),
            of(Thread, 100, 200, "other"),
        ];
        assert_eq!(found(&interrupts), [(20, 30)]);
    }
}
