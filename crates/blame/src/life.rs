//! The life of a program, by the runs of its threads: its end, when it was stopped, and the CPUs where it
//! ran apart from those that it was given.
//!
//! A thread that leaves the CPU to be stopped is stopped until it runs again. The program is stopped
//! while all of its threads are, in all of its processes: while one of them waits for another, nothing
//! shows what it waits for. Cannot see: threads that have not run yet; how long a thread that continues
//! waits for the CPU.

use std::collections::{BTreeMap, HashMap, HashSet};

use recording::{CpuRun, Stopped, StoppedBy};
use units::{Cpu, Nanos, Span};

use crate::interruptions::clipped;
use crate::records::{Lane, Outside, Record};

/// The runs of a program's threads on all CPUs, in the order of their starts.
pub(crate) struct Life<'a>(Vec<&'a Record>);

/// When a program was stopped.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stops {
    /// All of it.
    pub(crate) all: Vec<Stopped>,
    /// The longest time in which one of its processes was stopped while others were not.
    pub(crate) part: Nanos,
}

impl<'a> Life<'a> {
    pub(crate) fn of(lanes: &[&'a Lane], outside: &'a Outside) -> Self {
        let inside = lanes.iter().flat_map(|lane| &lane.records);
        let outside = outside.runs.iter().map(|(_, record)| record);
        let own = inside.chain(outside).filter(|record| record.mark.is_own);
        let mut runs: Vec<&Record> = own.collect();
        runs.sort_unstable_by_key(|run| run.start);
        Self(runs)
    }

    /// When the last thread of its first process ended.
    pub(crate) fn end(&self) -> Option<Nanos> {
        let process = self.0.first()?.process();
        let ends = self.0.iter().filter(|run| run.process() == process);
        let last = ends.filter(|run| run.mark.is_dead).map(|run| run.end).max()?;
        Some(Nanos::from_nanos(last))
    }

    /// When it was stopped during that time.
    pub(crate) fn stops(&self, ran: Span) -> Stops {
        let stopping = self.0.iter().filter(|run| run.mark.stopped_by.is_some());
        let processes: HashSet<u32> = stopping.map(|run| run.process()).collect();
        if processes.is_empty() {
            return Stops::default();
        }
        let total = |stops: &[Stopped]| stops.iter().map(|stopped| stopped.ns).sum();
        let all = stops(self.0.iter().copied(), ran);
        let of_process = |process: u32| {
            let own = self.0.iter().filter(|run| run.process() == process);
            total(&stops(own.copied(), ran))
        };
        let most: Nanos = processes.into_iter().map(of_process).max().unwrap_or_default();
        Stops { part: most.saturating_sub(total(&all)), all }
    }
}

/// How long threads of the program ran on each CPU that is not measured.
pub(crate) fn elsewhere(outside: &Outside, ran: Span) -> Vec<CpuRun> {
    let mut times: BTreeMap<Cpu, Nanos> = BTreeMap::new();
    for (cpu, record) in &outside.runs {
        let part = clipped(record.start, record.end, ran);
        if let Some(part) = part.filter(|_| record.mark.is_own) {
            let time = times.entry(*cpu).or_default();
            *time = *time + part.length;
        }
    }
    times.into_iter().map(|(cpu, ns)| CpuRun { cpu, ns }).collect()
}

/// A change of the threads that live, and of those that are stopped.
struct Change {
    at: u64,
    live: i32,
    stopped: i32,
    by: Option<StoppedBy>,
}

/// When all threads of these runs, which are in the order of their starts, were stopped.
fn stops<'a>(runs: impl Iterator<Item = &'a Record>, ran: Span) -> Vec<Stopped> {
    let mut found: BTreeMap<StoppedBy, Stopped> = BTreeMap::new();
    let (mut live, mut stopped, mut last) = (0, 0, StoppedBy::Other);
    let mut since = None;
    let end = Change { at: ran.end().get(), live: 0, stopped: 0, by: None };
    for change in changes(runs).into_iter().chain([end]) {
        live += change.live;
        stopped += change.stopped;
        last = change.by.unwrap_or(last);
        let is_end = change.at >= ran.end().get();
        match since {
            None if live > 0 && live == stopped && !is_end => {
                since = Some((change.at, last));
            }
            Some((from, by)) if live != stopped || is_end => {
                since = None;
                let part = clipped(from, change.at, ran).map(|part| part.length);
                let none = Stopped { by, ns: Nanos::ZERO, count: 0 };
                let sum = found.entry(by).or_insert(none);
                sum.ns = sum.ns + part.unwrap_or_default();
                sum.count += u64::from(part.is_some());
            }
            _ => {}
        }
    }
    found.into_values().filter(|stopped| stopped.count > 0).collect()
}

/// All changes, in order.
fn changes<'a>(runs: impl Iterator<Item = &'a Record>) -> Vec<Change> {
    let mut changes = Vec::new();
    // What was last said of each thread that lives: whether it is stopped.
    let mut threads: HashMap<u32, bool> = HashMap::new();
    for run in runs {
        let at = run.start;
        match threads.insert(run.id, run.mark.stopped_by.is_some()) {
            None => changes.push(Change { at, live: 1, stopped: 0, by: None }),
            Some(true) => changes.push(Change { at, live: 0, stopped: -1, by: None }),
            Some(false) => {}
        }
        let at = run.end;
        if run.mark.is_dead {
            threads.remove(&run.id);
            changes.push(Change { at, live: -1, stopped: 0, by: None });
        } else if let by @ Some(_) = run.mark.stopped_by {
            changes.push(Change { at, live: 0, stopped: 1, by });
        }
    }
    changes.sort_by_key(|change| change.at);
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::Level;
    use crate::records::Mark;

    /// A run of a thread, in milliseconds.
    fn run(process: u32, thread: u32, from: u64, to: u64, mark: Mark) -> Record {
        Record {
            level: Level::Thread,
            start: from * 1_000_000,
            end: to * 1_000_000,
            detail: u64::from(process) << 32,
            id: thread,
            comm: [0; 16],
            mark: Mark { is_own: true, ..mark },
        }
    }

    fn by(by: StoppedBy) -> Mark {
        Mark { stopped_by: Some(by), ..Mark::default() }
    }

    const DEAD: Mark = Mark {
        is_own: true,
        is_runnable: false,
        is_kernel: false,
        is_self: false,
        is_dead: true,
        stopped_by: None,
    };

    fn outside(runs: Vec<(u32, Record)>) -> Outside {
        let mut outside = Outside::default();
        runs.into_iter().for_each(|(cpu, run)| outside.push((Cpu::new(cpu), run)));
        outside
    }

    const RAN: Span =
        Span { start: Nanos::from_millis(10), length: Nanos::from_millis(90) };

    fn stops_of(runs: Vec<Record>) -> Stops {
        let outside = outside(runs.into_iter().map(|run| (0, run)).collect());
        Life::of(&[], &outside).stops(RAN)
    }

    fn stopped(by: StoppedBy, millis: u64, count: u64) -> Stopped {
        Stopped { by, ns: Nanos::from_millis(millis), count }
    }

    /// Check that a thread is stopped from a run until the next, only during the program's time, and
    /// that each reason has its sum.
    #[test]
    fn one_thread() {
        use StoppedBy::{Debugger, Freezer, Signal};
        let found = stops_of(vec![
            run(5, 5, 0, 5, by(Signal)),
            run(5, 5, 12, 20, by(Signal)),
            run(5, 5, 50, 51, by(Debugger)),
            run(5, 5, 53, 54, Mark::default()),
            run(5, 5, 60, 61, by(Signal)),
            run(5, 5, 62, 63, by(Freezer)),
        ]);
        let all = vec![
            stopped(Signal, 33, 3),
            stopped(Debugger, 2, 1),
            stopped(Freezer, 37, 1),
        ];
        assert_eq!(found, Stops { all, part: Nanos::ZERO });
        assert_eq!(stops_of(vec![run(5, 5, 12, 99, DEAD)]), Stops::default());
    }

    /// Check that a process is stopped only while all of its living threads are, and the program while
    /// all of its processes are; the rest is reported.
    #[test]
    fn several_threads() {
        let signal = || by(StoppedBy::Signal);
        let found = stops_of(vec![
            run(5, 5, 10, 20, signal()),
            run(5, 6, 10, 30, signal()),
            run(5, 7, 10, 15, DEAD),
            run(8, 8, 10, 40, signal()),
            run(8, 8, 60, 70, DEAD),
            run(5, 6, 80, 81, Mark::default()),
            run(5, 5, 82, 90, Mark::default()),
        ]);
        // All from 40 to 60, and after the end of 8 until 80; process 5 from 30 on.
        let all = vec![stopped(StoppedBy::Signal, 20 + 10, 2)];
        assert_eq!(found, Stops { all, part: Nanos::from_millis(20) });
    }

    /// Check that the end is that of the first process's last thread, and that runs on other CPUs are
    /// added up within the program's time.
    #[test]
    fn ends_and_places() {
        let outside = outside(vec![
            (0, run(5, 5, 1, 12, Mark::default())),
            (3, run(9, 9, 20, 21, DEAD)),
            (0, run(5, 6, 30, 50, DEAD)),
            (0, run(5, 5, 31, 40, DEAD)),
        ]);
        let life = Life::of(&[], &outside);
        assert_eq!(life.end(), Some(Nanos::from_millis(50)));
        let at =
            |cpu, millis| CpuRun { cpu: Cpu::new(cpu), ns: Nanos::from_millis(millis) };
        assert_eq!(elsewhere(&outside, RAN), [at(0, 31), at(3, 1)]);
        assert_eq!(Life::of(&[], &Outside::default()).end(), None);
    }
}
