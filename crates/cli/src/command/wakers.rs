//! `wakers`: the threads that wake up most often, for how long they run, and which threads they
//! preempt.

use ::facts::{Facts, Root};
use recording::{Spec, WakersSpec};
use session::Plan;

use crate::args::{Output, WakersArgs, Where};
use crate::measuring::{finish, measure};
use crate::outcome::{Failure, Outcome};

pub(crate) fn run(args: &WakersArgs, output: Output) -> Result<Outcome, Failure> {
    let asked = Where { cpus: args.cpus.clone(), output: args.output.clone() };
    let output = output.beside(asked.destination())?;
    let facts = Facts::read(&Root::live());
    let cpus = isolate::watch(args.cpus.as_ref(), &facts)?;
    let spec = Spec::Wakers(WakersSpec {
        cpus: args.cpus.as_ref().map(|_| cpus),
        duration_ns: args.duration,
        top: args.top,
        process: args.pid,
    });
    let recording = measure(Plan::new(spec, facts), output)?;
    finish(&recording, &asked, output, || report::text(&recording))
}
