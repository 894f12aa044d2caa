//! `ticks`: timer interrupts per second on each CPU, live.

use ::facts::{Facts, Root};
use recording::{Spec, TicksSpec};
use report::Document;
use session::Plan;
use summary::Summary;
use units::Nanos;

use crate::args::{Output, Where, seconds};
use crate::measured::Measured;
use crate::measuring::finish_with;
use crate::outcome::{Failure, Outcome};
use crate::printing::{print, print_document};
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
    let files = args.place.saved.files();
    let output = output.beside(files.clone())?;
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
    let measured = Measured::new(claimed.run(&terminal.control(), &mut terminal)?);
    finish_with(&measured, &files, output, || {
        print(
            "
",
        )?;
        print_document(&close(&measured), output.view())
    })
}

/// The report below the readings.
fn close(measured: &Measured) -> Document {
    match (measured.summary(), measured.recording()) {
        (Summary::Ticks(summary), of) => {
            report::ticks_close(&of.facts, summary, &of.doubts)
        }
        _ => Document::default(),
    }
}
