//! `noise`: how much a spinning CPU loses.

use measure::Spec;
use recording::NoiseSpec;

use crate::args::{NoiseArgs, Output};
use crate::measuring::{self, Place};
use crate::outcome::{Failure, Outcome};

pub(crate) fn run(args: &NoiseArgs, output: Output) -> Result<Outcome, Failure> {
    let place = Place::find(&args.place, isolate::choose)?;
    let spec = Spec::Noise(NoiseSpec {
        cpus: place.cpus.clone(),
        duration_ns: args.duration,
        threshold_ns: args.threshold,
        fifo: args.fifo,
        stop_above_ns: None,
    });
    measuring::run(&place, &spec, &args.place, args.limits, output)
}
