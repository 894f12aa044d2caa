//! `ticks`: timer interrupts per second on each CPU, live.

use ::facts::{Facts, Root};
use recording::{Body, Spec, TicksSpec};
use session::Plan;
use units::Nanos;

use crate::args::{Output, Where, seconds};
use crate::measuring::finish;
use crate::outcome::{Failure, Outcome};
use crate::printing::print;
use crate::terminal::Terminal;

#[derive(Debug, clap::Args)]
pub(crate) struct TicksArgs {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Time between two readings, in seconds or with a unit (500ms).
    #[arg(short, long, value_name = "TIME", default_value = "1", value_parser = seconds)]
    pub(crate) interval: Nanos,
    /// Number of readings [default: until Ctrl-C].
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
}

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
    let close = || {
        let Body::Ticks { series, .. } = &recording.body else { return String::new() };
        report::ticks_close(&recording.facts, series, &recording.doubts)
    };
    finish(&recording, &args.place, output, close)
}
