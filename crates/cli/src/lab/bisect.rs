//! `noisefloor lab check FILE --source TREE`, for `git bisect run`: builds the tree, and checks it.
//!
//! `git bisect run` takes 0 as good, 125 as "cannot be tested", and every other code below 128 as
//! bad; from 128 on it ends (`git-bisect(1)`). So a failure, which says nothing about the tree, has a
//! code from 128 on.

use ::lab::{Cache, CellObserver};
use experiments::Experiment;
use kernels::{BuildSpec, Fetch, Kernels, SourceSpec};
use recording::Ending;
use units::chain;

use crate::args::Output;
use crate::lab::args::{CheckArgs, How};
use crate::lab::watcher::Watcher;
use crate::lab::{Checked, check_experiment, outcome, read, with_changes};
use crate::outcome::{Failure, Outcome};
use crate::printing::say;
use crate::terminal::stop_flag;

/// Builds the experiment's kernels from this source, and checks the experiment on them.
pub(crate) fn run(
    args: &CheckArgs,
    source: &SourceSpec,
    output: Output,
) -> Result<Outcome, Failure> {
    let checked = checked(args, source, output);
    checked.map_err(|failure| failure.map_outcome(Outcome::end_of_bisection))
}

fn checked(
    args: &CheckArgs,
    source: &SourceSpec,
    output: Output,
) -> Result<Outcome, Failure> {
    let experiment = read(&args.experiment)?;
    let kernels = names(&experiment, source)?;
    let how = How { kernels: kernels.clone(), ..args.how.clone() };
    let experiment = with_changes(experiment, &how)?;
    if let Some(why) = build(&kernels, output)? {
        say(format!("the source cannot be tested: {why}"));
        return Ok(Outcome::Untestable);
    }
    let Checked { cells, violated } =
        check_experiment(&experiment, &args.experiment, &how, output)?;
    let is_lost = cells.iter().any(|cell| matches!(cell.ending, Ending::Lost { .. }));
    Ok(match (violated, is_lost) {
        (true, _) => Outcome::Exceeded,
        (false, true) => Outcome::Untestable,
        (false, false) => {
            outcome(&cells, experiment.cells().len(), false).or_end_of_bisection()
        }
    })
}

/// The experiment's kernels that are built, from this source; if there are none, a lean one.
fn names(experiment: &Experiment, source: &SourceSpec) -> Result<Vec<String>, Failure> {
    let experiment = experiment.clone().with_kernels(&[])?;
    let names = experiment.cells().iter().map(|cell| cell.kernel.as_str());
    let builds = names.filter(|name| name.starts_with(BuildSpec::PREFIX));
    let from_source = |name: &str| {
        let spec = BuildSpec::parse(name).map_err(Failure::usage)?;
        Ok(spec.with_source(source.clone()).to_string())
    };
    let mut builds: Vec<String> =
        builds.map(from_source).collect::<Result<_, Failure>>()?;
    builds.dedup(); // cells are in the order of their kernels
    match builds.is_empty() {
        true => Ok(vec![BuildSpec::new(source.clone()).to_string()]),
        false => Ok(builds),
    }
}

/// Builds the kernels; why the source gives none that guests can use, if it does not.
fn build(names: &[String], output: Output) -> Result<Option<String>, Failure> {
    let stop = stop_flag()?;
    let kernels = Kernels::new(&Cache::find()?.folder);
    let mut watcher = Watcher::new(output.quiet);
    for name in names {
        let mut say = |text: &str| watcher.say(text);
        let mut fetch = Fetch { fresh: false, stop: &stop, say: &mut say };
        match kernels.find(name, &mut fetch) {
            Ok(_) => {}
            Err(error) if error.is_of_source() => return Ok(Some(chain(&error))),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}
