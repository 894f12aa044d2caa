//! `noisefloor lab run` and `check`: experiments, their cells, limits and baselines.

mod ablate;
pub(crate) mod args;
mod beside;
pub(crate) mod bisect;
pub(crate) mod boots;
pub(crate) mod build;
pub(crate) mod catalogue;
pub(crate) mod chart;
mod cost;
pub(crate) mod explain;
mod slurm;
pub(crate) mod watcher;

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;

use ::lab::{Cache, Lab, Run, Slurm};
use experiments::{CellPlan, Experiment, Measured};
use recording::{Call, Cell, Doubt, Ending, MadeWith};
use report::{
    Cells, cell_doubts, cell_metrics_document, cell_outputs_document, cells_document,
    cells_json, cells_pictures, markdown_text,
};
use summary::{ViolatedLimit, metrics_of};

use crate::args::Output;
use crate::destination::Destination;
use crate::lab::args::{
    BesideArg, CheckArgs, GUESTS, How, KernelsCommand, LabCommand, ModeArg, RunArgs,
};
use crate::lab::chart::Chart;
use crate::lab::watcher::Watcher;
use crate::outcome::{Failure, Outcome};
use crate::printing::{print, print_content, print_document, say};
use crate::reporting::show;
use crate::terminal::stop_flag;

/// Runs a subcommand of `lab`.
pub(crate) fn run(command: &LabCommand, output: Output) -> Result<Outcome, Failure> {
    match command {
        LabCommand::List => catalogue::list(output),
        LabCommand::Show(show) => catalogue::show(show, output),
        LabCommand::Run(run) => self::experiment(run, output),
        LabCommand::Task(task) => slurm::task(task),
        LabCommand::Check(check) => self::check(check, output),
        LabCommand::Ablate(ablate) => ablate::run(ablate, output),
        LabCommand::Cost(cost) => cost::run(cost, output),
        LabCommand::Explain(explain) => explain::run(explain, output),
        LabCommand::Kernels(kernels) => match &kernels.command {
            Some(KernelsCommand::Build(build)) => build::run(build, output),
            None => catalogue::kernels(kernels, output),
        },
    }
}

fn experiment(args: &RunArgs, output: Output) -> Result<Outcome, Failure> {
    refuse_two_formats(args.markdown, output)?;
    refuse_outputs(args.show_output, args.markdown, output)?;
    let experiment = find(&args.experiment, &args.how)?;
    let shown = Shown {
        markdown: args.markdown,
        files: args.written.files()?,
        chart: args.chart.chart()?,
        guests: args.guests,
        beside: args.beside,
        slurm: None,
    };
    if args.beside.is_some() {
        beside::refuse_impossible(&experiment)?;
    }
    if args.slurm.dry_run {
        return slurm::print_scripts(&experiment, args, output);
    }
    let slurm = slurm::find(args)?;
    let shown = Shown { slurm: slurm.as_ref(), ..shown };
    let (cells, outcome) = run_and_print(&experiment, &args.how, &shown, output)?;
    if args.show_output {
        print_outputs(&cells, output)?;
    }
    Ok(outcome)
}

/// Refuses the output of programs after a report that is not text.
fn refuse_outputs(
    show_output: bool,
    markdown: bool,
    output: Output,
) -> Result<(), Failure> {
    match show_output && (markdown || output.json) {
        true => {
            let why = "--show-output is for the text report; JSON has the output anyway";
            Err(Failure::usage(why))
        }
        false => Ok(()),
    }
}

/// Prints the output of programs.
fn print_outputs(cells: &[Cell], output: Output) -> Result<(), Failure> {
    print("\n")?;
    print_document(&cell_outputs_document(cells), output.view()).map(drop)
}

/// What is shown of cells.
struct Shown<'a> {
    /// Markdown tables instead of text.
    markdown: bool,
    /// Files of the report.
    files: Vec<Destination<'a>>,
    /// A chart beside them.
    chart: Option<Chart<'a>>,
    /// The number of idle guests in the report.
    guests: u64,
    /// What cells are compared with.
    beside: Option<BesideArg>,
    /// What runs the cells instead of this machine.
    slurm: Option<&'a Slurm>,
}

/// Refuses two formats of the report.
fn refuse_two_formats(markdown: bool, output: Output) -> Result<(), Failure> {
    match markdown && output.json {
        true => Err(Failure::usage("--json and --markdown exclude each other")),
        false => Ok(()),
    }
}

/// Runs the cells of an experiment, and prints the report. A file that cannot be written is an
/// error before anything boots.
fn run_and_print(
    experiment: &Experiment,
    how: &How,
    shown: &Shown<'_>,
    output: Output,
) -> Result<(Vec<Cell>, Outcome), Failure> {
    let files = shown.files.iter().copied();
    let output = output.beside(files.chain(shown.chart.map(|chart| chart.to)))?;
    let lab = open()?;
    let cells = match shown.slurm {
        Some(slurm) => slurm::cells(&lab, slurm, experiment, how, output)?,
        None => cells(&lab, experiment.cells(), how, output)?,
    };
    let made_with = lab.made_with();
    let simulated = match shown.beside {
        Some(BesideArg::Sim) => beside::simulations(&cells, experiment.cells()),
        None => Vec::new(),
    };
    let report = reported(experiment, &cells, &made_with, None, shown.guests);
    let report = Cells { beside: &simulated, ..report };
    match (output.has_report, shown.markdown) {
        (false, _) => {} // standard output has the chart
        (true, true) => {
            print_content(&markdown_text(&cell_metrics_document(&report)))?;
        }
        (true, false) => print_results(&report, &shown.files, output)?,
    }
    if let Some(chart) = shown.chart {
        chart.draw(&report)?;
    }
    let outcome = outcome(&cells, experiment.cells().len(), false);
    Ok((cells, outcome))
}

fn check(args: &CheckArgs, output: Output) -> Result<Outcome, Failure> {
    if let Some(source) = &args.source {
        return bisect::run(args, source, output);
    }
    let experiment = find(&args.experiment, &args.how)?;
    if args.print_baseline {
        return print_baseline(&experiment, args, output);
    }
    let Checked { cells, violated } =
        check_experiment(&experiment, &args.experiment, &args.how, output)?;
    Ok(outcome(&cells, experiment.cells().len(), violated))
}

/// The cells of a check, and whether one violates a limit.
pub(crate) struct Checked {
    pub(crate) cells: Vec<Cell>,
    pub(crate) violated: bool,
}

/// Runs an experiment, and reports its cells and the limits they violate; `name` is its name in
/// messages.
pub(crate) fn check_experiment(
    experiment: &Experiment,
    name: &str,
    how: &How,
    output: Output,
) -> Result<Checked, Failure> {
    let limits = experiment.limits();
    if limits.is_empty() {
        let text = format!(
            "{name} has no [limits] and no [[baseline]]; --print-baseline writes one"
        );
        return Err(Failure::usage(text));
    }
    let lab = open()?;
    let cells = cells(&lab, experiment.cells(), how, output)?;
    let plans = experiment.cells();
    let measured: Vec<Measured> =
        cells.iter().map(|cell| measured(cell, plans)).collect();
    let violated = limits.check(&measured)?;
    let made_with = lab.made_with();
    let report = reported(experiment, &cells, &made_with, Some(&violated), GUESTS);
    print_results(&report, &[], output)?;
    for limit in &violated {
        say(limit);
    }
    Ok(Checked { cells, violated: !violated.is_empty() })
}

fn print_baseline(
    experiment: &Experiment,
    args: &CheckArgs,
    output: Output,
) -> Result<Outcome, Failure> {
    if output.json {
        return Err(Failure::usage("a baseline is TOML; hint: omit --json"));
    }
    let plans = experiment.cells();
    let varied: Vec<CellPlan> = plans.iter().map(CellPlan::for_baseline).collect();
    let cells = cells(&open()?, &varied, &args.how, output)?;
    let measured: Vec<Measured> =
        cells.iter().map(|cell| measured(cell, plans)).collect();
    print_content(&experiments::baseline(&measured))?;
    Ok(outcome(&cells, experiment.cells().len(), false))
}

/// What is compared with limits.
fn measured(cell: &Cell, plans: &[CellPlan]) -> Measured {
    let is_own = |plan: &&CellPlan| plan.name == cell.name && plan.kernel == cell.asked;
    let plan = plans.iter().find(is_own);
    Measured {
        kernel: cell.asked.clone(),
        cell: cell.name.clone(),
        variations: plan.map_or(1, |plan| plan.variations.first()),
        metrics: metrics_of(cell),
    }
}

/// An experiment by its name or from its file; its limits name existing metrics only.
pub(crate) fn read(name: &str) -> Result<Experiment, Failure> {
    let is_file = name.contains('/') || Path::new(name).extension().is_some();
    let experiment = match is_file {
        true => Experiment::parse(&read_text(name)?, name)?,
        false => Experiment::builtin(name)?,
    };
    experiment.limits().refuse_unknown(&metric_keys())?;
    Ok(experiment)
}

/// The keys of all metrics that cells can have.
pub(crate) fn metric_keys() -> Vec<String> {
    summary::cell_metric_keys(Call::ALL.iter().map(|call| call.name()))
}

/// The same with the changes of `--set`, `--kernel` and `--mode`.
pub(crate) fn find(name: &str, how: &How) -> Result<Experiment, Failure> {
    with_changes(read(name)?, how)
}

/// An experiment with the changes of `--set`, `--kernel` and `--mode`.
fn with_changes(experiment: Experiment, how: &How) -> Result<Experiment, Failure> {
    let mode = how.mode.map(|mode| match mode {
        ModeArg::Exact => "mode=exact".to_owned(),
        ModeArg::Timed => "mode=timed".to_owned(),
    });
    if mode.is_some() && how.set.iter().any(|set| set.starts_with("mode=")) {
        return Err(Failure::usage("the mode is given twice: --mode and --set mode"));
    }
    let changes: Vec<String> = how.set.iter().cloned().chain(mode).collect();
    Ok(experiment.with_kernels(&how.kernels)?.with_changes(&changes)?)
}

/// The text of an experiment's file.
fn read_text(name: &str) -> Result<String, Failure> {
    recording::read_text(Path::new(name)).map_err(|error| {
        let row = name.split_once('/').filter(|(n, _)| Experiment::builtin(n).is_ok());
        Failure::usage(match (error.kind(), row) {
            (io::ErrorKind::NotFound, Some((builtin, row))) => format!(
                "there is no file {name}; hint: to run one workload of the built-in \
                 {builtin}: {builtin} --set workload={row}"
            ),
            (io::ErrorKind::InvalidData, _) => format!("{name}: not a text file (UTF-8)"),
            _ => format!("{name}: {error}"),
        })
    })
}

/// The lab of this machine and user.
pub(crate) fn open() -> Result<Lab, Failure> {
    Ok(Lab::open(Cache::find()?)?)
}

/// Runs plans, or reads their results from the cache.
pub(crate) fn cells(
    lab: &Lab,
    plans: &[CellPlan],
    how: &How,
    output: Output,
) -> Result<Vec<Cell>, Failure> {
    cells_until(lab, plans, how, output, &*stop_flag()?)
}

/// The same for a process that handles signals by itself, until `stop` is set.
pub(crate) fn cells_until(
    lab: &Lab,
    plans: &[CellPlan],
    how: &How,
    output: Output,
    stop: &AtomicBool,
) -> Result<Vec<Cell>, Failure> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let jobs = how.jobs.map_or(cores, usize::from);
    let mut watcher = Watcher::new(output.quiet);
    let run = Run { jobs, fresh: how.fresh, deadline: how.deadline.into(), stop };
    let cells = lab.run(plans, run, &mut watcher);
    watcher.clear();
    Ok(cells?)
}

/// The results to report.
fn reported<'a>(
    experiment: &'a Experiment,
    cells: &'a [Cell],
    made_with: &'a MadeWith,
    violations: Option<&'a [ViolatedLimit]>,
    guests: u64,
) -> Cells<'a> {
    Cells {
        experiment: experiment.name(),
        about: experiment.about(),
        cells,
        planned: experiment.cells().len(),
        made_with: Some(made_with),
        violations,
        guests,
        series: experiment.series(),
        beside: &[],
    }
}

fn print_results(
    report: &Cells<'_>,
    files: &[Destination<'_>],
    output: Output,
) -> Result<(), Failure> {
    show(
        output,
        files,
        || cells_json(report, output.series),
        || cells_document(report),
        |medium| cells_pictures(report, medium),
    )
}

/// The outcome of a run of cells: a lost cell is a failed test, and a run that was ended early has
/// no verdict.
pub(crate) fn outcome(cells: &[Cell], planned: usize, exceeds: bool) -> Outcome {
    let lost = |cell: &Cell| matches!(cell.ending, Ending::Lost { .. });
    let grave = |cell: &Cell| cell_doubts(cell).iter().any(Doubt::is_grave);
    if exceeds || cells.iter().any(lost) {
        Outcome::Exceeded
    } else if cells.len() < planned || cells.iter().any(grave) {
        Outcome::Doubtful
    } else {
        Outcome::Done
    }
}
