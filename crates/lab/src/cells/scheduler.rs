//! Runs cells in parallel and reports their progress: first one cell of each kernel, then the
//! others in the order of the plans.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use experiments::CellPlan;
use recording::{Cell, Code, Doubt, Ending, Mode};

use crate::cells::lab::Lab;
use crate::cells::prepare::{Engines, Preparation, Prepared};
use crate::cells::progress::{Progress, Tracker};
use crate::cells::run::{CellObserver, Run, Step};
use crate::cells::variations::{self, Planned};
use crate::error::Error;

/// The interval of progress reports while no cell starts or ends.
const INTERVAL: Duration = Duration::from_secs(1);

/// A worker's event for the cell at an index.
enum Event {
    Step(usize, Step),
    Ended(usize, Box<Result<Option<Cell>, Error>>),
}

/// What runs prepared cells.
pub(crate) trait Workers {
    /// Where the guests boot.
    fn engines(&self) -> Engines;

    /// The results of cells, each at its index; `None` for a cell that has none because it was ended
    /// early.
    ///
    /// # Errors
    /// Those after which no further cell can be run.
    fn work(
        &self,
        lab: &Lab,
        prepared: &[Prepared],
        run: Run<'_>,
        observer: &mut dyn CellObserver,
    ) -> Result<Vec<Option<Cell>>, Error>;
}

/// Threads of this process.
struct Threads;

impl Lab {
    /// Runs all plans, or takes their results from the cache. If it is stopped early, these are the
    /// cells that were complete.
    ///
    /// # Errors
    /// Those of finding kernels, if none is available, and of the cache; a cell without a kernel is
    /// lost, and so is one without a result.
    pub fn run(
        &self,
        plans: &[CellPlan],
        run: Run<'_>,
        observer: &mut dyn CellObserver,
    ) -> Result<Vec<Cell>, Error> {
        self.run_with(&Threads, plans, run, observer)
    }

    /// The same with other workers.
    pub(crate) fn run_with(
        &self,
        workers: &dyn Workers,
        plans: &[CellPlan],
        run: Run<'_>,
        observer: &mut dyn CellObserver,
    ) -> Result<Vec<Cell>, Error> {
        let mut say = |text: &str| observer.say(text);
        let Preparation { prepared, remarks } =
            self.prepare(plans, &run, workers.engines(), &mut say)?;
        remarks.iter().for_each(|remark| observer.remark(remark));
        let mut cells = vec![None; prepared.len()];
        let mut work = |planned: Vec<Planned>, cells: &mut [Option<Cell>]| {
            let (owners, prepared): (Vec<usize>, Vec<Prepared>) =
                planned.into_iter().unzip();
            let done = workers.work(self, &prepared, run, &mut *observer)?;
            add_variations(cells, &owners, &prepared, done);
            Ok::<(), Error>(())
        };
        work(variations::of_all(&prepared, self)?, &mut cells)?;
        if !run.stop.load(Ordering::Relaxed) {
            work(variations::further(&prepared, &cells, self)?, &mut cells)?;
        }
        if cells.iter().all(Option::is_none) && !cells.is_empty() {
            return Err(Error::Interrupted);
        }
        let mut cells: Vec<Cell> = cells.into_iter().flatten().collect();
        cells.iter_mut().for_each(variations::doubt);
        doubt_repeats(&mut cells);
        Ok(cells)
    }

    /// Runs one cell after the other, until there are none or it is stopped.
    fn work_through(
        &self,
        prepared: &[Prepared],
        take: impl Fn() -> Option<usize>,
        run: Run<'_>,
        events: &Sender<Event>,
    ) {
        while !run.stop.load(Ordering::Relaxed) {
            let Some(index) = take() else { return };
            let cell = &prepared[index];
            // The receiver exists until all workers have ended.
            let notify = |step| drop(events.send(Event::Step(index, step)));
            let cell = Box::new(self.cell(cell, &run, &notify));
            let _ = events.send(Event::Ended(index, cell));
        }
    }
}

impl Workers for Threads {
    fn engines(&self) -> Engines {
        Engines::OfThisMachine
    }

    fn work(
        &self,
        lab: &Lab,
        prepared: &[Prepared],
        run: Run<'_>,
        observer: &mut dyn CellObserver,
    ) -> Result<Vec<Option<Cell>>, Error> {
        let order = order(prepared);
        let next = AtomicUsize::new(0);
        let mut results = Results::new(prepared.len(), run.jobs);
        thread::scope(|scope| {
            let (events, received) = channel();
            for _ in 0..run.jobs.clamp(1, prepared.len().max(1)) {
                let (events, next, order) = (events.clone(), &next, order.as_slice());
                scope.spawn(move || {
                    let take =
                        || order.get(next.fetch_add(1, Ordering::Relaxed)).copied();
                    lab.work_through(prepared, take, run, &events);
                });
            }
            drop(events);
            results.receive(&received, &next, observer);
        });
        results.cells()
    }
}

/// Adds the results of variations to their cells; `owners` has the cells' indices.
fn add_variations(
    cells: &mut [Option<Cell>],
    owners: &[usize],
    prepared: &[Prepared],
    done: Vec<Option<Cell>>,
) {
    for ((owner, prepared), cell) in owners.iter().zip(prepared).zip(done) {
        if let (Some(cell), Some(owner)) = (cell, cells.get_mut(*owner)) {
            variations::add(owner, prepared.variation, cell);
        }
    }
}

/// The indices of cells in the order in which they are run.
pub(crate) fn order(prepared: &[Prepared]) -> Vec<usize> {
    by_kernel(prepared.iter().map(|prepared| &prepared.plan.kernel))
}

/// The same by their kernels. The first cell of a kernel may have to boot it for its symbols, for
/// which the kernel's other cells wait: such boots of several kernels run in parallel.
fn by_kernel<'a>(kernels: impl Iterator<Item = &'a String>) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let (mut first, others): (Vec<_>, Vec<_>) =
        kernels.enumerate().partition(|(_, kernel)| seen.insert(*kernel));
    first.extend(others);
    first.into_iter().map(|(index, _)| index).collect()
}

/// The cells so far.
pub(crate) struct Results {
    cells: Vec<Option<Cell>>,
    failed: Option<Error>,
    tracker: Tracker,
    reported: BTreeSet<String>,
}

impl Results {
    /// Those of that many cells, of which `jobs` run in parallel.
    pub(crate) fn new(cells: usize, jobs: usize) -> Self {
        Self {
            cells: (0..cells).map(|_| None).collect(),
            failed: None,
            tracker: Tracker::new(cells, jobs),
            reported: BTreeSet::new(),
        }
    }

    /// Receives the workers' events until all have ended; after a failure no further cell is
    /// started.
    fn receive(
        &mut self,
        received: &Receiver<Event>,
        next: &AtomicUsize,
        observer: &mut dyn CellObserver,
    ) {
        loop {
            match received.recv_timeout(INTERVAL) {
                Ok(Event::Step(index, step)) => self.step(index, step, observer),
                Ok(Event::Ended(index, cell)) => self.ended(index, *cell, observer),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.failed.is_some() {
                next.store(self.cells.len(), Ordering::Relaxed);
            }
            observer.progress(self.progress());
        }
    }

    /// Reports a step that concerns several cells once.
    fn step(&mut self, index: usize, step: Step, observer: &mut dyn CellObserver) {
        let text = match step {
            Step::Boots => return self.boots(index),
            Step::Waits => "waiting for another process that runs this cell".to_owned(),
            Step::ReadsSymbols(release) => {
                format!("reading the symbols of {release}, once per kernel")
            }
        };
        if self.reported.insert(text.clone()) {
            observer.say(&text);
        }
    }

    /// A cell boots.
    pub(crate) fn boots(&mut self, index: usize) {
        self.tracker.boots(index);
    }

    /// A cell has ended; `None` if it was ended early.
    pub(crate) fn ended(
        &mut self,
        index: usize,
        cell: Result<Option<Cell>, Error>,
        observer: &mut dyn CellObserver,
    ) {
        let cell = cell.unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            None
        });
        if let Some(cell) = &cell {
            observer.ended(cell);
        }
        self.tracker.ended(index, cell.as_ref());
        self.cells[index] = cell;
    }

    pub(crate) fn progress(&self) -> Progress {
        self.tracker.progress()
    }

    /// The cells that have ended, each at its index.
    pub(crate) fn cells(self) -> Result<Vec<Option<Cell>>, Error> {
        self.failed.map_or(Ok(self.cells), Err)
    }
}

/// Adds a doubt to exact cells whose repeats do not all agree. Repeats come after the first.
fn doubt_repeats(cells: &mut [Cell]) {
    for index in 0..cells.len() {
        let (before, rest) = cells.split_at_mut(index);
        let Some(cell) = rest.first_mut().filter(|cell| cell.mode == Mode::Exact) else {
            continue;
        };
        let is_first =
            |first: &&Cell| first.repeat == 1 && first.identity == cell.identity;
        let Some(first) = before.iter().find(is_first) else { continue };
        if let (Ending::Done(answer), Ending::Done(before)) =
            (&mut cell.ending, &first.ending)
        {
            let same = answer.recording.body == before.recording.body
                && answer.counts == before.counts
                && answer.profile == before.profile;
            if !same {
                let repeat = cell.repeat;
                let text = format!("repeat {repeat} had another result than the first");
                answer.recording.doubts.push(Doubt::new(Code::NotRepeated, text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Recorder {
        reported: Vec<String>,
        running: usize,
    }

    impl CellObserver for Recorder {
        fn remark(&mut self, _: &str) {}

        fn say(&mut self, text: &str) {
            self.reported.push(text.to_owned());
        }

        fn ended(&mut self, _: &Cell) {}

        fn progress(&mut self, progress: Progress) {
            self.running = self.running.max(progress.running);
        }
    }

    /// The reports of an observer for those events, and the result.
    fn receive(
        events: impl IntoIterator<Item = Event>,
    ) -> (Recorder, Result<Vec<Option<Cell>>, Error>) {
        let (send, received) = channel();
        events.into_iter().for_each(|event| send.send(event).unwrap());
        drop(send);
        let (mut results, next) = (Results::new(3, 1), AtomicUsize::new(1));
        let mut observer = Recorder::default();
        results.receive(&received, &next, &mut observer);
        let stopped = next.into_inner() == 3;
        assert_eq!(stopped, results.failed.is_some());
        (observer, results.cells())
    }

    /// Check that each kernel's first cell comes before the others, and each cell once.
    #[test]
    fn kernels_come_first() {
        let kernels = ["a", "a", "b", "a", "c", "b"].map(str::to_owned);
        assert_eq!(by_kernel(kernels.iter()), [0, 2, 4, 1, 3, 5]);
    }

    /// Check that slow steps are reported once per kernel and once for all waiting, and that
    /// only a cell that boots is running.
    #[test]
    fn reports_slow_steps_once() {
        let reads = |index, release: &str| {
            Event::Step(index, Step::ReadsSymbols(release.to_owned()))
        };
        let waits = |index| Event::Step(index, Step::Waits);
        let (received, _) =
            receive([reads(0, "a"), reads(1, "a"), reads(2, "b"), waits(0), waits(1)]);
        let reading =
            |release| format!("reading the symbols of {release}, once per kernel");
        let waiting = "waiting for another process that runs this cell".to_owned();
        assert_eq!(received.reported, [reading("a"), reading("b"), waiting]);
        assert_eq!(received.running, 0);
        assert_eq!(receive([Event::Step(0, Step::Boots)]).0.running, 1);
    }

    /// Check that the first failure is the one that is returned, and stops the others.
    #[test]
    fn first_failure() {
        let failed =
            |text: &str| Event::Ended(0, Box::new(Err(Error::Guest(text.to_owned()))));
        let (_, cells) = receive([failed("one"), failed("two")]);
        assert_eq!(cells.unwrap_err().to_string(), "the guest failed: one");
        let (_, cells) = receive([Event::Ended(0, Box::new(Ok(None)))]);
        assert_eq!(cells.unwrap(), [None, None, None]);
    }
}
