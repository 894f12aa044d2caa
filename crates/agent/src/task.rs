//! Executes an order: prepares the guest, and measures with the code of the host.

use std::fs::File;
use std::io::{BufReader, ErrorKind};

use agent::{Answer, Order, Symbols, Task};
use facts::{Facts, Root};
use measure::{Control, mark};
use recording::{Spec, TicksSpec};
use session::Silent;

use crate::error::Error;
use crate::guest::{
    background_load, environment, quiescence, services, settings, unthrottled,
};
use crate::{program, traced};

/// The kernel's list of its functions.
const KALLSYMS: &str = "/proc/kallsyms";

/// Executes the task.
///
/// # Errors
/// What failed, and why.
pub(crate) fn run(order: &Order) -> Result<Answer, Error> {
    settings::write(&order.settings)?;
    match &order.task {
        Task::Measure(Spec::Ticks(TicksSpec { count: None, .. })) => Err(Error::new(
            "failed to count ticks",
            "a count is needed, or it would never end",
        )),
        Task::Measure(spec) => measure(order, spec),
        Task::Symbols => symbols().map(Answer::Symbols),
        Task::Program(arguments) => program::run(arguments).map(Answer::Output),
    }
}

/// Measures a quiescent guest, with tracing if requested. Its services run, and are killed with it. The background load starts after the
/// facts, which would be read slowly beside it. The counter plugin records details from the next
/// halt of a CPU on: hence the pause after `attend`.
fn measure(order: &Order, spec: &Spec) -> Result<Answer, Error> {
    let mut services = services::start(order)?;
    if let Spec::Program(program) = spec {
        environment::prepare(&program.directory)?;
    }
    quiescence::wait();
    let facts = Facts::read(&Root::live());
    // The first facts are used to check whether a real-time task leaves CPU time for others, as on
    // any machine; a guest has no others, and the recording has the facts of the measurement.
    let as_measured = match unthrottled::disable_throttling(spec) {
        true => Facts::read(&Root::live()),
        false => facts.clone(),
    };
    let session = traced::prepare(order.trace, spec, &facts)?;
    mark::attend();
    quiescence::pause();
    background_load::start(&order.background)?;
    let control = Control::new();
    let control = control.map_err(|why| Error::new("failed to measure", why))?;
    let mut recording = session.measure(&control, &mut Silent)?;
    services.refuse_ended()?;
    recording.facts = as_measured;
    Ok(Answer::Recording(Box::new(recording)))
}

fn symbols() -> Result<Symbols, Error> {
    let packed =
        File::open(KALLSYMS).and_then(|file| Symbols::pack(BufReader::new(file)));
    packed.map_err(|error| match error.kind() == ErrorKind::NotFound {
        true => Error::new(
            "the kernel has no symbols, so no instructions can be counted",
            format!("it was built without CONFIG_KALLSYMS ({KALLSYMS})"),
        ),
        false => Error::new(format!("failed to read {KALLSYMS}"), error),
    })
}
