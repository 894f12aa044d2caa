//! `wakers`: the threads that wake up most often, for how long they run, and which threads they
//! preempt.

use ::facts::{Facts, Root};
use measure::Wait;
use recording::WakersSpec;

use crate::args::{Output, WakersArgs, Where};
use crate::measuring::finish;
use crate::outcome::{Failure, Outcome};
use crate::terminal::Terminal;

pub(crate) fn run(args: &WakersArgs, output: Output) -> Result<Outcome, Failure> {
    let asked = Where { cpus: args.cpus.clone(), output: args.output.clone() };
    let output = output.beside(asked.destination())?;
    let wait = Wait::new(args.duration)?;
    let facts = Facts::read(&Root::live());
    let cpus = isolate::choose_online(args.cpus.as_ref(), &facts)?;
    let spec = WakersSpec {
        cpus: args.cpus.as_ref().map(|_| cpus),
        duration_ns: args.duration,
        top: args.top,
        process: args.pid,
    };
    let mut terminal = Terminal::new(output.quiet, None)?;
    let control = terminal.control();
    let recording = session::count_wakeups(&spec, wait, &facts, &control, &mut terminal)?;
    finish(&recording, &asked, output, || report::text(&recording))
}
