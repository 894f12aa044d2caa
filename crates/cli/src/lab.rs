//! `noisefloor lab`: experiments, their cells, and what they are held to.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use ::lab::{Audience, Cache, Experiment, Kernels, Lab, Measured, Plan, Progress, Run};
use recording::{Cell, Doubt, Ending};
use report::{cell_doubts, cell_summary, cells_json, cells_text};

use crate::args::Output;
use crate::explain;
use crate::lab_args::{
    CheckArgs, How, KernelsArgs, LabCommand, ModeArg, RunArgs, ShowArgs,
};
use crate::outcome::{Failure, Outcome};
use crate::terminal::{print, stop_on_signals};

/// Does what was asked of the lab.
pub(crate) fn run(command: &LabCommand, output: Output) -> Result<Outcome, Failure> {
    match command {
        LabCommand::List => list(),
        LabCommand::Show(show) => self::show(show),
        LabCommand::Run(run) => self::experiment(run, output),
        LabCommand::Check(check) => self::check(check, output),
        LabCommand::Explain(explain) => explain::run(explain, output),
        LabCommand::Kernels(kernels) => self::kernels(kernels, output),
    }
}

fn list() -> Result<Outcome, Failure> {
    let line = |e: &Experiment| format!("{:<12}{}\n", e.name(), e.about());
    print(&Experiment::builtins()?.iter().map(line).collect::<String>())?;
    Ok(Outcome::Done)
}

fn show(args: &ShowArgs) -> Result<Outcome, Failure> {
    print(Experiment::builtin(&args.name)?.text())?;
    Ok(Outcome::Done)
}

fn experiment(args: &RunArgs, output: Output) -> Result<Outcome, Failure> {
    let experiment = find(&args.experiment, &args.how)?;
    let cells = cells(experiment.cells(), &args.how, output)?;
    tell(&experiment, &cells, output)?;
    Ok(outcome(&cells))
}

fn check(args: &CheckArgs, output: Output) -> Result<Outcome, Failure> {
    let experiment = find(&args.experiment, &args.how)?;
    if experiment.limits().is_empty() && !args.print_baseline {
        let text = format!(
            "{} has no [limits] and no [[baseline]]; --print-baseline writes one",
            args.experiment
        );
        return Err(Failure::usage(text));
    }
    let cells = cells(experiment.cells(), &args.how, output)?;
    let measured: Vec<Measured> = cells.iter().map(measured).collect();
    if args.print_baseline {
        print(&::lab::baseline(&measured))?;
        return Ok(outcome(&cells));
    }
    tell(&experiment, &cells, output)?;
    let breaches = experiment.limits().check(&measured)?;
    for breach in &breaches {
        eprintln!("noisefloor: {breach}");
    }
    match outcome(&cells) {
        Outcome::Done if !breaches.is_empty() => Ok(Outcome::Exceeded),
        outcome => Ok(outcome),
    }
}

/// What limits are held against.
fn measured(cell: &Cell) -> Measured {
    let summary = cell_summary(cell);
    Measured {
        kernel: cell.asked.clone(),
        cell: cell.name.clone(),
        metrics: summary.as_ref().map(stats::metrics).unwrap_or_default(),
    }
}

/// An experiment by its name or from its file, with the changes asked for.
pub(crate) fn find(name: &str, how: &How) -> Result<Experiment, Failure> {
    let is_file = name.contains('/') || Path::new(name).extension().is_some();
    let experiment = if is_file {
        let text = fs::read_to_string(name)
            .map_err(|error| Failure::usage(format!("{name}: {error}")))?;
        Experiment::parse(&text, name)?
    } else {
        Experiment::builtin(name)?
    };
    let mode = how.mode.map(|mode| match mode {
        ModeArg::Exact => "mode=exact".to_owned(),
        ModeArg::Timed => "mode=timed".to_owned(),
    });
    let changes: Vec<String> = how.set.iter().cloned().chain(mode).collect();
    Ok(experiment.with_kernels(&how.kernels)?.with_changes(&changes)?)
}

/// Runs plans, or takes their results from the cache.
pub(crate) fn cells(
    plans: &[Plan],
    how: &How,
    output: Output,
) -> Result<Vec<Cell>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_signals(&stop)?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let jobs = how.jobs.map_or(cores, usize::from);
    let lab = Lab::open(Cache::find()?)?;
    let mut watcher = Watcher::new(output.quiet);
    let run = Run { jobs, fresh: how.fresh, deadline: how.deadline.into(), stop: &stop };
    let cells = lab.run(plans, run, &mut watcher);
    watcher.clear();
    Ok(cells?)
}

fn tell(experiment: &Experiment, cells: &[Cell], output: Output) -> Result<(), Failure> {
    let name = experiment.name();
    let text = if output.json {
        cells_json(name, cells, output.series).map_err(Failure::bug)? + "\n"
    } else {
        cells_text(name, experiment.about(), cells)
    };
    print(&text)?;
    Ok(())
}

/// How a run of cells ends: a lost cell is a test that failed.
fn outcome(cells: &[Cell]) -> Outcome {
    let lost = |cell: &Cell| matches!(cell.ending, Ending::Lost { .. });
    let grave = |cell: &Cell| cell_doubts(cell).iter().any(Doubt::is_grave);
    if cells.iter().any(lost) {
        Outcome::Exceeded
    } else if cells.iter().any(grave) {
        Outcome::Doubtful
    } else {
        Outcome::Done
    }
}

fn kernels(args: &KernelsArgs, output: Output) -> Result<Outcome, Failure> {
    let kernels = Kernels::new(&Cache::find()?.folder);
    let mut watcher = Watcher::new(output.quiet);
    for spec in &args.get {
        kernels.find(spec, args.fresh, &mut |text| watcher.say(text))?;
    }
    watcher.clear();
    let mut text = String::new();
    for kernel in kernels.list() {
        let version = kernel.package_version.as_deref().unwrap_or("-");
        let (spec, release) = (&kernel.spec, &kernel.release);
        text += &format!("{spec:<22} {release:<32} {version}\n");
    }
    let kept = kernels.list();
    let known = kernels.available().into_iter();
    for spec in known.filter(|spec| kept.iter().all(|kernel| kernel.spec != *spec)) {
        text += &format!("{spec:<22} -\n");
    }
    print(&text)?;
    Ok(Outcome::Done)
}

/// Shows on standard error what goes on, where that is a terminal.
struct Watcher {
    shows: bool,
    drawn: bool,
}

impl Watcher {
    fn new(quiet: bool) -> Self {
        Self { shows: !quiet && io::stderr().is_terminal(), drawn: false }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            eprint!("\r\x1b[K");
        }
    }
}

impl Audience for Watcher {
    fn say(&mut self, text: &str) {
        if self.shows {
            self.clear();
            eprintln!("noisefloor: {text}");
        }
    }

    fn progress(&mut self, progress: Progress) {
        if !self.shows {
            return;
        }
        let Progress { cells, ran, cached, lost, running, left } = progress;
        let left = left.filter(|left| *left > Duration::from_secs(1));
        let left =
            left.map_or(String::new(), |left| format!(", {} s left", left.as_secs()));
        eprint!(
            "\r\x1b[Knoisefloor: {} of {cells} cells: {running} running, {cached} cached, \
             {lost} lost{left}",
            ran + cached
        );
        self.drawn = true;
    }
}
