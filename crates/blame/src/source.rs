//! The interface of event sources, and which threads they record.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::records::{Lane, Outside};

/// A source of events, which was started before this was made.
pub(crate) trait EventSource: Send {
    /// Stores the events that ended since the last call. There is a lane for each traced CPU, in
    /// rising order.
    fn read(&mut self, lanes: &mut [Lane]);

    /// Stores all events that have ended, while further events are traced; false if the source has to be
    /// stopped before it has all of them.
    fn read_all(&mut self, _: &mut [Lane]) -> bool {
        false
    }

    /// Takes the runs of a program's threads on other CPUs, which were stored by [`Self::read`].
    fn take_outside(&mut self) -> Outside {
        Outside::default()
    }

    /// What becomes readable when about a quarter of a buffer is unread, until it is read; empty if
    /// nothing does.
    fn alarms(&self) -> Vec<BorrowedFd<'_>>;

    /// The interval in which the buffers are read without an alarm.
    fn period(&self) -> Duration;

    /// Stops tracing; remaining events can still be read.
    fn stop(&mut self);

    /// The tracepoints that this kernel lacks.
    fn missing(&self) -> Vec<String>;
}

/// The threads that count as culprits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// All but the spinning threads of this process (`spin/1`), which measure.
    Others,
    /// Every thread: to measure the cost of tracing.
    All,
    /// Every thread, with marks on those of programs: the children of processes that this one starts
    /// (`isolate::Program` has a supervisor in between), and their descendants.
    Marked,
}
