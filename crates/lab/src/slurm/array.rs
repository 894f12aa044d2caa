//! The job array of cells: its files, its submission, and what is collected from it.
//!
//! A lock lets one process at a time submit an array of the same cells. The job of a process that was
//! killed goes on: it is found by its name, and waited for, before anything is submitted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use experiments::CellPlan;
use itertools::Itertools;
use kernels::BuildSpec;
use recording::{Ending, Mode};

use crate::cells::cell::Ready;
use crate::cells::lab::Lab;
use crate::cells::results::{completed, is_cacheable};
use crate::cells::run::{CellObserver, Run};
use crate::cells::scheduler::Results;
use crate::error::Error;
use crate::slurm::Slurm;
use crate::slurm::cell_file::CellFile;
use crate::slurm::client::{Client, Which};
use crate::slurm::folder::{ArrayFile, ArrayFolder};
use crate::slurm::outcome::Outcome;
use crate::slurm::queue::ArrayTask;
use crate::slurm::script::{Script, environment};

/// A cell that runs on a node.
#[derive(Clone)]
pub(crate) struct SlurmCell<'a> {
    /// Its index among all cells.
    pub(crate) index: usize,
    pub(crate) plan: &'a CellPlan,
    pub(crate) ready: &'a Ready,
    /// The name of its files in the array's folder.
    pub(crate) file: String,
}

/// The array of the cells of one mode.
pub(crate) struct Array<'a> {
    pub(crate) lab: &'a Lab,
    slurm: &'a Slurm,
    pub(crate) run: Run<'a>,
    /// The name of its job and of its folder.
    pub(crate) name: &'a str,
    mode: Mode,
    cells: Vec<SlurmCell<'a>>,
}

/// A submitted array.
pub(crate) struct Job<'a> {
    pub(crate) number: u64,
    pub(crate) folder: ArrayFolder,
    /// The cells of each task that have no result yet.
    pub(crate) waiting: BTreeMap<usize, Vec<SlurmCell<'a>>>,
    /// The tasks that failed, or lost a cell.
    pub(crate) failed: BTreeSet<usize>,
}

impl SlurmCell<'_> {
    /// Its name and its kernel's.
    pub(crate) fn name(&self) -> String {
        let kernel = BuildSpec::label_of(&self.plan.kernel);
        let kernel = kernel.as_ref().unwrap_or(&self.plan.kernel);
        format!("{} on {kernel}", self.plan.name)
    }
}

impl<'a> Array<'a> {
    /// That of these cells, of which none is run here.
    pub(crate) fn new(
        lab: &'a Lab,
        slurm: &'a Slurm,
        run: Run<'a>,
        name: &'a str,
        mode: Mode,
        mut cells: Vec<SlurmCell<'a>>,
    ) -> Self {
        // Equal cells, as two rows may make them, have files of their own.
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for cell in &mut cells {
            let count = seen.entry(cell.file.clone()).or_default();
            *count += 1;
            if *count > 1 {
                cell.file += &format!("+{count}");
            }
        }
        Self { lab, slurm, run, name, mode, cells }
    }

    /// Runs the cells without a result as a job, and waits for its end. On a signal, the job is
    /// cancelled.
    pub(crate) fn run(
        &self,
        results: &mut Results,
        observer: &mut dyn CellObserver,
    ) -> Result<(), Error> {
        let cache = &self.lab.cache.folder;
        let mut waits =
            || observer.say("waiting for another noisefloor that runs this on Slurm");
        let lock = ArrayFolder::lock(cache, self.name, self.run.stop, &mut waits)?;
        let Some(_lock) = lock else { return Ok(()) };
        let folder = ArrayFolder::create(cache, self.name)?;
        self.await_earlier(results, observer)?;
        if self.run.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let missing = self.take_stored(&folder, results, observer)?;
        if missing.is_empty() {
            folder.clean(&BTreeSet::new());
            return Ok(());
        }
        let mut job = match self.submit(&folder, missing, observer) {
            Err(Error::Interrupted) => return self.cancel(observer),
            Err(error) => {
                folder.remove_inputs();
                return Err(error);
            }
            Ok(job) => job,
        };
        self.watch(&mut job, results, observer)?;
        match self.run.stop.load(Ordering::Relaxed) {
            true => self.cancel(observer),
            false => {
                // A task whose node was only unreachable has ended, and Slurm would start it again.
                let waiting = self.client().cancel_waiting(self.name);
                job.folder.clean(&job.failed);
                waiting.or(Ok(())) // such a task finds no array, and ends
            }
        }
    }

    /// The commands of Slurm.
    pub(crate) fn client(&self) -> Client<'a> {
        Client { stop: self.run.stop }
    }

    /// Reports cells that have a result: in the cache, or as the outcome of an interrupted run. Returns
    /// the others, and removes their outcomes.
    fn take_stored(
        &self,
        folder: &ArrayFolder,
        results: &mut Results,
        observer: &mut dyn CellObserver,
    ) -> Result<Vec<SlurmCell<'a>>, Error> {
        let has_outcome = folder.outcomes();
        let mut missing = Vec::new();
        for cell in &self.cells {
            if let Some((cached, ending)) = self.stored(folder, cell, &has_outcome) {
                let cell_done = completed(cell.plan, cell.ready, cached, ending);
                results.ended(cell.index, Ok(Some(cell_done)), observer);
                observer.progress(results.progress());
                continue;
            }
            if has_outcome.contains(&cell.file) {
                folder.remove_outcome(&cell.file)?;
            }
            missing.push(cell.clone());
        }
        Ok(missing)
    }

    /// Whether the result of a cell is from the cache, and the result, if it has one.
    fn stored(
        &self,
        folder: &ArrayFolder,
        cell: &SlurmCell<'_>,
        has_outcome: &BTreeSet<String>,
    ) -> Option<(bool, Ending)> {
        if self.run.fresh {
            return None;
        }
        if is_cacheable(cell.ready) {
            let answer = self.lab.cached_answer(cell.ready)?;
            return Some((true, Ending::Done(Box::new(answer))));
        }
        let outcome =
            has_outcome.contains(&cell.file).then(|| folder.outcome(&cell.file));
        let outcome = outcome.flatten().filter(|outcome| outcome.ended.is_done())?;
        Some((false, outcome.ending(cell.ready, self.lab, folder.log(0))?))
    }

    /// Writes the files of an array of these cells, and submits it.
    fn submit(
        &self,
        folder: &ArrayFolder,
        cells: Vec<SlurmCell<'a>>,
        observer: &mut dyn CellObserver,
    ) -> Result<Job<'a>, Error> {
        folder.clear_logs()?;
        for cell in &cells {
            let file = CellFile::new(cell.name(), cell.ready, self.lab, folder)?;
            folder.write_cell(&cell.file, &file)?;
        }
        let memory_mib = cells.iter().map(|cell| memory_mib(cell.ready)).max();
        let (each, _) = self.slurm.chunks(cells.len());
        let tasks: Vec<Vec<SlurmCell<'a>>> =
            cells.chunks(each).map(<[SlurmCell<'a>]>::to_vec).collect();
        let script = Script {
            slurm: self.slurm,
            name: self.name.to_owned(),
            tasks: tasks.len(),
            mode: self.mode,
            memory_mib: memory_mib.unwrap_or_default(),
            environment: environment(&self.lab.cache.folder),
            folder: folder.as_path().to_owned(),
        };
        let files = |cells: &Vec<SlurmCell<'_>>| {
            cells.iter().map(|cell| cell.file.clone()).collect_vec()
        };
        let array = ArrayFile {
            tasks: tasks.iter().map(files).collect(),
            fresh: self.run.fresh,
            deadline_ns: self.run.deadline.into(),
        };
        let text = script.text()?;
        folder.write_array(&array, &text)?;
        let number = self.client().submit(&script, &text, folder.as_path())?;
        observer
            .say(&format!("submitted job {number} to Slurm: {}", tasks_of(tasks.len())));
        let waiting = tasks.into_iter().enumerate().collect();
        let folder = folder.clone();
        Ok(Job { number, folder, waiting, failed: BTreeSet::new() })
    }

    /// Reports the cells with an outcome.
    pub(crate) fn collect(
        &self,
        job: &mut Job<'a>,
        results: &mut Results,
        observer: &mut dyn CellObserver,
    ) {
        let has_outcome = job.folder.outcomes();
        let Job { folder, waiting, failed, .. } = job;
        for (task, cells) in waiting.iter_mut() {
            cells.retain(|cell| {
                let outcome =
                    has_outcome.contains(&cell.file).then(|| folder.outcome(&cell.file));
                let Some(outcome) = outcome.flatten() else { return true };
                let ended = self.ended(cell, outcome, folder, *task);
                if matches!(ended.ending, Ending::Lost { .. }) {
                    failed.insert(*task);
                }
                results.ended(cell.index, Ok(Some(ended)), observer);
                false
            });
        }
        waiting.retain(|_, cells| !cells.is_empty());
    }

    /// A cell with its outcome.
    fn ended(
        &self,
        cell: &SlurmCell<'_>,
        outcome: Outcome,
        folder: &ArrayFolder,
        task: usize,
    ) -> recording::Cell {
        let (log, identity) = (folder.log(task), outcome.identity.clone());
        let ending = outcome.ending(cell.ready, self.lab, log.clone());
        let why = "its result is no longer in the cache".to_owned();
        let ending = ending.unwrap_or(Ending::Lost { why, console: log });
        let ended = completed(cell.plan, cell.ready, false, ending);
        match identity.is_empty() {
            true => ended,
            false => recording::Cell { identity, ..ended },
        }
    }

    /// Cancels the job, and says what is left.
    pub(crate) fn cancel(&self, observer: &mut dyn CellObserver) -> Result<(), Error> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Client { stop: &NEVER }.cancel(self.name)?;
        observer.say("the jobs are cancelled; the same command continues with the cells that are missing");
        Ok(())
    }

    /// The tasks of its jobs that wait or run.
    pub(crate) fn live(&self) -> Result<Vec<ArrayTask>, Error> {
        let mut tasks = self.client().tasks(self.name, Which::Live)?;
        tasks.retain(ArrayTask::is_live);
        Ok(tasks)
    }
}

/// The memory of a guest, and of the archive of its files in this program and in QEMU, in MiB.
fn memory_mib(ready: &Ready) -> u32 {
    let archive = ready.packed.as_ref().map_or(0, |packed| packed.archive.len());
    let archive_mib = u32::try_from(archive.div_ceil(1 << 20)).unwrap_or(u32::MAX);
    ready.request.machine.memory_mib.saturating_add(archive_mib.saturating_mul(2))
}

/// A number of tasks, in words.
pub(crate) fn tasks_of(count: usize) -> String {
    format!("{count} task{}", if count == 1 { "" } else { "s" })
}
