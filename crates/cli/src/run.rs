//! `run`: a program on isolated CPUs, and its interruptions. Standard input, standard output and
//! the exit code are the program's; the report is printed to standard error.

use ::facts::{Facts, Root};
use blame::{Threads, Watcher};
use isolate::{Elsewhere, Pick, Reason};
use measure::{Control, Event, Observer, Relay, Spec};
use recording::{Body, Picked, Recording, RunSpec, Words};
use units::chain;

use crate::args::{Output, RunArgs, Source};
use crate::destination::{self, Destination};
use crate::isolating::{kept_free, remark};
use crate::outcome::{Failure, Outcome};
use crate::printing::{say, say_json, say_lines};

pub(crate) fn run(args: &RunArgs, output: Output) -> Result<Outcome, Failure> {
    let (saved_to, json_to) = (args.destination(), args.json_destination());
    let mut files = saved_to.into_iter().chain(json_to);
    let output = destination::check(files.clone(), output)?;
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
    let claimed = args.claiming.claim(&pick.cpus, output.quiet)?;
    let free = args.free.at(args.fifo);
    let mut recording = kept_free(pick.cpus.clone(), free, &facts, output.quiet, || {
        watched(args, &pick, &facts, &control, output.quiet)
    })?;
    claimed.doubt(&mut recording);
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

/// Prints doubts of the running program, unless it is quiet.
struct Doubts(bool);

impl Observer for Doubts {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Doubt(doubt) = event {
            remark(self.0, &doubt.to_string());
        }
    }
}

/// Runs the program while the kernel's events are traced with the best available source. The
/// threads of noisefloor stay off the program's CPUs, if there are others.
fn watched(
    args: &RunArgs,
    pick: &Pick,
    facts: &Facts,
    control: &Control,
    quiet: bool,
) -> Result<Recording, Failure> {
    let spec = Spec::Run(RunSpec {
        command: Words::new(args.command.iter().cloned()),
        cpus: pick.cpus.clone(),
        picked: picked(pick.why),
        fifo: Some(args.fifo).filter(|&priority| priority > 0),
        top: args.top,
    });
    let _off = Elsewhere::than(pick.cpus.clone());
    let source = args.source.map(Source::of_recording);
    let watcher = Watcher::open_for(&pick.cpus, source, Threads::Marked, facts)?;
    let watching = watcher.begin();
    let recording = measure::run(&spec, facts, control, &mut Doubts(quiet));
    let events = watching.end();
    let mut recording = recording.map_err(refused)?;
    events.blame_in(&mut recording, false);
    Ok(recording)
}

fn picked(why: Reason) -> Picked {
    match why {
        Reason::Asked => Picked::Asked,
        Reason::NohzFull => Picked::NohzFull,
        Reason::Isolated => Picked::Isolated,
        Reason::LeastInterrupted => Picked::LeastInterrupted,
    }
}

fn refused(error: measure::Error) -> Failure {
    if error.kind() != measure::Kind::Isolate(isolate::Kind::Privilege) {
        return error.into();
    }
    let help = "hint: without --fifo, the program is an ordinary task";
    Failure::refused(format!("{}; {help}", chain(&error)))
}

fn write_json(recording: &Recording, to: Destination) -> Result<(), Failure> {
    let json = ::report::json(recording, false).map_err(Failure::bug)?;
    to.write(&(json + "\n"))
}

fn tell(recording: &Recording, output: Output) -> Result<(), Failure> {
    if output.json {
        let json = ::report::json(recording, output.series).map_err(Failure::bug)?;
        say_json(&json);
    } else if !output.quiet {
        say_lines(&::report::text(recording));
    }
    Ok(())
}
