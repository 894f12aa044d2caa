//! `check`: one look at this machine.

use measure::Spec;
use recording::CheckSpec;

use crate::args::{CheckArgs, Output};
use crate::measuring::{self, Place};
use crate::outcome::{Failure, Outcome};

pub(crate) fn run(args: &CheckArgs, output: Output) -> Result<Outcome, Failure> {
    let place = Place::find(&args.place, isolate::choose)?;
    let spec = Spec::Check(CheckSpec {
        cpus: place.cpus.clone(),
        rest_cpus: isolate::watch(args.place.cpus.as_ref(), &place.facts)?,
        idle_ns: args.rest,
        noise_ns: args.duration,
    });
    measuring::run(&place, &spec, &args.place, args.limits, output)
}
