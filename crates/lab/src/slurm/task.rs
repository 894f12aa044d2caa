//! A task of an array, on a node: runs its cells one after the other, and writes their outcomes.
//!
//! A task that Slurm starts again, since its node failed, continues with the first cell that has no
//! outcome. One that is ended by a signal leaves its cell without one.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use recording::Ending;

use crate::cache::{Cache, machine_name};
use crate::cells::lab::Lab;
use crate::cells::run::{Run, Step};
use crate::error::{Error, Kind};
use crate::slurm::cell_file::CellFile;
use crate::slurm::folder::{ArrayFile, ArrayFolder};
use crate::slurm::outcome::{Ended, Outcome};

/// A task, and its array.
struct Task<'a> {
    folder: ArrayFolder,
    array: ArrayFile,
    node: String,
    stop: &'a AtomicBool,
}

/// Runs the task of that index of the array in `folder`, whose nodes and submitting process share the
/// lab's cache. `say` gets a line about each step.
///
/// # Errors
/// `Kind::Slurm` if the folder is missing or damaged; the first error of a cell, after the others have
/// run; `Kind::Interrupted`.
pub fn run_task(
    folder: &Path,
    index: usize,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    let folder = ArrayFolder::at(folder);
    let array = folder.array()?;
    let Some(files) = array.tasks.get(index).cloned() else {
        return Err(Error::NoTask(folder.as_path().to_owned(), index));
    };
    let task = Task { folder, array, node: node(), stop };
    let lab = match Cache::find().and_then(Lab::open) {
        Ok(lab) => lab,
        Err(error) => {
            for file in &files {
                task.publish(file, &Outcome::failed(task.node.clone(), &error))?;
            }
            return Err(error);
        }
    };
    let mut first = Ok(());
    for file in &files {
        match task.run(&lab, file, say) {
            Err(error) if error.kind() == Kind::Interrupted => return Err(error),
            Err(error) => {
                say(&units::chain(&error));
                task.publish(file, &Outcome::failed(task.node.clone(), &error))?;
                first = first.and(Err(error));
            }
            Ok(()) => {}
        }
    }
    first
}

impl Task<'_> {
    /// Runs one cell, unless it has a result.
    fn run(&self, lab: &Lab, file: &str, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        if self.folder.outcome(file).is_some_and(|outcome| outcome.ended.is_done()) {
            return Ok(());
        }
        let Self { array, folder, stop, .. } = self;
        let run =
            Run { jobs: 1, fresh: array.fresh, deadline: array.deadline_ns.into(), stop };
        let cell = folder.cell(file)?;
        say(&format!("{}, on node {}", cell.name, self.node));
        let ready = cell.ready(lab, folder, &run, say)?;
        let notify = |_: Step| {};
        let Some((_, ending)) = lab.ending(&ready, &run, &notify)? else {
            return Err(Error::Interrupted);
        };
        say(&described(&cell, &ending));
        let identity = ready.identity.clone();
        let ended = Ended::of(ending, ready.request.mode)?;
        self.publish(file, &Outcome { node: self.node.clone(), identity, ended })
    }

    /// Writes the outcome of a cell, unless this process is being ended: a cell that failed for that
    /// reason has no outcome.
    fn publish(&self, file: &str, outcome: &Outcome) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) && !outcome.ended.is_done() {
            return Err(Error::Interrupted);
        }
        self.folder.write_outcome(file, outcome)
    }
}

/// The end of a cell, for the task's log.
fn described(cell: &CellFile, ending: &Ending) -> String {
    match ending {
        Ending::Done(_) => format!("{}: done", cell.name),
        Ending::Lost { why, .. } => format!("{}: lost: {why}", cell.name),
    }
}

/// The name of this node in Slurm, else in the kernel.
fn node() -> String {
    std::env::var("SLURMD_NODENAME").unwrap_or_else(|_| machine_name())
}
