//! `check`: overview of this machine.

use ::facts::Facts;
use measure::Spec;
use recording::CheckSpec;
use session::{Plan, Trace};
use units::CpuSet;

use crate::args::{CheckArgs, Output, Source};
use crate::measuring;
use crate::outcome::{Failure, Outcome};

pub(crate) fn run(args: &CheckArgs, output: Output) -> Result<Outcome, Failure> {
    let output = output.beside(args.place.destination())?;
    let cpus = args.place.cpus.as_ref();
    let plan = Plan::choose(cpus, |cpus, facts| spec(args, cpus, facts))?;
    let source = args.source.map(Source::of_recording);
    let trace = Trace::Events { source, stores: false };
    let access = args.claiming.access();
    let plan = Plan { access, trace, ..plan };
    let recording = measuring::measure(plan, output)?;
    let text = || ::report::text(&recording);
    let outcome = measuring::finish(&recording, &args.place, output, text)?;
    Ok(measuring::judge(outcome, &recording, args.limits.of_noise()))
}

/// Timer interrupts are counted on all online CPUs by default.
fn spec(args: &CheckArgs, cpus: CpuSet, facts: &Facts) -> Spec {
    let watched = isolate::choose_online(args.place.cpus.as_ref(), facts);
    Spec::Check(CheckSpec {
        rest_cpus: watched.unwrap_or_else(|_| cpus.clone()),
        cpus,
        idle_ns: args.rest,
        noise_ns: args.duration,
    })
}
