//! `noisefloor lab run --slurm`: the cells of an experiment as job arrays of Slurm; and `lab task`, which
//! the script of an array starts on a node.

use ::lab::{Lab, Run, Slurm, run_task};
use experiments::Experiment;
use recording::Cell;

use crate::args::Output;
use crate::lab::args::{How, RunArgs, TaskArgs};
use crate::lab::watcher::Watcher;
use crate::outcome::{Failure, Outcome};
use crate::printing::{print_content, say};
use crate::terminal::stop_flag;

/// The Slurm that runs the cells, if that is requested. It is asked before anything is prepared.
pub(super) fn find(args: &RunArgs) -> Result<Option<Slurm>, Failure> {
    if !args.slurm.slurm {
        return Ok(None);
    }
    Ok(Some(with_options(Slurm::connect(&*stop_flag()?)?, args)))
}

/// The same with the options of a command.
fn with_options(mut slurm: Slurm, args: &RunArgs) -> Slurm {
    slurm.partition.clone_from(&args.slurm.partition);
    slurm.at_once = args.how.jobs.map(usize::from);
    slurm
}

/// Prints the scripts that would be submitted. Without a Slurm here, arrays have the usual limit.
pub(super) fn print_scripts(
    experiment: &Experiment,
    args: &RunArgs,
    output: Output,
) -> Result<Outcome, Failure> {
    if output.json || args.markdown {
        return Err(Failure::usage(
            "--dry-run prints a script; hint: omit --json and --markdown",
        ));
    }
    let slurm = Slurm::connect(&*stop_flag()?).or_else(|_| Slurm::unconnected())?;
    let slurm = with_options(slurm, args);
    let scripts = slurm.scripts(experiment.name(), experiment.cells())?;
    print_content(&scripts.join("\n"))?;
    Ok(Outcome::Done)
}

/// Runs the cells of an experiment on Slurm, or reads their results from the cache.
pub(super) fn cells(
    lab: &Lab,
    slurm: &Slurm,
    experiment: &Experiment,
    how: &How,
    output: Output,
) -> Result<Vec<Cell>, Failure> {
    let stop = stop_flag()?;
    let deadline = how.deadline.into();
    let run = Run { jobs: 1, fresh: how.fresh, deadline, stop: &stop };
    let mut watcher = Watcher::new(output.quiet);
    let (name, plans) = (experiment.name(), experiment.cells());
    let cells = lab.run_on_slurm(slurm, name, plans, run, &mut watcher);
    watcher.clear();
    Ok(cells?)
}

/// Runs the cells of a task, on a node.
pub(super) fn task(args: &TaskArgs) -> Result<Outcome, Failure> {
    run_task(&args.folder, args.index, &*stop_flag()?, &mut |text| say(text))?;
    Ok(Outcome::Done)
}
