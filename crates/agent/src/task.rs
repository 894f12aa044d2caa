//! Carries an order out: sets the scene, and measures with the code of the host.

use std::fs::File;
use std::io::{BufReader, ErrorKind};

use agent::{Answer, Order, Symbols, Task};
use facts::{Facts, Root};
use measure::{Control, mark};
use recording::{Spec, TicksSpec};
use session::Silent;

use crate::error::Error;
use crate::{company, program, quiescence, settings, unthrottled, watched};

/// Where the kernel names its functions.
const KALLSYMS: &str = "/proc/kallsyms";

/// Does what is asked.
///
/// # Errors
/// What could not be done, and why.
pub(crate) fn run(order: &Order) -> Result<Answer, Error> {
    settings::write(&order.settings)?;
    match &order.task {
        Task::Measure(Spec::Ticks(TicksSpec { count: None, .. })) => Err(Error::new(
            "failed to count ticks",
            "without a count they would never end",
        )),
        Task::Measure(spec) => measure(order, spec),
        Task::Symbols => symbols().map(Answer::Symbols),
        Task::Program(arguments) => program::run(arguments).map(Answer::Output),
    }
}

/// Measures a machine at rest, watched or not; the company comes after the facts, which would
/// be read beside it slowly. The counter begins when a CPU halts: so there is a moment of rest
/// after it has been called.
fn measure(order: &Order, spec: &Spec) -> Result<Answer, Error> {
    quiescence::wait();
    let facts = Facts::read(&Root::live());
    // The first facts say whether a real-time task leaves room for others, as on any machine;
    // a guest has no others, and the recording has the facts under which it was measured.
    let as_measured = match unthrottled::allow(spec) {
        true => Facts::read(&Root::live()),
        false => facts.clone(),
    };
    let session = watched::prepare(order.watch, spec, &facts)?;
    mark::attend();
    quiescence::settle();
    company::start(&order.background)?;
    let control = Control::new();
    let control = control.map_err(|why| Error::new("failed to measure", why))?;
    let mut recording = session.measure(&control, &mut Silent)?;
    recording.facts = as_measured;
    Ok(Answer::Recording(Box::new(recording)))
}

fn symbols() -> Result<Symbols, Error> {
    let packed =
        File::open(KALLSYMS).and_then(|file| Symbols::pack(BufReader::new(file)));
    packed.map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::new(
            "the kernel does not name its functions, and so no instruction can be counted",
            format!("it was built without CONFIG_KALLSYMS ({KALLSYMS})"),
        ),
        _ => Error::new(format!("failed to read {KALLSYMS}"), error),
    })
}
