//! `noise`: how much a spinning CPU loses.

use measure::Spec;
use recording::NoiseSpec;

use crate::args::{NoiseArgs, Output};
use crate::measuring::{Place, finish, judge};
use crate::outcome::{Failure, Outcome};
use crate::terminal::Terminal;

pub(crate) fn run(args: &NoiseArgs, output: Output) -> Result<Outcome, Failure> {
    let place = Place::find(&args.place, isolate::choose)?;
    let spec = Spec::Noise(NoiseSpec {
        cpus: place.cpus.clone(),
        duration_ns: args.duration,
        threshold_ns: args.threshold,
        fifo: args.fifo,
    });
    let mut terminal = Terminal::new(output.quiet, None)?;
    let recording = place.measure(&spec, &mut terminal)?;
    let outcome = finish(&recording, &args.place, output, &report::text(&recording))?;
    Ok(judge(outcome, &recording, args.limits))
}
