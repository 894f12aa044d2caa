//! `advise`: what to change for a goal.

use std::fs;
use std::path::PathBuf;

use ::advise::{Advice, Goal, Importance, Machine};
use ::facts::{Facts, Root};
use ::report::AdvisedMachine;
use recording::{CheckSpec, Doubt, Recording, Spec};
use session::{Plan, Threads, Trace};
use units::{CpuSet, Nanos};

use crate::args::{Output, ReportFiles, cpu_list};
use crate::inputs::load;
use crate::measured::Measured;
use crate::measuring::measure;
use crate::outcome::{Failure, Outcome};
use crate::proving::{ProveArgs, Prover};
use crate::reporting::{none, show};

/// The duration of the busy loop of a check for advice, and of the count of timer interrupts before it.
const BUSY: Nanos = Nanos::from_secs(5);
const IDLE: Nanos = Nanos::from_secs(3);

#[derive(Debug, clap::Args)]
pub(crate) struct AdviseArgs {
    /// What this machine is for.
    #[arg(long, value_name = "GOAL", default_value = "latency")]
    goal: GoalName,
    /// CPUs that are to have little noise, as 0-3,8 [default: isolated CPUs, or all but the first core].
    #[arg(short, long, value_name = "LIST", value_parser = cpu_list)]
    cpus: Option<CpuSet>,
    /// Advise the machine of a recording, saved with -o, instead of measuring this one.
    #[arg(long, value_name = "FILE", group = "machine")]
    from: Option<PathBuf>,
    /// Advise the machine of a directory: of facts --record, or the root of a sosreport or must-gather.
    #[arg(long, value_name = "DIR", group = "machine")]
    root: Option<PathBuf>,
    /// Advise a kernel by its configuration alone, also if that is compressed with gzip.
    #[arg(long, value_name = "FILE", group = "machine")]
    config: Option<PathBuf>,
    /// The command line with which that kernel boots.
    #[arg(long, value_name = "PARAMETERS", requires = "config")]
    cmdline: Option<String>,
    /// The version of that kernel [default: the one in the file].
    #[arg(long, value_name = "VERSION", requires = "config")]
    kernel: Option<String>,
    /// Measure nothing: advise this machine by its settings alone.
    #[arg(long, group = "machine")]
    no_measure: bool,
    /// Exit code 1 if a rule of at least this importance holds.
    #[arg(long, value_name = "IMPORTANCE")]
    fail_on: Option<ImportanceName>,
    #[command(flatten)]
    proof: ProveArgs,
    #[command(flatten)]
    written: ReportFiles,
}

/// The goals, as on the command line.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum GoalName {
    /// Short delays of ordinary programs.
    Latency,
    /// Bounded delays of real-time threads.
    Realtime,
    /// Much work per time.
    Throughput,
    /// Parallel programs that wait for their slowest thread.
    Hpc,
    /// Run times that repeat.
    Benchmark,
    /// A virtual machine.
    VmGuest,
    /// A host of virtual machines.
    VmHost,
    /// A host of containers.
    ContainerHost,
    /// Little work while idle.
    Idle,
}

impl GoalName {
    fn goal(self) -> Goal {
        match self {
            Self::Latency => Goal::Latency,
            Self::Realtime => Goal::Realtime,
            Self::Throughput => Goal::Throughput,
            Self::Hpc => Goal::Hpc,
            Self::Benchmark => Goal::Benchmark,
            Self::VmGuest => Goal::VmGuest,
            Self::VmHost => Goal::VmHost,
            Self::ContainerHost => Goal::ContainerHost,
            Self::Idle => Goal::Idle,
        }
    }
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ImportanceName {
    Important,
    Useful,
    Minor,
}

impl ImportanceName {
    fn importance(self) -> Importance {
        match self {
            Self::Important => Importance::Important,
            Self::Useful => Importance::Useful,
            Self::Minor => Importance::Minor,
        }
    }
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
    let mut prover = args.proof.begin(output)?;
    let basis = basis(args, prover.as_mut(), output)?;
    let summary = basis.measured.as_ref().map(Measured::summary);
    let machine = Machine::new(&basis.facts, summary, args.cpus.clone());
    let advice = Advice::of(&machine, args.goal.goal());
    let mut doubts = basis.doubts;
    doubts.extend(machine.doubts());
    let (advice, outcome) = match prover {
        Some(prover) => prover.prove(advice, &machine, &mut doubts)?,
        None => (advice, Outcome::Done),
    };
    let advised =
        AdvisedMachine { facts: &basis.facts, summary, advice: &advice, doubts: &doubts };
    let (taken, tool) = (Recording::moment(), Recording::TOOL);
    let json = || ::report::advice_json(&advised, &taken, tool);
    show(output, &files, json, || ::report::advice_document(&advised), none)?;
    let limit = args.fail_on.map(ImportanceName::importance);
    let fails = |limit| advice.items.iter().any(|item| item.rule.importance <= limit);
    Ok(if limit.is_some_and(fails) { Outcome::Exceeded } else { outcome })
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
        return Ok(unmeasured(&Root::tree(dir)?));
    }
    if let Some(file) = &args.config {
        return Ok(unmeasured(&configuration(args, file)?));
    }
    if args.no_measure {
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
    let bytes = fs::read(file).map_err(failed)?;
    let release = args.kernel.as_deref();
    let line = args.cmdline.as_deref();
    let root = Root::configuration(&bytes, &shown, release, line);
    root.map_err(|unknown| {
        let hint = if release.is_none() { "; hint: --kernel VERSION" } else { "" };
        Failure::usage(format!("{unknown}{hint}"))
    })
}

/// A short check of this machine.
fn check(output: Output) -> Result<Measured, Failure> {
    let spec = |cpus: CpuSet, facts: &Facts| {
        let watched = isolate::choose_online(None, facts);
        Spec::Check(CheckSpec {
            rest_cpus: watched.unwrap_or_else(|_| cpus.clone()),
            cpus,
            idle_ns: IDLE,
            noise_ns: BUSY,
        })
    };
    let plan = Plan::choose(None, spec)?;
    let trace = Trace::Events { source: None, threads: Threads::Others, stores: false };
    measure(Plan { trace, ..plan }, output)
}
