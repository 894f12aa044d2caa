//! Waits until a part of a measurement begins (`recording::Phases`).

use recording::Phases;
use rustix::io::Errno;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::Timespec;

use crate::time::counter;
use crate::time::timespec::parts;

/// Sleeps until that part begins, counted from 0.
pub(crate) fn wait(phases: &Phases, part: u32) {
    let start = phases.start(part, counter::kernel(libc::CLOCK_MONOTONIC));
    let (tv_sec, tv_nsec) = parts(start);
    let request = Timespec { tv_sec, tv_nsec };
    while clock_nanosleep_absolute(ClockId::Monotonic, &request) == Err(Errno::INTR) {}
}
