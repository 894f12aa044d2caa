//! Tasks: what they do, and their state.

use units::{CpuSet, Nanos};

use recording::TaskTime;

use crate::scheduler::queue::Entity;
use crate::scheduler::weight;

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSpec {
    /// What it does.
    pub work: Work,
    /// Its policy.
    pub policy: Policy,
    /// The CPUs that it may use.
    pub cpus: CpuSet,
    /// A slice of its own (`sched_setattr(2)`, EEVDF).
    pub slice_ns: Option<Nanos>,
    /// Its group, by its number among those of the machine; `None`: it is in the root cgroup.
    pub group: Option<usize>,
}

/// A scheduling policy (`sched(7)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_OTHER` with this nice value.
    Other(i8),
    /// `SCHED_BATCH` with this nice value.
    Batch(i8),
    /// `SCHED_FIFO` with this priority.
    Fifo(u8),
    /// `SCHED_RR` with this priority.
    RoundRobin(u8),
}

impl Policy {
    /// The real-time priority; `None`: an ordinary task.
    pub(crate) fn priority(self) -> Option<u8> {
        match self {
            Self::Fifo(priority) | Self::RoundRobin(priority) => Some(priority),
            Self::Other(_) | Self::Batch(_) => None,
        }
    }

    fn nice(self) -> i8 {
        match self {
            Self::Other(nice) | Self::Batch(nice) => nice,
            Self::Fifo(_) | Self::RoundRobin(_) => 0,
        }
    }
}

/// What a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Uses all CPU time that it gets.
    Spin,
    /// The same, with a system call that updates its run time, after that much time of its own.
    Ask(Nanos),
    /// Sleeps, then works for that much wall-clock time, repeatedly.
    Sleep {
        /// How long it sleeps.
        sleep_ns: Nanos,
        /// How long it works.
        burst_ns: Nanos,
    },
    /// Sleeps at least that long, until a tick, then works for that much time of its own: as kernel
    /// threads do that wait with a timeout.
    Timeout {
        /// The least time that it sleeps; `None`: until it is woken ([`Engine::wake_at_tick`],
        /// [`Engine::run_until_works`]).
        ///
        /// [`Engine::wake_at_tick`]: crate::scheduler::Engine::wake_at_tick
        /// [`Engine::run_until_works`]: crate::scheduler::Engine::run_until_works
        sleep_ns: Option<Nanos>,
        /// How long it works.
        work_ns: Nanos,
    },
}

/// The state of a task.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) spec: TaskSpec,
    /// The CPU that it runs on, or ran on last.
    pub(crate) cpu: usize,
    /// Its entity while it is in no queue.
    pub(crate) entity: Option<Box<Entity>>,
    /// Real-time: all time that it ran.
    pub(crate) realtime_exec: u64,
    /// When it will make its next system call, if it runs until then: wall-clock time for a sleeper
    /// that has begun its work, the remaining time of its own for others. `u64::MAX`: never.
    pub(crate) until: u64,
    /// A sleeper that has not begun its work.
    pub(crate) is_new: bool,
    /// A sleeper that has not returned from its sleep.
    pub(crate) returns: bool,
    /// The times that it was woken while it waited, to find what ended another's slice.
    pub(crate) woken_at: u64,
    pub(crate) time: TaskTime,
}

impl Task {
    pub(crate) fn new(place: usize, spec: TaskSpec, cpu: usize) -> Self {
        let mut entity = Entity::new(place, weight::of_nice(spec.policy.nice()));
        entity.group = spec.group;
        entity.slice = spec.slice_ns.map_or(0, Nanos::get);
        let until = match spec.work {
            Work::Spin => u64::MAX,
            Work::Ask(every) => every.get(),
            Work::Sleep { .. } | Work::Timeout { .. } => 0,
        };
        let is_new = matches!(spec.work, Work::Sleep { .. });
        Self {
            spec,
            is_new,
            cpu,
            entity: Some(Box::new(entity)),
            realtime_exec: 0,
            until,
            returns: false,
            woken_at: 0,
            time: TaskTime::default(),
        }
    }
}
