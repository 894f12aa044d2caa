//! The frame around a call: makes it over and over, reads the counter after each time,
//! and marks where each repeat ends.
//!
//! Beside the call itself, a repeat is one reading kept in memory that was touched
//! before, one mark, and one look at the order to stop: a dozen instructions. The first
//! few calls come before the first mark; they fill caches, bind functions, fault in what
//! they need.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use units::{Tsc, TscDelta};

use crate::{Error, Kind, counter, mark};

/// Calls before the first mark.
pub(crate) const WARM_UP: usize = 8;

/// Room for the readings, and what was read.
pub(crate) struct Repeats<'a> {
    readings: &'a mut [Tsc],
    used: usize,
    first: Tsc,
    stop: &'a AtomicBool,
}

impl<'a> Repeats<'a> {
    /// As many repeats as there is room for readings, or until `stop`.
    pub(crate) fn new(readings: &'a mut [Tsc], stop: &'a AtomicBool) -> Self {
        Self { readings, used: 0, first: Tsc::from_counter(0), stop }
    }

    /// How often the call is made, warm-up included.
    pub(crate) fn calls(&self) -> usize {
        WARM_UP + self.readings.len()
    }

    /// Makes the call that often; `what` names it where it fails.
    pub(crate) fn run(
        &mut self,
        what: &str,
        mut call: impl FnMut() -> io::Result<()>,
    ) -> Result<(), Error> {
        let outcome = (0..WARM_UP).try_for_each(|_| call()).and_then(|()| {
            self.first = counter::now();
            mark::begin();
            let outcome = self.measure(&mut call);
            mark::end();
            outcome
        });
        outcome.map_err(|error| failed(what, &error))
    }

    #[inline(always)]
    fn measure(&mut self, call: &mut impl FnMut() -> io::Result<()>) -> io::Result<()> {
        for reading in self.readings.iter_mut() {
            call()?;
            *reading = counter::now();
            mark::step();
            self.used += 1;
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    /// How long each repeat took, to the next one's start.
    pub(crate) fn steps(&self) -> Vec<TscDelta> {
        let read = &self.readings[..self.used];
        let before = std::iter::once(&self.first).chain(read);
        read.iter().zip(before).map(|(now, before)| now.since(*before)).collect()
    }
}

/// The failure of a system call; `what` is its name.
pub(crate) fn failed(what: &str, error: &io::Error) -> Error {
    let help = match error.raw_os_error() {
        Some(libc::ENOSYS) => ": this kernel was built without it",
        Some(libc::ENOMEM) => ": fewer repeats need less memory",
        Some(libc::EAGAIN) => ": a limit on processes or memory was reached (ulimit -a)",
        _ => "",
    };
    Error::new(Kind::System, format!("{what} failed: {error}{help}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stop: bool, call: impl FnMut() -> io::Result<()>) -> Result<usize, Error> {
        let mut readings = [Tsc::from_counter(0); 20];
        let stop = AtomicBool::new(stop);
        let mut repeats = Repeats::new(&mut readings, &stop);
        repeats.run("song(2)", call).map(|()| repeats.steps().len())
    }

    /// Check that the call is made as often as said, and each repeat but the warm-up is
    /// timed.
    #[test]
    fn each_repeat_is_timed() {
        let mut calls = 0;
        let timed = run(false, || {
            calls += 1;
            Ok(())
        });
        assert_eq!((timed, calls), (Ok(20), 20 + WARM_UP));
    }

    /// Check that the order to stop ends it after the repeat in which it came.
    #[test]
    fn stops_when_told() {
        assert_eq!(run(true, || Ok(())), Ok(1));
    }

    /// Check that a call that fails is named, with what would help.
    #[test]
    fn failures_are_named() {
        let error = run(false, || Err(io::Error::from_raw_os_error(libc::ENOSYS)));
        let text = error.unwrap_err().to_string();
        assert!(text.starts_with("song(2) failed: "), "{text}");
        assert!(text.ends_with("this kernel was built without it"), "{text}");
    }

    /// Check that a repeat's time is from the reading before it to its own.
    #[test]
    fn steps_are_differences() {
        let mut readings = [15, 40, 41, 0].map(Tsc::from_counter);
        let stop = AtomicBool::new(false);
        let mut repeats = Repeats::new(&mut readings, &stop);
        (repeats.first, repeats.used) = (Tsc::from_counter(5), 3);
        let steps: Vec<u64> = repeats.steps().iter().map(|step| step.ticks()).collect();
        assert_eq!(steps, [10, 25, 1]);
    }
}
