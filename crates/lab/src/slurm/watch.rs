//! Waiting for a job array: its outcomes are looked for each second, and its tasks are asked for
//! rarely, since squeue is work for Slurm's controller.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use recording::Ending;

use crate::cells::results::completed;
use crate::cells::run::CellObserver;
use crate::cells::scheduler::Results;
use crate::error::Error;
use crate::last_line::last_line;
use crate::slurm::array::{Array, Job, tasks_of};
use crate::slurm::client::Which;
use crate::slurm::folder::ArrayFolder;
use crate::slurm::queue::{self, ArrayTask};

/// How often outcomes are looked for, and how often a signal.
const LOOK: Duration = Duration::from_secs(1);
const NAP: Duration = Duration::from_millis(100);
/// The first and the longest interval of squeue.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(15);
/// How long a shared file system may take to show the outcome of a task that has ended.
const SHOWN: Duration = Duration::from_secs(5);
/// Why tasks wait in any queue.
const USUAL: [&str; 4] = ["None", "Resources", "Priority", "BeginTime"];

/// What is known of the tasks.
struct Watch {
    next: Instant,
    interval: Duration,
    /// Since when there are no tasks that wait or run.
    gone: Option<Instant>,
    /// The tasks that were on a node when they were last asked for.
    running: BTreeSet<usize>,
    reported: BTreeSet<String>,
}

impl Watch {
    fn new() -> Self {
        let (next, gone) = (Instant::now() + FIRST, None);
        let (running, reported) = (BTreeSet::new(), BTreeSet::new());
        Self { next, interval: FIRST, gone, running, reported }
    }

    /// Whether it is time to ask for the tasks.
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = now >= self.next;
        if is_due {
            self.interval = (self.interval * 2).min(LONGEST);
            self.next = now + self.interval;
        }
        is_due
    }

    /// Says something once.
    fn say(&mut self, text: String, observer: &mut dyn CellObserver) {
        if !self.reported.contains(&text) {
            observer.say(&text);
            self.reported.insert(text);
        }
    }
}

impl<'a> Array<'a> {
    /// Waits until all cells of a job have a result, or its tasks have ended, or a signal.
    pub(crate) fn watch(
        &self,
        job: &mut Job<'a>,
        results: &mut Results,
        observer: &mut dyn CellObserver,
    ) -> Result<(), Error> {
        let mut watch = Watch::new();
        while !self.run.stop.load(Ordering::Relaxed) {
            self.collect(job, results, observer);
            observer.progress(results.progress());
            if job.waiting.is_empty() {
                return Ok(());
            }
            if watch.gone.is_some_and(|since| since.elapsed() >= SHOWN) {
                return self.give_up(job, results, observer);
            }
            if watch.is_due() {
                self.ask(job, &mut watch, results, observer);
            }
            self.sleep();
        }
        self.collect(job, results, observer);
        Ok(())
    }

    /// Asks for the tasks of a job, and reports what has changed.
    fn ask(
        &self,
        job: &Job<'a>,
        watch: &mut Watch,
        results: &mut Results,
        observer: &mut dyn CellObserver,
    ) {
        let tasks = match self.live() {
            Ok(tasks) => queue::states(tasks, job.number),
            Err(Error::Interrupted) => return,
            Err(error) => {
                // The controller may be started again; the job goes on without it.
                watch.say(format!("{}; waiting", units::chain(&error)), observer);
                return;
            }
        };
        match tasks.is_empty() {
            true => drop(watch.gone.get_or_insert_with(Instant::now)),
            false => watch.gone = None,
        }
        for (index, task) in tasks {
            let Some(cell) = job.waiting.get(&index).and_then(|cells| cells.first())
            else {
                continue;
            };
            let was_running = watch.running.contains(&index);
            match (was_running, task.is_running()) {
                (false, true) => {
                    watch.running.insert(index);
                    results.boots(cell.index);
                }
                (true, false) => {
                    watch.running.remove(&index);
                    results.ended(cell.index, Ok(None), observer);
                    observer.say(&requeued(&cell.name()));
                }
                (true, true) => {}
                (false, false) if USUAL.contains(&task.reason.as_str()) => {}
                (false, false) => {
                    let text = format!("tasks wait: {}", task.reason);
                    watch.say(text, observer);
                }
            }
        }
    }

    /// Reports cells whose tasks have ended without an outcome.
    fn give_up(
        &self,
        job: &mut Job<'a>,
        results: &mut Results,
        observer: &mut dyn CellObserver,
    ) -> Result<(), Error> {
        let tasks = match self.client().tasks(self.name, Which::All) {
            Ok(tasks) => queue::states(tasks, job.number),
            Err(Error::Interrupted) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut cancelled = 0;
        for (task, cells) in std::mem::take(&mut job.waiting) {
            job.failed.insert(task);
            let state = tasks.get(&task);
            let log = job.folder.log(task);
            for cell in cells {
                if state.is_some_and(ArrayTask::is_cancelled) {
                    cancelled += 1;
                    results.ended(cell.index, Ok(None), observer);
                    continue;
                }
                let why = without_result(state, &job.folder, task);
                let ending = Ending::Lost { why, console: log.clone() };
                let lost = completed(cell.plan, cell.ready, false, ending);
                results.ended(cell.index, Ok(Some(lost)), observer);
            }
        }
        if cancelled > 0 {
            observer
                .say(&format!("tasks were cancelled: {cancelled} cells have no result"));
        }
        Ok(())
    }

    /// Waits for the jobs of a process that was killed, until a signal.
    pub(crate) fn await_earlier(
        &self,
        results: &Results,
        observer: &mut dyn CellObserver,
    ) -> Result<(), Error> {
        let mut watch = Watch::new();
        let mut tasks = self.live()?;
        if let Some(task) = tasks.first() {
            let (job, tasks) = (task.job, tasks_of(tasks.len()));
            observer.say(&format!(
                "job {job} of an interrupted run goes on: waiting for the end of {tasks}"
            ));
        }
        while !tasks.is_empty() {
            while !watch.is_due() {
                observer.progress(results.progress());
                self.sleep();
                if self.run.stop.load(Ordering::Relaxed) {
                    return self.cancel(observer);
                }
            }
            tasks = self.live()?;
        }
        Ok(())
    }

    /// Sleeps for a moment, or until a signal.
    fn sleep(&self) {
        let until = Instant::now() + LOOK;
        while Instant::now() < until && !self.run.stop.load(Ordering::Relaxed) {
            thread::sleep(NAP);
        }
    }
}

/// The message about a task that has left its node without an outcome.
fn requeued(cell: &str) -> String {
    format!(
        "{cell}: its node failed, or its task was requeued; Slurm starts it again, by default after two \
         minutes"
    )
}

/// Why a cell is lost whose task has ended.
fn without_result(
    state: Option<&ArrayTask>,
    folder: &ArrayFolder,
    task: usize,
) -> String {
    let state = state.map_or("unknown", |task| task.state.as_str());
    let log = std::fs::read_to_string(folder.log(task)).unwrap_or_default();
    let end = match last_line(&log) {
        Some(line) => format!("the last line of its output: {line}"),
        None => "it wrote nothing".to_owned(),
    };
    format!("its task ended without a result (state {state}); {end}")
}
