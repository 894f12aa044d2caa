//! Wake-ups, which the kernel counts while this process waits.

use blame::WakerWatch;
use facts::Facts;
use measure::{Control, Wait};
use recording::{Recording, WakersSpec};

use crate::error::Error;
use crate::event::{Event, Observer, OfMeasurement};

/// Counts wake-ups for the duration of `wait`.
///
/// # Errors
/// There is no such process, or wake-ups cannot be counted.
pub fn count_wakeups(
    spec: &WakersSpec,
    wait: Wait,
    facts: &Facts,
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<Recording, Error> {
    let watch = WakerWatch::start(spec, facts)?;
    observer.event(Event::Started);
    let is_ended_early =
        wait.pass(control, &mut OfMeasurement(observer), "counting wake-ups");
    observer.event(Event::Finished);
    Ok(watch.end(is_ended_early)?)
}
