//! `ticks`: timer interrupts per second on each CPU, live.

use measure::Spec;
use recording::{Body, TicksSpec};

use crate::args::{Output, TicksArgs};
use crate::destination;
use crate::measuring::{Place, finish};
use crate::outcome::{Failure, Outcome};
use crate::printing::print;
use crate::terminal::Terminal;

pub(crate) fn run(args: &TicksArgs, output: Output) -> Result<Outcome, Failure> {
    let output = destination::check(args.place.destination(), output)?;
    let place = Place::find(&args.place, isolate::watch)?;
    let spec = TicksSpec {
        cpus: place.cpus.clone(),
        interval_ns: args.interval,
        count: args.count,
    };
    measure::refuse(&Spec::Ticks(spec.clone()), &place.facts)?;
    let live = output.is_text().then_some(report::ticks_sample as _);
    let mut terminal = Terminal::new(output.quiet, live)?;
    if output.is_text() && !print(&report::ticks_header(&place.facts, &spec))? {
        return Ok(Outcome::Done);
    }
    let recording = place.measure(&Spec::Ticks(spec), &mut terminal)?;
    let close = || match &recording.body {
        Body::Ticks { series, .. } => {
            report::ticks_close(&recording.facts, series, &recording.doubts)
        }
        _ => String::new(),
    };
    finish(&recording, &args.place, output, close)
}
