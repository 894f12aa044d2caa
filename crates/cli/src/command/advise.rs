//! `advise`: what to change for a goal.

mod emitting;
mod isolation;
mod program;

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use ::advise::{Advice, Goal, Goals, Importance, Losses, Machine};
use ::facts::{Facts, Root, Why};
use ::report::AdvisedMachine;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use recording::{Doubt, Recording};
use session::{Plan, Threads, Trace};
use summary::Summary;
use units::{CpuSet, Nanos};

use crate::args::{Output, ReportFiles, cpu_list};
use crate::command::advise::emitting::EmitOptions;
use crate::command::advise::isolation::IsolationArgs;
use crate::command::check::spec;
use crate::inputs::load;
use crate::measured::Measured;
use crate::measuring::measure;
use crate::outcome::{Failure, Outcome};
use crate::proving::{ProveArgs, Prover};
use crate::reporting::{none, show};

/// The duration of the busy loop of a check for advice, and of the count of timer interrupts before it.
const BUSY: Nanos = Nanos::from_secs(5);
const IDLE: Nanos = Nanos::from_secs(3);

/// Several times the size of any configuration.
const CONFIG_MAX: u64 = 16 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct AdviseArgs {
    /// What this machine is for [default: latency; of a COMMAND: benchmark]; of several goals, the first decides
    /// where they contradict each other.
    #[arg(long, value_name = "GOAL,...", value_parser = goals(), value_delimiter = ',')]
    goal: Vec<Goal>,
    /// CPUs that are to have little noise, as 0-3,8 [default: isolated CPUs, or all but the first core].
    #[arg(short, long, value_name = "LIST", value_parser = cpu_list)]
    cpus: Option<CpuSet>,
    /// Advise the machine of a recording, saved with -o, instead of measuring this one.
    #[arg(long, value_name = "FILE", group = "machine")]
    from: Option<PathBuf>,
    /// Advise the machine of a directory: of facts --record, an unpacked report of sos, or a
    /// node of a must-gather.
    #[arg(long, value_name = "DIR", group = "machine")]
    root: Option<PathBuf>,
    /// Advise a kernel by its configuration alone, also if that is compressed with gzip.
    #[arg(long, value_name = "FILE", group = "machine")]
    config: Option<PathBuf>,
    /// The command line with which that kernel boots [default: empty].
    #[arg(long, value_name = "PARAMETERS", requires = "config")]
    cmdline: Option<String>,
    /// The version of that kernel [default: the one in the file].
    #[arg(long, value_name = "VERSION", requires = "config")]
    kernel: Option<String>,
    /// Measure nothing: advise this machine by its settings alone.
    #[arg(long, group = "machine")]
    no_measure: bool,
    /// Exit code 1 if a rule of at least this importance holds.
    #[arg(long, value_name = "IMPORTANCE", value_parser = importances())]
    fail_on: Option<Importance>,
    #[command(flatten)]
    isolation: IsolationArgs,
    #[command(flatten)]
    emitting: EmitOptions,
    #[command(flatten)]
    proof: ProveArgs,
    #[command(flatten)]
    written: ReportFiles,
}

impl AdviseArgs {
    fn goals(&self) -> Goals {
        let default = match self.proof.program().is_empty() {
            true => Goal::Latency,
            false => Goal::Benchmark,
        };
        Goals::new(&self.goal, default)
    }
}

/// The goals, as on the command line.
fn goals() -> impl TypedValueParser<Value = Goal> {
    let value =
        |goal: Goal| PossibleValue::new(goal.name()).help(::report::goal_in_words(goal));
    PossibleValuesParser::new(Goal::ALL.map(value)).try_map(|name| name.parse())
}

/// The importances, as on the command line.
fn importances() -> impl TypedValueParser<Value = Importance> {
    let names = Importance::ALL.map(Importance::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

/// What advice is based on.
struct Basis {
    facts: Facts,
    measured: Option<Measured>,
    doubts: Vec<Doubt>,
}

pub(crate) fn run(args: &AdviseArgs, output: Output) -> Result<Outcome, Failure> {
    let files = args.written.files()?;
    let output = output.beside(files.clone())?;
    if let Some(dir) = args.emitting.verified() {
        return emitting::verify(dir, args.root.as_deref(), output, &files);
    }
    let emitted = args.emitting.folder()?;
    let mut prover = args.proof.begin(output)?;
    if let Some(prover) = prover.take_if(|_| !args.proof.program().is_empty()) {
        return program::run(args, prover, output, &files);
    }
    let mut basis = basis(args, prover.as_mut(), output)?;
    if let Some(wanted) = args.isolation.isolate {
        return isolation::run(args, wanted, basis, output, &files);
    }
    let mut doubts = std::mem::take(&mut basis.doubts);
    let summary = basis.measured.as_ref().map(Measured::summary);
    let machine = machine(args, &basis.facts, summary)?;
    doubts.extend(machine.doubts());
    let advice = Advice::of(&machine, &args.goals());
    let (advice, outcome) = match prover {
        Some(prover) => prover.prove(advice, &machine, &mut doubts)?,
        None => (advice, Outcome::Done),
    };
    if let Some(folder) = emitted {
        return emitting::emit(&folder, &advice, &machine, output, &files);
    }
    let advised = AdvisedMachine {
        facts: &basis.facts,
        summary,
        program: None,
        advice: &advice,
        doubts: &doubts,
    };
    let (taken, tool) = (Recording::moment(), Recording::TOOL);
    let json = || ::report::advice_json(&advised, &taken, tool);
    show(output, &files, json, || ::report::advice_document(&advised), none)?;
    let fails = |limit| advice.items.iter().any(|item| item.rule.importance <= limit);
    Ok(if args.fail_on.is_some_and(fails) { Outcome::Exceeded } else { outcome })
}

/// What is known of the machine, and assumed.
fn machine<'a>(
    args: &AdviseArgs,
    facts: &'a Facts,
    summary: Option<&Summary>,
) -> Result<Machine<'a>, Failure> {
    let online = facts.cpus.online.get();
    if let Some((cpus, online)) = args.cpus.as_ref().zip(online) {
        let others = cpus.without(online);
        if !others.is_empty() {
            return Err(Failure::usage(format!("CPUs {others} are not online")));
        }
    }
    let losses = summary.and_then(Losses::of);
    let machine = Machine::new(facts, losses, args.cpus.clone());
    let is_guest = args.goals().iter().any(|goal| goal == Goal::VmGuest);
    Ok(match args.config {
        // Nothing else tells where that kernel runs.
        Some(_) => machine
            .assuming("guest", if is_guest { "yes" } else { "no" })
            .assuming("container", "no")
            .assuming("facts.security.lockdown", "none"),
        None => machine,
    })
}

/// The facts, and what was measured.
fn basis(
    args: &AdviseArgs,
    prover: Option<&mut Prover>,
    output: Output,
) -> Result<Basis, Failure> {
    let unmeasured = |root: &Root| Basis {
        facts: Facts::read(root),
        measured: None,
        doubts: Vec::new(),
    };
    if let Some(dir) = &args.root {
        return Ok(unmeasured(&Root::directory(dir)?));
    }
    if let Some(file) = &args.config {
        return Ok(unmeasured(&configuration(args, file)?));
    }
    let plans_only = args.isolation.isolate.is_some() && args.from.is_none();
    if args.no_measure || plans_only {
        return Ok(unmeasured(&Root::live()));
    }
    let measured = match &args.from {
        Some(file) => Measured::new(load(file)?),
        None => match prover {
            Some(prover) => Measured::new(prover.check(IDLE, BUSY)?),
            None => check(output)?,
        },
    };
    let (facts, doubts) = {
        let recording = measured.recording();
        (recording.facts.clone(), recording.doubts.clone())
    };
    Ok(Basis { facts, measured: Some(measured), doubts })
}

/// The machine of a configuration.
fn configuration(args: &AdviseArgs, file: &std::path::Path) -> Result<Root, Failure> {
    let shown = units::printable(&file.to_string_lossy()).into_owned();
    let failed =
        |why: std::io::Error| Failure::usage(format!("failed to read {shown}: {why}"));
    // A pipe could wait for ever.
    if !fs::metadata(file).map_err(failed)?.is_file() {
        return Err(Failure::usage(format!("{shown} is no regular file")));
    }
    let mut bytes = Vec::new();
    let opened = fs::File::open(file).map_err(failed)?;
    opened.take(CONFIG_MAX).read_to_end(&mut bytes).map_err(failed)?;
    let release = args.kernel.as_deref();
    let line = args.cmdline.as_deref().unwrap_or_default();
    let root = Root::configuration(&bytes, &shown, release, Some(line));
    root.map_err(|unknown| {
        let hint =
            if unknown.code == Why::Absent { "; hint: --kernel VERSION" } else { "" };
        Failure::usage(format!("{unknown}{hint}"))
    })
}

/// A short check of this machine.
fn check(output: Output) -> Result<Measured, Failure> {
    let plan = Plan::choose(None, |cpus, facts| spec(None, cpus, facts, [IDLE, BUSY]))?;
    let trace = Trace::Events { source: None, threads: Threads::Others, stores: false };
    measure(Plan { trace, ..plan }, output)
}
