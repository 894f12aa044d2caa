//! Pairs of moments become events: a beginning and an end of one level are one, and a thread has
//! the CPU from the switch to it to the switch from it.
//!
//! Levels are nested, as in the BPF programs. Moments are not paired across lost ones: everything
//! that may have been active then is a loss, until a later moment shows that it has ended. Cannot
//! see events that began before the first moment, or end after the last one.

use crate::level::Level;
use crate::records::{Lane, Mark, NAMED, Record};
use crate::tracefs::events::{Moment, Task};
use crate::tracefs::threads::Threads;

/// More than any NMI has.
const HANDLERS: usize = 16;

/// The state of one level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Nothing,
    Since {
        start: u64,
        detail: u64,
    },
    /// Unknown since that loss.
    Unsure(usize),
}

/// The state of one CPU.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    levels: [State; Level::ALL.len()],
    /// The time of the last moment.
    now: u64,
    /// The handlers of an NMI, until it is known whether the NMI is reported as a whole.
    handlers: Vec<Record>,
}

impl Pairs {
    /// Handles a moment, and the thread that was running.
    pub(crate) fn take(
        &mut self,
        time: u64,
        (running, moment): (u32, Moment),
        lane: &mut Lane,
        threads: &mut Threads,
    ) {
        self.now = time;
        if !matches!(moment, Moment::Nmi(..) | Moment::WholeNmi(_)) {
            self.end_nmi(lane);
        }
        match moment {
            Moment::Begin(level) => self.begin(level, time),
            Moment::End(level, number) => self.end(level, number, lane),
            Moment::Expired(function) => self.expired(function),
            Moment::Nmi(took, handler) => {
                if self.handlers.len() == HANDLERS {
                    self.end_nmi(lane);
                }
                let start = time.saturating_sub(took);
                self.handlers.push(record(Level::Nmi, start, time, handler, 0));
            }
            Moment::WholeNmi(took) => {
                let start = time.saturating_sub(took);
                // Later handlers belong to this NMI.
                self.handlers.retain(|handler| handler.end <= start);
                self.end_nmi(lane);
                lane.push(Level::Nmi, Some(record(Level::Nmi, start, time, 0, 0)));
            }
            Moment::Switch { previous, next } => {
                self.switch(&previous, &next, lane, threads);
                return;
            }
        }
        if let State::Unsure(loss) = self.levels[Level::Thread as usize] {
            if !threads.is_known_spinner(running) {
                lane.extend_loss(loss, time);
            }
        }
    }

    /// The NMI was not reported as a whole: it lasted as long as its handlers.
    pub(crate) fn end_nmi(&mut self, lane: &mut Lane) {
        for handler in self.handlers.drain(..) {
            lane.push(Level::Nmi, Some(handler));
        }
    }

    /// Handles moments that were lost before that time.
    pub(crate) fn add_loss(&mut self, moments: u64, until: u64, lane: &mut Lane) {
        self.end_nmi(lane);
        let starts = self.levels.iter().filter_map(|state| match state {
            State::Since { start, .. } => Some(*start),
            State::Nothing | State::Unsure(_) => None,
        });
        let from = starts.fold(self.now, u64::min);
        self.levels =
            [State::Unsure(lane.add_loss(moments, from, until)); Level::ALL.len()];
    }

    fn begin(&mut self, level: Level, start: u64) {
        self.levels[level as usize] = State::Since { start, detail: 0 };
    }

    fn end(&mut self, level: Level, number: u64, lane: &mut Lane) {
        match std::mem::take(&mut self.levels[level as usize]) {
            State::Nothing => {}
            State::Unsure(loss) => lane.extend_loss(loss, self.now),
            State::Since { start, detail } => {
                let (id, detail) =
                    u32::try_from(number).map_or((NAMED, number), |id| (id, detail));
                lane.push(level, Some(record(level, start, self.now, detail, id)));
            }
        }
    }

    /// The first timer names the interrupt: a vector, or without one (arm64) the handler.
    fn expired(&mut self, function: u64) {
        for level in [Level::Vector, Level::Handler] {
            if let State::Since { detail, .. } = &mut self.levels[level as usize] {
                if *detail == 0 {
                    *detail = function;
                }
                return;
            }
        }
    }

    fn switch(
        &mut self,
        previous: &Task,
        next: &Task,
        lane: &mut Lane,
        threads: &mut Threads,
    ) {
        let now = self.now;
        let is_spinner = threads.is_spinner(previous, lane.cpu);
        let state = &mut self.levels[Level::Thread as usize];
        match std::mem::take(state) {
            State::Unsure(loss) if !is_spinner => lane.extend_loss(loss, now),
            // A spinner may have been switched to before it was recognised as one.
            State::Since { start, .. } if !is_spinner => {
                let process = threads.process(previous);
                let detail = u64::from(process) << 32 | u64::from(previous.prio);
                let thread = record(Level::Thread, start, now, detail, previous.tid);
                let (comm, is_self) = (previous.comm, threads.is_own(process));
                let mark = Mark { is_self, ..Mark::default() };
                lane.push(Level::Thread, Some(Record { comm, mark, ..thread }));
            }
            State::Nothing | State::Since { .. } | State::Unsure(_) => {}
        }
        if !threads.is_spinner(next, lane.cpu) {
            *state = State::Since { start: now, detail: 0 };
        }
    }
}

fn record(level: Level, start: u64, end: u64, detail: u64, id: u32) -> Record {
    Record { level, start, end, detail, id, comm: [0; 16], mark: Mark::default() }
}

/// Removes records of threads that turned out to be spinners.
pub(crate) fn forget_spinners(lane: &mut Lane, threads: &Threads) {
    lane.records.retain(|record| {
        record.level != Level::Thread || !threads.is_known_spinner(record.id)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Loss;
    use crate::tracefs::events::tests::recorded;
    use crate::tracefs::page::{Layout, Page};
    use units::Cpu;

    const SPINNER: Task =
        Task { tid: 90, prio: 98, comm: *b"spin/1\0\0\0\0\0\0\0\0\0\0" };
    const OTHER: Task =
        Task { tid: 70, prio: 120, comm: *b"other\0\0\0\0\0\0\0\0\0\0\0" };

    /// The records of these moments, in each of which the spinner runs unless it is switched from.
    /// `None`: two are lost.
    fn paired(moments: &[(u64, Option<Moment>)]) -> Lane {
        let mut lane = Lane::new(Cpu::new(1));
        let (mut pairs, mut threads) = (Pairs::default(), Threads::default());
        let mut running = SPINNER.tid;
        for (time, moment) in moments {
            match moment {
                Some(moment) => {
                    pairs.take(*time, (running, *moment), &mut lane, &mut threads)
                }
                None => pairs.add_loss(2, *time, &mut lane),
            }
            if let Some(Moment::Switch { next, .. }) = moment {
                running = next.tid;
            }
        }
        lane
    }

    fn found(lane: &Lane) -> Vec<(Level, u64, u64, u32)> {
        let found = |record: &Record| (record.level, record.start, record.end, record.id);
        lane.records.iter().map(found).collect()
    }

    fn to(previous: Task, next: Task) -> Option<Moment> {
        Some(Moment::Switch { previous, next })
    }

    fn begin(level: Level) -> Option<Moment> {
        Some(Moment::Begin(level))
    }

    fn end(level: Level, number: u64) -> Option<Moment> {
        Some(Moment::End(level, number))
    }

    /// Check that levels are nested, that the first timer names an interrupt, and that spinners are
    /// no culprits.
    #[test]
    fn pairs_levels() {
        use Level::{Nmi, Softirq, Thread, Vector};
        let lane = paired(&[
            (5, end(Vector, 0xfd)),
            (10, to(SPINNER, OTHER)),
            (20, begin(Softirq)),
            (30, begin(Vector)),
            (31, Some(Moment::Expired(0xa))),
            (32, Some(Moment::Expired(0xb))),
            (35, Some(Moment::Nmi(2, 0xc))),
            (40, end(Vector, 0xec)),
            (50, end(Softirq, 3)),
            (60, to(OTHER, SPINNER)),
            (70, begin(Vector)),
        ]);
        let expected = [
            (Nmi, 33, 35, 0),
            (Vector, 30, 40, 0xec),
            (Softirq, 20, 50, 3),
            (Thread, 10, 60, 70),
        ];
        assert_eq!(found(&lane), expected);
        let details: Vec<u64> = lane.records.iter().map(|record| record.detail).collect();
        assert_eq!(details, [0xc, 0xa, 0, 70 << 32 | 120]);
        assert_eq!(lane.losses, []);
    }

    /// Check that what was active when moments were lost is lost until it ends, and that the
    /// spinner's own time is not.
    #[test]
    fn loses_what_went_on() {
        let (vector, softirq) = (Level::Vector, Level::Softirq);
        let lane = paired(&[
            (10, to(SPINNER, OTHER)),
            (20, begin(vector)),
            (50, None),
            (60, end(vector, 0xec)),
            (70, to(OTHER, SPINNER)),
            (80, begin(softirq)),
            (90, end(softirq, 1)),
        ]);
        assert_eq!(found(&lane), [(softirq, 80, 90, 1)]);
        assert_eq!(lane.losses, [Loss { from: 10, until: 70, events: 2 }]);
        let lane = paired(&[
            (10, to(OTHER, SPINNER)),
            (20, begin(vector)),
            (30, end(vector, 0xec)),
            (50, None),
            (80, begin(vector)),
            (90, end(vector, 0xec)),
            (95, to(SPINNER, OTHER)),
        ]);
        assert_eq!(lane.records.len(), 2);
        assert_eq!(lane.losses, [Loss { from: 30, until: 50, events: 2 }]);
    }

    /// Check that an NMI that is reported as a whole has that duration, whatever its handlers took,
    /// and that others have those of their handlers.
    #[test]
    fn whole_nmis() {
        let handled = |took| Some(Moment::Nmi(took, 0xc));
        let lane = paired(&[
            (10, handled(4)),
            (30, handled(2)),
            (35, handled(3)),
            (40, Some(Moment::WholeNmi(15))),
            (50, handled(5)),
            (60, begin(Level::Vector)),
            (65, handled(1)),
            (70, end(Level::Vector, 0xec)),
        ]);
        use Level::{Nmi, Vector};
        let expected = [
            (Nmi, 6, 10, 0),
            (Nmi, 25, 40, 0),
            (Nmi, 45, 50, 0),
            (Nmi, 64, 65, 0),
            (Vector, 60, 70, 0xec),
        ];
        assert_eq!(found(&lane), expected);
    }

    /// Check that an interrupt without a number has the address of its name (arm64).
    #[test]
    fn keeps_names() {
        let address = 0xffff_8000_0000_1000;
        let lane = paired(&[(1, begin(Level::Vector)), (2, end(Level::Vector, address))]);
        assert_eq!(found(&lane), [(Level::Vector, 1, 2, NAMED)]);
        assert_eq!(lane.records[0].detail, address);
    }

    /// Check the events of real pages against the kernel's own text of them: of each kind as many
    /// as have ended.
    #[test]
    fn pairs_real_pages() {
        let layout =
            Layout::parse(include_str!("../../tests/trace/header_page")).unwrap();
        let vocabulary = recorded();
        let mut lane = Lane::new(Cpu::new(1));
        let (mut pairs, mut threads) = (Pairs::default(), Threads::default());
        let recorded = include_bytes!("../../tests/trace/page.bin");
        for page in recorded.chunks(layout.page_bytes()) {
            for event in Page::parse(layout, page).unwrap() {
                let moment = vocabulary.decode(event.bytes).unwrap();
                pairs.take(event.time, moment, &mut lane, &mut threads);
            }
        }
        let text = include_str!("../../tests/trace/page.txt");
        let ended = |name: &str| text.matches(name).count();
        let paired = |level: Level| {
            lane.records.iter().filter(|record| record.level == level).count()
        };
        let vectors = ended("local_timer_exit:")
            + ended("reschedule_exit:")
            + ended("call_function_single_exit:");
        assert_eq!(paired(Level::Vector), vectors);
        assert_eq!(paired(Level::Softirq), ended("softirq_exit:"));
        assert_eq!(paired(Level::Handler), ended("irq_handler_exit:"));
        assert_eq!(paired(Level::Thread), ended("sched_switch:") - 1);
        assert!(lane.records.iter().all(|record| record.start < record.end));
        assert_eq!(lane.losses, []);
    }
}
