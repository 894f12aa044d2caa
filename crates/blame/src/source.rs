//! What every source of events can do, and what it is told.

use crate::seen::Lane;

/// A source of events, which began before this came to be.
pub(crate) trait EventSource: Send {
    /// Hands on what ended since the last time. There is a lane for each watched CPU, in
    /// rising order.
    fn read(&mut self, lanes: &mut [Lane]);

    /// Ends watching; what is left can still be read. Says which tracepoints this kernel does
    /// not have.
    fn stop(&mut self) -> Vec<String>;
}

/// Whose threads take the CPU away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// All but those of this process that spin on it (`spin/1`): those measure.
    Others,
    /// Every thread: what is measured is what it costs to see them.
    All,
    /// Every thread, and those of processes that this one starts are told apart.
    Marked,
}
