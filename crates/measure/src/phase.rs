//! Waits for the moment at which a part of a measurement begins (`recording::Phases`).

use recording::Phases;
use rustix::io::Errno;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::Timespec;

use crate::counter;

/// Sleeps until that part begins, counted from 0.
pub(crate) fn wait(phases: &Phases, part: u32) {
    let start = phases.start(part, counter::kernel(libc::CLOCK_MONOTONIC)).get();
    let (seconds, nanos) = (start / 1_000_000_000, start % 1_000_000_000);
    let request = Timespec {
        tv_sec: i64::try_from(seconds).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(nanos).unwrap_or(0),
    };
    while clock_nanosleep_absolute(ClockId::Monotonic, &request) == Err(Errno::INTR) {}
}
