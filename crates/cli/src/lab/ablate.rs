//! `noisefloor lab ablate`: the options that change a metric between two kernel configurations. What is
//! tested next is decided in `stats`, what the configurations are in `kernels`; here they are built
//! and measured.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ::lab::{Cache, CellObserver, Lab};
use experiments::{CellPlan, Experiment, check_metric};
use kernels::{
    Base, BuildSpec, ConfigDifference, Fetch, Kernels, Kind, OptionDifference, SourceSpec,
};
use recording::{Cell, Ending};
use report::{Ablated, ablation_document, ablation_json};
use stats::{Ablation, Ended, OptionChange, OptionsChange, Tested};
use summary::metrics_of;
use units::chain;

use crate::args::Output;
use crate::lab::args::{AblateArgs, Budget, How};
use crate::lab::watcher::Watcher;
use crate::lab::{cells, metric_keys, open, read, with_changes};
use crate::outcome::{Failure, Outcome};
use crate::reporting::{none, show};
use crate::terminal::stop_flag;

pub(crate) fn run(args: &AblateArgs, output: Output) -> Result<Outcome, Failure> {
    let output = output.beside(args.written.files()?)?;
    check_metric(&args.metric, &metric_keys())?;
    let experiment = match &args.experiment {
        Some(name) => read(name)?,
        None => Experiment::of_metric(&args.metric)?,
    };
    let how = how(args);
    let experiment = with_changes(experiment, &how)?;
    let source = source(args)?;
    let specs = [spec(&args.from, &source)?, spec(&args.to, &source)?];
    let mut kernels = Kernels::new(&Cache::find()?.folder);
    if let Some(jobs) = args.jobs {
        kernels = kernels.with_jobs(jobs.into());
    }
    let stop = stop_flag()?;
    let difference = difference(&kernels, &source, &specs, &stop, output)?;
    let changes: Vec<OptionsChange> =
        difference.groups().iter().map(|group| change(group)).collect();
    let asked = Asked { args, experiment: experiment.name(), source: source.to_string() };
    if changes.is_empty() {
        asked.print(&Ablation::default(), "", [0, 0], output)?;
        return Ok(Outcome::Done);
    }
    let mut bench = Bench {
        args,
        how,
        output,
        experiment: &experiment,
        kernels,
        lab: open()?,
        source: &source,
        difference,
        stop,
        begun: Instant::now(),
        cell: None,
        tested: HashMap::new(),
        builds: 0,
        tolerance: 0.0,
        is_limited: false,
    };
    let ablation = bench.ablate(&changes)?;
    let is_measured = |tested: &&Tested| matches!(tested, Tested::Value(_));
    let counts = [bench.tested.values().filter(is_measured).count(), bench.builds];
    asked.print(&ablation, bench.cell.as_deref().unwrap_or_default(), counts, output)?;
    Ok(if ablation.ended.is_some() { Outcome::Doubtful } else { Outcome::Done })
}

/// How cells are run.
fn how(args: &AblateArgs) -> How {
    let (set, deadline) = (args.set.clone(), args.deadline);
    How { kernels: Vec::new(), set, mode: None, jobs: None, fresh: false, deadline }
}

/// What the ends of an ablation are.
const ENDS: &str = "hint: --from and --to are files with configurations, or kernels to build \
     (build:debian:6.1,lean)";

/// The source of all kernels.
fn source(args: &AblateArgs) -> Result<SourceSpec, Failure> {
    let mut sources: Vec<SourceSpec> = args.source.iter().cloned().collect();
    for name in [&args.from, &args.to] {
        if name.starts_with(BuildSpec::PREFIX) {
            sources.push(BuildSpec::parse(name).map_err(Failure::usage)?.source);
        }
    }
    let Some(first) = sources.first() else {
        let text = recording::read_text(Path::new(&args.from))
            .map_err(|error| Failure::usage(format!("{}: {error}; {ENDS}", args.from)))?;
        return SourceSpec::of_config(&text).ok_or_else(|| {
            Failure::usage(format!(
                "{} does not name its version of Linux; hint: --source debian:6.1",
                args.from
            ))
        });
    };
    match sources.iter().find(|other| *other != first) {
        Some(other) => Err(Failure::usage(format!(
            "--source, --from and --to must have one source, not {first} and {other}"
        ))),
        None => Ok(first.clone()),
    }
}

/// The kernel with a configuration: of a file, or a kernel to build.
fn spec(name: &str, source: &SourceSpec) -> Result<BuildSpec, Failure> {
    if name.starts_with(BuildSpec::PREFIX) {
        return BuildSpec::parse(name).map_err(Failure::usage);
    }
    let base = Base::File(Path::new(name).to_owned());
    Ok(BuildSpec { base, ..BuildSpec::new(source.clone()) })
}

/// The differences of two configurations, as Kconfig makes them.
fn difference(
    kernels: &Kernels,
    source: &SourceSpec,
    specs: &[BuildSpec; 2],
    stop: &AtomicBool,
    output: Output,
) -> Result<ConfigDifference, Failure> {
    let difference = with_fetch(stop, output, |fetch| {
        let from = kernels.configuration(&specs[0], fetch)?;
        let to = kernels.configuration(&specs[1], fetch)?;
        kernels.difference(source, [&from, &to], fetch)
    });
    Ok(difference?)
}

/// Runs a step of a build, and reports its progress.
fn with_fetch<T>(
    stop: &AtomicBool,
    output: Output,
    step: impl FnOnce(&mut Fetch<'_>) -> Result<T, kernels::Error>,
) -> Result<T, kernels::Error> {
    let mut watcher = Watcher::new(output.quiet);
    let mut say = |text: &str| watcher.say(text);
    step(&mut Fetch { fresh: false, stop, say: &mut say })
}

fn change(group: &[OptionDifference]) -> OptionsChange {
    let option = |one: &OptionDifference| {
        let OptionDifference { name, from, to } = one.clone();
        OptionChange { name, from, to }
    };
    OptionsChange(group.iter().map(option).collect())
}

/// What builds and measures kernels between two configurations.
struct Bench<'a> {
    args: &'a AblateArgs,
    how: How,
    output: Output,
    experiment: &'a Experiment,
    kernels: Kernels,
    lab: Lab,
    source: &'a SourceSpec,
    difference: ConfigDifference,
    stop: Arc<AtomicBool>,
    begun: Instant,
    /// The name of the cell with the metric; known after the first kernel.
    cell: Option<String>,
    /// Results, by what identifies the kernel.
    tested: HashMap<String, Tested>,
    builds: usize,
    /// The largest tolerance of the metric.
    tolerance: f64,
    /// Whether the budget counts: after both ends are measured.
    is_limited: bool,
}

impl Bench<'_> {
    /// Divides the difference between both configurations.
    fn ablate(&mut self, changes: &[OptionsChange]) -> Result<Ablation, Failure> {
        let all: Vec<usize> = (0..changes.len()).collect();
        let from = self.end("--from", &[])?;
        let to = self.end("--to", &all)?;
        self.is_limited = true;
        let tolerance = self.tolerance;
        Ablation::of(changes, [from, to], tolerance, &mut |made| self.test(made))
    }

    /// The metric at one of the ends.
    fn end(&mut self, option: &str, made: &[usize]) -> Result<f64, Failure> {
        match self.test(made)? {
            Tested::Value(value) => Ok(value),
            Tested::Unresolved(why) => {
                let text = format!("the kernel of {option} cannot be measured: {why}");
                Err(Failure::refused(text).map_outcome(|_| Outcome::Exceeded))
            }
            Tested::Ended(_) => Err(kernels::Error::Interrupted.into()),
        }
    }

    /// The metric with these differences made. Equal configurations are measured once.
    fn test(&mut self, made: &[usize]) -> Result<Tested, Failure> {
        let spec = self.kernels.between(self.source, &self.difference, made)?;
        let all = self.difference.groups().len();
        self.say(&format!("a kernel with {} of {all} changes", made.len()));
        if self.is_limited && self.is_late() {
            return Ok(Tested::Ended(Ended::Budget));
        }
        let made = with_fetch(&self.stop, self.output, |fetch| {
            self.kernels.configuration(&spec, fetch)
        });
        let configuration = match made {
            Ok(configuration) => configuration,
            Err(error) => return untested(error),
        };
        if let Some(known) = self.tested.get(&configuration.id) {
            return Ok(known.clone());
        }
        if !configuration.is_built {
            let most = match self.args.budget {
                Some(Budget::Builds(most)) if self.is_limited => most,
                Some(_) | None => usize::MAX,
            };
            if self.builds >= most {
                return Ok(Tested::Ended(Ended::Budget));
            }
            self.builds += 1;
        }
        let tested = self.build_and_measure(&spec)?;
        if !matches!(tested, Tested::Ended(_)) {
            self.tested.insert(configuration.id, tested.clone());
        }
        Ok(tested)
    }

    fn is_late(&self) -> bool {
        match self.args.budget {
            Some(Budget::Time(time)) => self.begun.elapsed() >= time.into(),
            Some(Budget::Builds(_)) | None => false,
        }
    }

    fn build_and_measure(&mut self, spec: &BuildSpec) -> Result<Tested, Failure> {
        let name = spec.to_string();
        let found =
            with_fetch(&self.stop, self.output, |fetch| self.kernels.find(&name, fetch));
        if let Err(error) = found {
            return untested(error);
        }
        let experiment = self.experiment.clone().with_kernels(&[name])?;
        let is_it = |plan: &&CellPlan| {
            plan.repeat == 1 && self.cell.as_ref().is_none_or(|cell| *cell == plan.name)
        };
        let plans: Vec<CellPlan> =
            experiment.cells().iter().filter(is_it).cloned().collect();
        let cells = cells(&self.lab, &plans, &self.how, self.output);
        let is_complete = cells.as_ref().is_ok_and(|cells| cells.len() == plans.len());
        if self.stop.load(Ordering::Relaxed) && !is_complete {
            return Ok(Tested::Ended(Ended::Interrupted));
        }
        self.value(&cells?)
    }

    /// The metric in the first cell that has it.
    fn value(&mut self, cells: &[Cell]) -> Result<Tested, Failure> {
        let key = &self.args.metric;
        let found = cells.iter().find_map(|cell| {
            let metric =
                metrics_of(cell).into_iter().find(|metric| metric.key == *key)?;
            Some((cell.name.clone(), metric))
        });
        if let Some((cell, metric)) = found {
            self.tolerance = self.tolerance.max(metric.tolerance_of_differences());
            self.cell = Some(cell);
            let text = format!("{key} {}", metric.value);
            self.say(&text);
            return Ok(Tested::Value(metric.value));
        }
        let lost = cells.iter().find_map(|cell| match &cell.ending {
            Ending::Lost { why, .. } => Some(why.clone()),
            Ending::Done(_) => None,
        });
        match (lost, &self.cell) {
            (Some(why), _) => Ok(Tested::Unresolved(why)),
            (None, Some(_)) => Ok(Tested::Unresolved(format!("its cell has no {key}"))),
            (None, None) => Err(Failure::usage(format!(
                "no cell of {} has {key}; hint: --experiment",
                self.experiment.name()
            ))),
        }
    }

    fn say(&self, text: &str) {
        Watcher::new(self.output.quiet).say(text);
    }
}

/// What is asked, for the report.
struct Asked<'a> {
    args: &'a AblateArgs,
    experiment: &'a str,
    source: String,
}

impl Asked<'_> {
    /// Prints the result, with the numbers of kernels that were measured and built.
    fn print(
        &self,
        ablation: &Ablation,
        cell: &str,
        [kernels, builds]: [usize; 2],
        output: Output,
    ) -> Result<(), Failure> {
        let AblateArgs { metric, from, to, .. } = self.args;
        let Self { experiment, source, .. } = self;
        let ablated = Ablated {
            metric,
            experiment,
            cell,
            from,
            to,
            source,
            kernels,
            builds,
            ablation,
        };
        show(
            output,
            &self.args.written.files()?,
            || ablation_json(&ablated),
            || ablation_document(&ablated),
            none,
        )
    }
}

/// A kernel that cannot be built or used; what says nothing about its configuration is a failure.
fn untested(error: kernels::Error) -> Result<Tested, Failure> {
    if error.kind() == Kind::Interrupted {
        return Ok(Tested::Ended(Ended::Interrupted));
    }
    match error.is_of_source() {
        true => Ok(Tested::Unresolved(chain(&error))),
        false => Err(error.into()),
    }
}
