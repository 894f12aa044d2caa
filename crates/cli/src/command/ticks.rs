//! `ticks`: timer interrupts per second on each CPU, live.

use ::facts::{Facts, Root};
use measure::Spec;
use recording::{Body, TicksSpec};
use session::Plan;

use crate::args::{Output, TicksArgs};
use crate::measuring::finish;
use crate::outcome::{Failure, Outcome};
use crate::printing::print;
use crate::terminal::Terminal;

pub(crate) fn run(args: &TicksArgs, output: Output) -> Result<Outcome, Failure> {
    let output = output.beside(args.place.destination())?;
    let facts = Facts::read(&Root::live());
    let spec = TicksSpec {
        cpus: isolate::choose_online(args.place.cpus.as_ref(), &facts)?,
        interval_ns: args.interval,
        count: args.count,
    };
    let plan = Plan::new(Spec::Ticks(spec.clone()), facts);
    measure::refuse(&plan.spec, &plan.facts)?;
    let live = output.is_text().then_some(report::ticks_sample as _);
    let mut terminal = Terminal::new(output.quiet, live)?;
    if output.is_text() && !print(&report::ticks_header(&plan.facts, &spec))? {
        return Ok(Outcome::Done);
    }
    let claimed = plan.claim(&mut terminal)?;
    let recording = claimed.run(&terminal.control(), &mut terminal)?;
    let close = || match &recording.body {
        Body::Ticks { series, .. } => {
            report::ticks_close(&recording.facts, series, &recording.doubts)
        }
        _ => String::new(),
    };
    finish(&recording, &args.place, output, close)
}
