//! `run`: any program on CPUs of its own, and what it suffered. Standard input and output are
//! the program's, and so is the exit code; what is to be told goes to standard error.

use ::facts::{Facts, Root};
use blame::{Threads, Watcher};
use isolate::{Elsewhere, Pick, Reason};
use measure::{Relay, Spec, Stop, Watch};
use recording::{Body, Doubt, Picked, Recording, RunSpec, Words};
use stats::Summary;

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
    // Signals are the program's, from before anything is changed until all is as it was.
    let mut relayed = Relayed::begin(output.quiet)?;
    let pick = isolate::pick_all(args.cpus.as_ref(), &facts)?;
    let claimed = args.claiming.claim(&pick.cpus, output.quiet)?;
    let free = args.free.at(args.fifo);
    let mut recording = kept_free(pick.cpus.clone(), free, &facts, output.quiet, || {
        watched(args, &pick, &facts, &mut relayed)
    })?;
    claimed.doubt(&mut recording);
    // The program's exit code is worth more than that this could not be saved.
    if let Some(Err(why)) = saved_to.map(|to| to.save(&recording)) {
        say(why);
    }
    if let Some(Err(why)) = json_to.map(|to| write_json(&recording, to)) {
        say(why);
    }
    tell(&recording, output)?;
    match &recording.body {
        Body::Run { series, .. } => Ok(Outcome::Program(series.ended.code())),
        _ => Err(Failure::bug("another kind of recording")),
    }
}

/// Passes signals on, and ends nothing.
struct Relayed {
    stop: Stop,
    relay: Relay,
    is_quiet: bool,
}

impl Relayed {
    fn begin(is_quiet: bool) -> Result<Self, Failure> {
        let stop = Stop::new().map_err(Failure::refused)?;
        Ok(Self { stop, relay: Relay::begin().map_err(Failure::refused)?, is_quiet })
    }
}

impl Watch for Relayed {
    fn stop(&self) -> &Stop {
        &self.stop
    }

    fn relay(&self) -> Option<&Relay> {
        Some(&self.relay)
    }

    fn doubt(&self, doubt: &Doubt) {
        remark(self.is_quiet, &doubt.to_string());
    }
}

/// Runs the program while the kernel's events are watched, by whoever can. This tool's own
/// threads stay off the program's CPUs, where there is another.
fn watched(
    args: &RunArgs,
    pick: &Pick,
    facts: &Facts,
    relayed: &mut Relayed,
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
    let watcher = Watcher::open_for(&pick.cpus, source, Threads::Marked, facts);
    let watcher = watcher.map_err(Failure::refused)?;
    let (recording, events) =
        watcher.watch(|| measure::run(&spec, facts, relayed).map_err(refused));
    let mut recording = recording?;
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
    match error.kind() {
        measure::Kind::Isolate(isolate::Kind::Privilege) => {
            Failure::refused(format!("{error}; without --fifo it is an ordinary task"))
        }
        _ => error.into(),
    }
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
