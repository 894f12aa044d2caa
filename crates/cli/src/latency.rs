//! `latency`: timer wake-up latency.

use measure::Spec;
use recording::LatencySpec;
use stats::Limits;
use units::CpuSet;

use crate::args::{LatencyArgs, Output};
use crate::destination;
use crate::isolating::{Free, kept_free};
use crate::measuring::{self, Place};
use crate::outcome::{Failure, Outcome};
use crate::terminal::Terminal;

pub(crate) fn run(args: &LatencyArgs, output: Output) -> Result<Outcome, Failure> {
    let output = destination::check(args.place.destination(), output)?;
    let (place, spec) = Place::find_for(&args.place, |cpus, _| spec(args, cpus))?;
    measure::refuse_occupied(&spec)?;
    let mut terminal = Terminal::new(output.quiet, None)?;
    let free = Free::from(args.kept_off);
    let recording =
        kept_free(place.cpus.clone(), free, &place.facts, output.quiet, || {
            place.measure(&spec, &mut terminal)
        })?;
    let text = || report::text(&recording);
    let outcome = measuring::finish(&recording, &args.place, output, text)?;
    let limits = Limits { late: args.max_late, ..Limits::default() };
    Ok(measuring::judge(outcome, &recording, limits))
}

fn spec(args: &LatencyArgs, cpus: CpuSet) -> Spec {
    Spec::Latency(LatencySpec {
        cpus,
        interval_ns: args.interval,
        duration_ns: args.duration,
        timer: args.timer.of_recording(),
        fifo: args.fifo,
    })
}
