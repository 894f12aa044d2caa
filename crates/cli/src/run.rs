//! `run`: any program on a CPU of its own, and what it suffered. Standard input and output are
//! the program's, and so is the exit code; what is to be told goes to standard error.

use ::facts::{Facts, Root};
use blame::{Threads, Watcher};
use isolate::{Elsewhere, Pick, Reason};
use measure::{Relay, Spec, Stop, Watch};
use recording::{Body, Picked, Recording, RunSpec, Words};
use units::CpuSet;

use crate::args::{Output, RunArgs, Source};
use crate::isolating::kept_free;
use crate::measuring::refuse_unwritable;
use crate::outcome::{Failure, Outcome};

pub(crate) fn run(args: &RunArgs, output: Output) -> Result<Outcome, Failure> {
    if let Some(file) = &args.output {
        refuse_unwritable("-o", file)?;
    }
    let facts = Facts::read(&Root::live());
    // Signals are the program's, from before anything is changed until all is as it was.
    let mut relayed = Relayed::begin()?;
    let pick = isolate::pick(args.cpu, &facts)?;
    let _claim = isolate::claim(&one(&pick))?;
    let free = args.free.at(args.fifo);
    let recording = kept_free(pick.cpu, free, &facts, output.quiet, || {
        watched(args, &pick, &facts, &mut relayed)
    })?;
    if let Some(file) = &args.output {
        // The program's exit code is worth more than that this could not be saved.
        if let Err(why) = recording.save(file) {
            eprintln!("noisefloor: {why}");
        }
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
}

impl Relayed {
    fn begin() -> Result<Self, Failure> {
        let stop = Stop::new().map_err(Failure::refused)?;
        Ok(Self { stop, relay: Relay::begin().map_err(Failure::refused)? })
    }
}

impl Watch for Relayed {
    fn stop(&self) -> &Stop {
        &self.stop
    }

    fn relay(&self) -> Option<&Relay> {
        Some(&self.relay)
    }
}

fn one(pick: &Pick) -> CpuSet {
    [pick.cpu].into_iter().collect()
}

/// Runs the program while the kernel's events are watched, by whoever can. This tool's own
/// threads stay off the program's CPU, where there is another.
fn watched(
    args: &RunArgs,
    pick: &Pick,
    facts: &Facts,
    relayed: &mut Relayed,
) -> Result<Recording, Failure> {
    let spec = Spec::Run(RunSpec {
        command: Words::new(args.command.iter().cloned()),
        cpu: pick.cpu,
        picked: picked(pick.why),
        fifo: Some(args.fifo).filter(|&priority| priority > 0),
        top: args.top,
    });
    let _off = Elsewhere::than(pick.cpu);
    let source = args.source.map(Source::of_recording);
    let watcher = Watcher::open_for(&one(pick), source, Threads::Marked, facts);
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
            Failure::refused(format!("{error}; --fifo 0 runs it as an ordinary task"))
        }
        _ => error.into(),
    }
}

fn tell(recording: &Recording, output: Output) -> Result<(), Failure> {
    if output.json {
        let json = ::report::json(recording, output.series).map_err(Failure::bug)?;
        eprintln!("{json}");
    } else if !output.quiet {
        eprint!("{}", ::report::text(recording));
    }
    Ok(())
}
