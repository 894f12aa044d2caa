//! What a simulation shows while it runs.

use recording::End;
use units::Nanos;

/// A task ran on a CPU, from one switch to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran {
    /// The CPU.
    pub cpu: usize,
    /// The task; `None`: none, the CPU was idle.
    pub task: Option<usize>,
    /// When it began.
    pub start_ns: Nanos,
    /// How long it ran, interrupts included.
    pub ns: Nanos,
    /// Why it ended.
    pub end: End,
}

/// A task woke up, and was placed in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Woken {
    /// The CPU.
    pub cpu: usize,
    /// When.
    pub at_ns: Nanos,
    /// The task.
    pub task: usize,
    /// The running task; `None`: the CPU was idle, or ran a real-time task.
    pub running: Option<usize>,
    /// How far it was placed before the running task, in virtual time; negative: behind it.
    pub ahead_ns: i64,
    /// How far it was placed before the average of all others, in virtual time.
    pub ahead_of_average_ns: i64,
    /// What the running task had left of its slice; `None`: it is not preempted.
    pub lost_ns: Option<Nanos>,
}

/// Sees what happens.
pub trait Observer {
    /// A task ran.
    fn ran(&mut self, ran: Ran);
    /// A task woke up.
    fn woken(&mut self, woken: Woken);
    /// Whether `woken` is of interest: it takes time to compute.
    fn wants_wakeups(&self) -> bool;
}

/// Sees nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ignore;

impl Observer for Ignore {
    fn ran(&mut self, _: Ran) {}
    fn woken(&mut self, _: Woken) {}
    fn wants_wakeups(&self) -> bool {
        false
    }
}
