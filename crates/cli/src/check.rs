//! `check`: overview of this machine.

use ::facts::Facts;
use measure::Spec;
use recording::CheckSpec;
use units::CpuSet;

use crate::args::{CheckArgs, Output};
use crate::blaming::Blaming;
use crate::destination;
use crate::measuring::{self, Place};
use crate::outcome::{Failure, Outcome};
use crate::terminal::Terminal;

pub(crate) fn run(args: &CheckArgs, output: Output) -> Result<Outcome, Failure> {
    let output = destination::check(args.place.destination(), output)?;
    let (place, spec) =
        Place::find_for(&args.place, |cpus, facts| spec(args, cpus, facts))?;
    let claimed = args.claiming.claim_for(&spec, &place.cpus, output.quiet)?;
    let mut terminal = Terminal::new(output.quiet, None)?;
    let blaming = Blaming { source: args.source, trace: false };
    let mut recording = blaming.measure(&place, &spec, &mut terminal)?;
    claimed.doubt(&mut recording);
    let text = || ::report::text(&recording);
    let outcome = measuring::finish(&recording, &args.place, output, text)?;
    Ok(measuring::judge(outcome, &recording, args.limits.of_noise()))
}

/// Timer interrupts are counted on all online CPUs by default.
fn spec(args: &CheckArgs, cpus: CpuSet, facts: &Facts) -> Spec {
    let watched = isolate::watch(args.place.cpus.as_ref(), facts);
    Spec::Check(CheckSpec {
        rest_cpus: watched.unwrap_or_else(|_| cpus.clone()),
        cpus,
        idle_ns: args.rest,
        noise_ns: args.duration,
    })
}
