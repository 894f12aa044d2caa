//! `wakers`: the threads that wake up most often, for how long they run, and which threads they
//! preempt.

use blame::WakerWatch;
use measure::Wait;
use recording::WakersSpec;

use crate::args::{Output, WakersArgs, Where};
use crate::destination;
use crate::measuring::{Place, finish};
use crate::outcome::{Failure, Outcome};
use crate::terminal::Terminal;

pub(crate) fn run(args: &WakersArgs, output: Output) -> Result<Outcome, Failure> {
    let asked = Where { cpus: args.cpus.clone(), output: args.output.clone() };
    let output = destination::check(asked.destination(), output)?;
    let wait = Wait::new(args.duration)?;
    let place = Place::find(&asked, isolate::watch)?;
    let spec = WakersSpec {
        cpus: args.cpus.as_ref().map(|_| place.cpus.clone()),
        duration_ns: args.duration,
        top: args.top,
        process: args.pid,
    };
    let mut terminal = Terminal::new(output.quiet, None)?;
    let watch = WakerWatch::start(&spec, &place.facts)?;
    let is_ended_early =
        wait.pass(&terminal.control(), &mut terminal, "counting wake-ups");
    terminal.clear();
    let recording = watch.end(is_ended_early)?;
    finish(&recording, &asked, output, || report::text(&recording))
}
