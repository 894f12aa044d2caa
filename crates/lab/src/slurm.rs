//! Cells as job arrays of Slurm: each task of an array runs one cell, or a few, on a node that Slurm
//! chooses.
//!
//! The submitting process finds the kernels and packs the programs, once. For each cell without a
//! result it writes a file with everything that the cell's guest depends on (`cell_file`) into a
//! folder of the lab's cache (`folder`), which all nodes must share, and submits a script (`script`)
//! that starts this program on a node (`task`). There the cell is run as here, its result is stored in
//! the cache, and its outcome in the folder (`outcome`). The submitting process (`array`, `watch`)
//! collects the outcomes, and reports the cells as if it had run them.
//!
//! Source: sbatch(1), squeue(1), scancel(1), scontrol(1) of Slurm 22.05. Slurm has no accounting by
//! default, so that nothing here asks sacct(1). Cannot see: whether nodes share the cache, until a
//! task runs.

mod array;
mod cell_file;
mod client;
mod folder;
mod outcome;
mod queue;
mod script;
mod task;
mod watch;
mod workers;

use std::env;
use std::path::{self, PathBuf};
use std::sync::atomic::AtomicBool;

use experiments::CellPlan;
use kernels::checksum;
use recording::{Cell, Mode};

use crate::cache::Cache;
use crate::cells::lab::Lab;
use crate::cells::run::{CellObserver, Run};
use crate::error::Error;
use crate::slurm::client::Client;
use crate::slurm::folder::ArrayFolder;
use crate::slurm::script::{Script, environment};
use crate::slurm::workers::SlurmWorkers;
pub use task::run_task;

/// The most tasks of an array, if Slurm's configuration is not known: its default.
const TASKS_MAX: usize = 1001;

/// How cells are run on Slurm.
#[derive(Debug, Clone)]
pub struct Slurm {
    /// The partition; `None`: Slurm's default.
    pub partition: Option<String>,
    /// The most tasks that run at the same time; `None`: no limit but Slurm's.
    pub at_once: Option<usize>,
    /// This program, by a path that is the same on all nodes.
    program: PathBuf,
    /// The most tasks of an array.
    tasks_max: usize,
}

impl Slurm {
    /// The Slurm of this machine.
    ///
    /// # Errors
    /// `Kind::Slurm` if there is none, or it does not answer; `Kind::Interrupted`.
    pub fn connect(stop: &AtomicBool) -> Result<Self, Error> {
        let tasks_max = Client { stop }.tasks_max()?;
        Ok(Self { tasks_max, ..Self::unconnected()? })
    }

    /// The same with the usual limits, if there is none here.
    ///
    /// # Errors
    /// The path of this program is not known.
    pub fn unconnected() -> Result<Self, Error> {
        let program = env::current_exe().map_err(Error::NoProgramPath)?;
        Ok(Self { partition: None, at_once: None, program, tasks_max: TASKS_MAX })
    }

    /// The scripts that would be submitted for these plans, one for each mode, if no result is cached.
    /// Nothing is created or submitted.
    ///
    /// # Errors
    /// `Kind::Slurm` if a path cannot be part of a script; `Error::NoCache`.
    pub fn scripts(
        &self,
        experiment: &str,
        plans: &[CellPlan],
    ) -> Result<Vec<String>, Error> {
        let cache = Cache::path()?;
        let cache = path::absolute(&cache).unwrap_or(cache);
        let of_mode = |mode| {
            let plans = plans.iter().filter(move |plan| plan.mode == mode);
            let count: usize = plans.clone().map(|plan| runs(plan) as usize).sum();
            let memory_mib = plans.map(|plan| plan.machine.memory_mib).max()?;
            Some((mode, count, memory_mib))
        };
        let modes = [Mode::Exact, Mode::Timed].into_iter().filter_map(of_mode);
        let script = |(mode, cells, memory_mib)| {
            let name = name(experiment, plans, mode);
            let folder = ArrayFolder::path(&cache, &name);
            let tasks = self.chunks(cells).1;
            let environment = environment(&cache);
            Script { slurm: self, name, tasks, mode, memory_mib, environment, folder }
                .text()
        };
        modes.map(script).collect()
    }

    /// How many of that many cells each task runs, and how many tasks there are.
    fn chunks(&self, cells: usize) -> (usize, usize) {
        let each = cells.div_ceil(self.tasks_max.max(1)).max(1);
        (each, cells.div_ceil(each))
    }
}

/// How many runs a plan begins with.
fn runs(plan: &CellPlan) -> u32 {
    if plan.repeat > 1 { 1 } else { plan.variations.first() }
}

/// The name of an array: the same for the same plans, so that a later process finds the array of one
/// that was killed. Another version of this program may give another name; then it finds none.
fn name(experiment: &str, plans: &[CellPlan], mode: Mode) -> String {
    const LENGTH: usize = 32;
    let mode_name = match mode {
        Mode::Exact => "exact",
        Mode::Timed => "timed",
    };
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    let plain: String = experiment.chars().filter(is_plain).take(LENGTH).collect();
    let hash = checksum(format!("{experiment} {plans:?}").as_bytes());
    format!("noisefloor-{plain}-{mode_name}-{}", &hash[..12])
}

impl Lab {
    /// Runs all plans of an experiment as job arrays of Slurm, or takes their results from the cache. If
    /// it is stopped early, the jobs are cancelled, and these are the cells that were complete.
    ///
    /// # Errors
    /// As [`Self::run`], and `Kind::Slurm`.
    pub fn run_on_slurm(
        &self,
        slurm: &Slurm,
        experiment: &str,
        plans: &[CellPlan],
        run: Run<'_>,
        observer: &mut dyn CellObserver,
    ) -> Result<Vec<Cell>, Error> {
        let name = |mode| name(experiment, plans, mode);
        let workers =
            SlurmWorkers { slurm, exact: name(Mode::Exact), timed: name(Mode::Timed) };
        self.run_with(&workers, plans, run, observer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slurm(tasks_max: usize) -> Slurm {
        let program = "/noisefloor".into();
        Slurm { partition: None, at_once: None, program, tasks_max }
    }

    /// Check that each cell has a task of its own if Slurm allows so many, and that otherwise tasks have
    /// as few cells as possible.
    #[test]
    fn cells_of_tasks() {
        assert_eq!(slurm(1001).chunks(24), (1, 24));
        assert_eq!(slurm(1001).chunks(1001), (1, 1001));
        assert_eq!(slurm(1001).chunks(1002), (2, 501));
        assert_eq!(slurm(2).chunks(5), (3, 2));
    }

    /// Check that there is a script for each mode, with a task for each variation, and that another
    /// experiment has another name, in which no character needs quotes.
    #[test]
    fn scripts_of_modes() {
        let plan = |mode| crate::guest::request::plan(mode, 1);
        let plans = [plan(Mode::Exact), plan(Mode::Timed), plan(Mode::Timed)];
        let scripts = slurm(1001).scripts("x'; $(y)", &plans).unwrap();
        assert_eq!(scripts.len(), 2);
        assert!(scripts[0].contains("--array=0-0\n"), "{}", scripts[0]);
        assert!(scripts[1].contains("--array=0-1\n"), "{}", scripts[1]);
        assert!(scripts[0].contains("--job-name=noisefloor-xy-exact-"), "{}", scripts[0]);
        let other = slurm(1001).scripts("y", &plans).unwrap();
        assert_ne!(name("x", &plans, Mode::Exact), name("y", &plans, Mode::Exact));
        assert_ne!(scripts, other);
    }
}
