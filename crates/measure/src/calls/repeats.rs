//! The loop around a call: repeats it, reads the counter after each time, and marks where each
//! repeat ends.
//!
//! The repeats may be divided into parts that begin at different offsets to the tick.
//!
//! Beside the call itself, a repeat is one reading stored in memory that was touched before, one
//! mark, and one test of the stop request: a dozen instructions. The first few calls of each part
//! precede its first mark; they fill caches, bind functions, and cause the page faults.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use recording::Phases;
use units::{Helped, Tsc, TscDelta};

use crate::Error;
use crate::time::counter;
use crate::time::mark;
use crate::time::phase;

/// Calls before the first mark.
pub(crate) const WARM_UP: usize = 8;

/// A buffer for the readings, and the readings.
pub(crate) struct Repeats<'a> {
    readings: &'a mut [Tsc],
    /// For each part that was begun: the number of readings before it, and the reading at its
    /// beginning.
    parts: Vec<(usize, Tsc)>,
    used: usize,
    phases: Option<Phases>,
    stop: &'a AtomicBool,
}

impl<'a> Repeats<'a> {
    /// As many repeats as `readings` holds, or until `stop`.
    pub(crate) fn new(
        readings: &'a mut [Tsc],
        phases: Option<Phases>,
        stop: &'a AtomicBool,
    ) -> Self {
        let mut repeats = Self { readings, parts: Vec::new(), used: 0, phases, stop };
        repeats.parts.reserve(repeats.count());
        repeats
    }

    /// The number of parts.
    fn count(&self) -> usize {
        usize::try_from(Phases::parts(self.phases.as_ref())).unwrap_or(usize::MAX)
    }

    /// The number of calls, warm-up included.
    pub(crate) fn calls(&self) -> usize {
        WARM_UP.saturating_mul(self.count()) + self.readings.len()
    }

    /// Makes the calls; `what` names them in an error.
    pub(crate) fn run(
        &mut self,
        what: &str,
        mut call: impl FnMut() -> io::Result<()>,
    ) -> Result<(), Error> {
        let count = self.count();
        for part in 0..count {
            let end = self.readings.len() * (part + 1) / count;
            self.part(part, end, &mut call).map_err(|error| failed(what, error))?;
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    /// Makes the calls of one part, up to a number of readings.
    fn part(
        &mut self,
        part: usize,
        end: usize,
        call: &mut impl FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        if let (Some(phases), Ok(part)) = (&self.phases, u32::try_from(part)) {
            phase::wait(phases, part);
        }
        (0..WARM_UP).try_for_each(|_| call())?;
        self.parts.push((self.used, counter::now()));
        mark::begin();
        let outcome = self.measure(end, call);
        mark::end();
        outcome
    }

    #[inline(always)]
    fn measure(
        &mut self,
        end: usize,
        call: &mut impl FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        for reading in &mut self.readings[self.used..end] {
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

    /// The duration of each repeat, up to the start of the next.
    pub(crate) fn steps(&self) -> Vec<TscDelta> {
        // Of parts that begin at the same index only the last one has repeats.
        let began = |place| self.parts.iter().rfind(|(at, _)| *at == place);
        let step = |(place, now): (usize, &Tsc)| {
            let before = began(place).map(|(_, first)| *first);
            now.since(before.unwrap_or_else(|| self.readings[place - 1]))
        };
        self.readings[..self.used].iter().enumerate().map(step).collect()
    }
}

/// The failure of a system call, by name.
pub(crate) fn failed(what: &str, error: io::Error) -> Error {
    let help = match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel was built without it",
        Some(libc::ENOMEM) => "fewer repeats need less memory",
        Some(libc::EAGAIN) => "a limit on processes or memory was reached (ulimit -a)",
        _ => return Error::system(format!("{what} failed"), error),
    };
    Error::system(format!("{what} failed"), Helped::new(error, help))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stop: bool, call: impl FnMut() -> io::Result<()>) -> Result<usize, Error> {
        let mut readings = [Tsc::from_counter(0); 20];
        let stop = AtomicBool::new(stop);
        let mut repeats = Repeats::new(&mut readings, None, &stop);
        repeats.run("song(2)", call).map(|()| repeats.steps().len())
    }

    /// Check that the call is made as often as requested, and each repeat but the warm-up is timed.
    #[test]
    fn each_repeat_is_timed() {
        let mut calls = 0;
        let timed = run(false, || {
            calls += 1;
            Ok(())
        });
        assert_eq!((timed.unwrap(), calls), (20, 20 + WARM_UP));
    }

    /// Check that the stop request ends it after the repeat in which it arrived.
    #[test]
    fn stops_when_told() {
        assert_eq!(run(true, || Ok(())).unwrap(), 1);
    }

    /// Check that a call that fails is named, with a remedy.
    #[test]
    fn failures_are_named() {
        let error = run(false, || Err(io::Error::from_raw_os_error(libc::ENOSYS)));
        let text = units::chain(&error.unwrap_err());
        assert!(text.starts_with("song(2) failed: "), "{text}");
        assert!(text.ends_with("this kernel was built without it"), "{text}");
    }

    /// Check that a repeat's time is from the reading before it to its own.
    #[test]
    fn steps_are_differences() {
        let mut readings = [15, 40, 41, 0].map(Tsc::from_counter);
        let stop = AtomicBool::new(false);
        let mut repeats = Repeats::new(&mut readings, None, &stop);
        repeats.parts = vec![(0, Tsc::from_counter(5)), (2, Tsc::from_counter(39))];
        repeats.used = 3;
        let steps: Vec<u64> = repeats.steps().iter().map(|step| step.ticks()).collect();
        assert_eq!(steps, [10, 25, 2]);
    }
}
