//! `latency`: how late a timer wakes a thread.

use measure::Spec;
use recording::LatencySpec;
use stats::Limits;

use crate::args::{LatencyArgs, Output};
use crate::measuring::{self, Place};
use crate::outcome::{Failure, Outcome};
use crate::terminal::Terminal;

pub(crate) fn run(args: &LatencyArgs, output: Output) -> Result<Outcome, Failure> {
    let place = Place::find(&args.place, isolate::choose)?;
    let spec = Spec::Latency(LatencySpec {
        cpus: place.cpus.clone(),
        interval_ns: args.interval,
        duration_ns: args.duration,
        timer: args.timer.of_recording(),
        fifo: args.fifo,
    });
    let mut terminal = Terminal::new(output.quiet, None)?;
    let recording = place.measure(&spec, &mut terminal)?;
    let text = || report::text(&recording);
    let outcome = measuring::finish(&recording, &args.place, output, text)?;
    let limits = Limits { late: args.max_late, ..Limits::default() };
    Ok(measuring::judge(outcome, &recording, limits))
}
