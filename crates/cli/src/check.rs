//! `check`: one look at this machine.

use measure::Spec;
use recording::CheckSpec;

use crate::args::{CheckArgs, Output};
use crate::blaming::Blaming;
use crate::measuring::{self, Place};
use crate::outcome::{Failure, Outcome};
use crate::terminal::Terminal;

pub(crate) fn run(args: &CheckArgs, output: Output) -> Result<Outcome, Failure> {
    let place = Place::find(&args.place, isolate::choose)?;
    let _claim = isolate::claim(&place.cpus)?;
    let spec = Spec::Check(CheckSpec {
        cpus: place.cpus.clone(),
        rest_cpus: isolate::watch(args.place.cpus.as_ref(), &place.facts)?,
        idle_ns: args.rest,
        noise_ns: args.duration,
    });
    let mut terminal = Terminal::new(output.quiet, None)?;
    let blaming = Blaming { source: args.source, trace: false };
    let recording = blaming.measure(&place, &spec, &mut terminal)?;
    let text = || ::report::text(&recording);
    let outcome = measuring::finish(&recording, &args.place, output, text)?;
    Ok(measuring::judge(outcome, &recording, args.limits.of_noise()))
}
