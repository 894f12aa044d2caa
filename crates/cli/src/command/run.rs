//! `run`: a program on isolated CPUs, and its interruptions. Standard input, standard output and
//! the exit code are the program's; the report is printed to standard error.

use ::facts::{Facts, Root};
use isolate::{Pick, Reason};
use measure::{Control, Relay, Spec};
use recording::{Body, Picked, Recording, RunSpec, Words};
use session::{Plan, Trace};
use stats::Summary;

use crate::args::{Output, RunArgs, Source};
use crate::destination::Destination;
use crate::outcome::{Failure, Outcome};
use crate::printing::{say, say_json, say_lines};
use crate::remarks::Remarks;

pub(crate) fn run(args: &RunArgs, output: Output) -> Result<Outcome, Failure> {
    let (saved_to, json_to) = (args.destination(), args.json_destination());
    let mut files = saved_to.into_iter().chain(json_to);
    let output = output.beside(files.clone())?;
    if let Some(taken) = files.find(|to| to.is_stdout()) {
        return Err(taken.refuse("standard output is the program's; name a file"));
    }
    let facts = Facts::read(&Root::live());
    // Signals are forwarded to the program from before the first change of a setting until all
    // settings are restored.
    let control = Control::new().map_err(Failure::refused)?;
    let relay = Some(Relay::begin().map_err(Failure::refused)?);
    let control = Control { relay, ..control };
    let pick = isolate::pick_all(args.cpus.as_ref(), &facts)?;
    let source = args.source.map(Source::of_recording);
    let plan = Plan {
        access: args.claiming.access(),
        isolation: Some(args.free.at(args.fifo).options()),
        trace: Trace::Events { source, stores: false },
        ..Plan::new(spec(args, &pick), facts)
    };
    let mut remarks = Remarks { quiet: output.quiet };
    let claimed = plan.claim(&mut remarks)?;
    let recording = claimed.run(&control, &mut remarks).map_err(refused)?;
    // The program's exit code takes precedence over a failure to save.
    if let Some(Err(why)) = saved_to.map(|to| to.save(&recording)) {
        say(why);
    }
    if let Some(Err(why)) = json_to.map(|to| write_json(&recording, to)) {
        say(why);
    }
    tell(&recording, output)?;
    match &recording.body {
        Body::Run { series, .. } => Ok(Outcome::Program(series.ended.code())),
        _ => Err(Failure::bug("unexpected kind of recording")),
    }
}

fn spec(args: &RunArgs, pick: &Pick) -> Spec {
    Spec::Run(RunSpec {
        command: Words::new(args.command.iter().cloned()),
        cpus: pick.cpus.clone(),
        picked: picked(pick.why),
        fifo: Some(args.fifo).filter(|&priority| priority > 0),
        top: args.top,
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

fn write_json(recording: &Recording, to: Destination) -> Result<(), Failure> {
    let json = ::report::json(recording, &Summary::of(recording), false);
    let json = json.map_err(Failure::bug)?;
    to.write(&(json + "\n"))
}

fn tell(recording: &Recording, output: Output) -> Result<(), Failure> {
    if output.json {
        let summary = Summary::of(recording);
        let json = ::report::json(recording, &summary, output.series);
        let json = json.map_err(Failure::bug)?;
        say_json(&json);
    } else if !output.quiet {
        say_lines(&::report::text(recording));
    }
    Ok(())
}
