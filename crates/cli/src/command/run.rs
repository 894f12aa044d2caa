//! `run`: a program on isolated CPUs, and its interruptions. Standard input, standard output and
//! the exit code are the program's; the report is printed to standard error.

use std::ffi::OsString;
use std::path::PathBuf;

use ::facts::{Facts, Root};
use isolate::{Gate, Pick, Reason};
use measure::{Control, Relay};
use recording::{Body, Picked, RunSpec, Spec, Words};
use session::{Plan, ReusedTrace, Threads, Trace};
use units::CpuSet;

use crate::args::{MomentOptions, Output, Saving, SourceOption, cpu_list, outputs};
use crate::claiming::Claiming;
use crate::destination::Destination;
use crate::file_pattern::file_name;
use crate::forced_end;
use crate::isolating::Free;
use crate::measured::Measured;
use crate::measuring::{judge, write};
use crate::outcome::{Failure, Outcome};
use crate::printing::{say, say_document, say_json};
use crate::remarks::Remarks;
use crate::repeating::orders::{Orders, PairCpu};
use crate::saved;

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Program and its arguments.
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
    /// CPUs to run it on, as 2-5,8 [default: the first nohz_full CPU, else the first isolated
    /// one, else the one with the fewest interrupts since boot, but not CPU 0].
    #[arg(short, long, value_name = "LIST", value_parser = cpu_list, alias = "cpu")]
    pub(crate) cpus: Option<CpuSet>,
    /// SCHED_FIFO priority of all its threads and processes, 1 to 99 (root or CAP_SYS_NICE); 0:
    /// SCHED_OTHER.
    ///
    /// If real-time threads of the program keep one of its own threads from running for 3 s, or any
    /// other task for 20 s, the program becomes an ordinary task, and a warning is printed.
    #[arg(long, value_name = "PRIO", default_value = "0",
        value_parser = clap::value_parser!(u8).range(0..=99))]
    pub(crate) fifo: u8,
    /// Save the recording with the command line to FILE, for `noisefloor report`; or write its report:
    /// FILE.html, FILE.md, FILE.svg. Can be repeated.
    #[arg(short, long, value_name = "FILE", value_parser = file_name())]
    pub(crate) output: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) saving: Saving,
    /// Write the JSON object that --json prints to FILE; the text report is printed unless
    /// --quiet is given.
    #[arg(long, value_name = "FILE", conflicts_with = "json", value_parser = file_name())]
    pub(crate) json_to: Option<PathBuf>,
    /// Run it again whenever standard input orders it (`repeat`).
    #[arg(long, hide = true)]
    pub(crate) again: bool,
    /// Run it on the first of these CPUs or on the last one, each time behind a gate (`repeat --duet`).
    #[arg(long, hide = true, requires_all = ["again", "cpus"])]
    pub(crate) gated: bool,
    /// Number of interruptions to list, the longest first.
    #[arg(short = 'n', long, value_name = "N", default_value = "10")]
    pub(crate) top: u32,
    #[command(flatten)]
    pub(crate) source: SourceOption,
    #[command(flatten)]
    pub(crate) moments: MomentOptions,
    #[command(flatten)]
    pub(crate) free: Free,
    #[command(flatten)]
    pub(crate) claiming: Claiming,
}

impl RunArgs {
    /// Where the recording and its report are written.
    pub(crate) fn files(&self) -> Vec<Destination<'_>> {
        outputs(&self.output)
    }

    /// Where the JSON object is written.
    pub(crate) fn json_destination(&self) -> Option<Destination<'_>> {
        self.json_to.as_deref().map(|file| Destination::new("--json-to", file))
    }
}

pub(crate) fn run(args: &RunArgs, output: Output) -> Result<Outcome, Failure> {
    let mut reused = ReusedTrace::default();
    let turn = || Turn { cpus: args.cpus.as_ref(), gate: None };
    if !args.again {
        return run_once(args, turn(), output, &mut reused);
    }
    let mut orders = Orders::take().map_err(Failure::refused)?;
    if args.gated {
        return run_gated(args, output, &mut orders);
    }
    loop {
        let outcome = run_once(args, turn(), output, &mut reused)?;
        if !orders.is_another(&mut reused).map_err(Failure::refused)? {
            return Ok(outcome);
        }
    }
}

/// What differs from one run to the next.
struct Turn<'a> {
    cpus: Option<&'a CpuSet>,
    gate: Option<Gate>,
}

/// The runs of one of two programs that run at once.
fn run_gated(
    args: &RunArgs,
    output: Output,
    orders: &mut Orders,
) -> Result<Outcome, Failure> {
    let cpus = args.cpus.iter().flat_map(CpuSet::iter).map(CpuSet::from);
    let cpus: Vec<CpuSet> = cpus.collect();
    let (Some(first), Some(second)) = (cpus.first(), cpus.last()) else {
        return Err(Failure::usage("--gated: expected CPUs"));
    };
    let mut outcome = Outcome::Done;
    while let Some(cpu) = orders.next_cpu().map_err(Failure::refused)? {
        let cpus = match cpu {
            PairCpu::First => first,
            PairCpu::Second => second,
        };
        let gate = orders.gate().map_err(Failure::refused)?;
        let turn = Turn { cpus: Some(cpus), gate: Some(gate) };
        outcome = run_once(args, turn, output, &mut ReusedTrace::default())?;
        orders.saved().map_err(Failure::refused)?;
    }
    Ok(outcome)
}

/// One run; the next one can reuse its trace.
fn run_once(
    args: &RunArgs,
    turn: Turn<'_>,
    output: Output,
    reused: &mut ReusedTrace,
) -> Result<Outcome, Failure> {
    let (files, json_to) = (args.files(), args.json_destination());
    let trace_to = args.moments.checked_destination()?;
    let mut all = files.iter().copied().chain(json_to).chain(trace_to);
    let output = output.beside(all.clone())?;
    if let Some(taken) = all.find(|to| to.is_stdout()) {
        return Err(taken.refuse("standard output is the program's; name a file"));
    }
    let facts = Facts::read(&Root::live());
    let pick = isolate::pick_all(turn.cpus, &facts)?;
    let source = args.source.of_recording();
    let stores = args.moments.has_trace() || args.moments.limit().is_some();
    let plan = Plan {
        access: args.claiming.access(),
        isolation: Some(args.free.at(args.fifo).plan()),
        trace: Trace::Events { source, threads: Threads::Marked, stores },
        ..Plan::new(spec(args, &pick), facts)
    };
    let mut remarks = Remarks { quiet: output.quiet };
    let claimed = plan.claim(&mut remarks)?;
    // Signals are forwarded to the program from before the first change of a setting until all
    // settings are restored.
    let relay = Some(Relay::begin().map_err(Failure::refused)?);
    let control = Control::new().map_err(Failure::refused)?;
    let control = Control { relay, gate: turn.gate, ..control };
    let measured = claimed.run_with(reused, &control, &mut remarks).map_err(refused);
    // From here on they are for noisefloor, which has a result to report. The next run has a relay of
    // its own.
    let _until_reported = match args.again {
        true => control.relay,
        false => {
            let _ = control.relay.map(forced_end::watch);
            None
        }
    };
    let measured = Measured::new(measured?);
    // The program's exit code takes precedence over a failure to save.
    if let Err(why) = args.moments.act(measured.recording()) {
        say(why);
    }
    for why in files.iter().filter_map(|to| write(&measured, *to).err()) {
        say(why);
    }
    if let Some(Err(why)) = json_to.map(|to| write_json(&measured, to)) {
        say(why);
    }
    if let Some(Err(why)) = output.save.then(|| saved::append(&measured, output)) {
        say(why);
    }
    print_report(&measured, output)?;
    let Body::Run { series, .. } = &measured.recording().body else {
        return Err(Failure::bug("unexpected kind of recording"));
    };
    Ok(outcome(&measured, series.ended.code()))
}

/// The exit code of the program, unless it was ended by an interruption above the limit, or succeeded in
/// spite of one.
fn outcome(measured: &Measured, code: u8) -> Outcome {
    let own = Outcome::Program(code);
    let was_ended = measured.recording().body.trigger().keep.is_none();
    let is_exceeded = judge(Outcome::Done, measured, &[]) == Outcome::Exceeded;
    if is_exceeded && (was_ended || code == 0) { Outcome::Exceeded } else { own }
}

fn spec(args: &RunArgs, pick: &Pick) -> Spec {
    Spec::Run(RunSpec {
        command: Words::new(args.command.iter().cloned()),
        cpus: pick.cpus.clone(),
        picked: picked(pick.why),
        fifo: Some(args.fifo).filter(|&priority| priority > 0),
        top: args.top,
        trigger: args.moments.trigger(),
    })
}

fn picked(why: Reason) -> Picked {
    match why {
        Reason::Requested => Picked::Asked,
        Reason::NohzFull => Picked::NohzFull,
        Reason::Isolated => Picked::Isolated,
        Reason::LeastInterrupted => Picked::LeastInterrupted,
    }
}

fn refused(error: session::Error) -> Failure {
    Failure::with_hint(error, "without --fifo, the program is an ordinary task")
}

fn write_json(measured: &Measured, to: Destination) -> Result<(), Failure> {
    to.write(&(measured.json(false)? + "\n"))
}

fn print_report(measured: &Measured, output: Output) -> Result<(), Failure> {
    if output.json {
        say_json(&measured.json(output.series)?);
    } else if !output.quiet {
        say_document(&measured.document(), output.view());
    }
    Ok(())
}
