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
    /// The same, with a system call that updates its run time.
    Ask {
        /// The time of its own until the next call.
        every_ns: Nanos,
        /// The iterations of its loop in that time.
        passes: u32,
    },
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

/// When a task makes its next system call, if it runs until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// At once: it returns from its sleep.
    Return,
    /// At that time.
    Time(u64),
    /// When it has been in user mode for so long; `u64::MAX`: never.
    User(u64),
}

impl Until {
    /// The call is so much later.
    pub(crate) fn delay(&mut self, by: u64) {
        match self {
            Self::Return => {}
            Self::Time(until) | Self::User(until) => *until += by,
        }
    }
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
    /// All time that it was in user mode.
    pub(crate) user: u64,
    pub(crate) until: Until,
    /// The times that it was woken while it waited, to find what ended another's slice.
    pub(crate) woken_at: u64,
    /// What is counted. Only tasks that sleep count passes: those of others follow from `user`.
    pub(crate) time: TaskTime,
}

impl Task {
    pub(crate) fn new(place: usize, spec: TaskSpec, cpu: usize) -> Self {
        let mut entity = Entity::new(place, weight::of_nice(spec.policy.nice()));
        entity.group = spec.group;
        entity.slice = spec.slice_ns.map_or(0, Nanos::get);
        let until = match spec.work {
            Work::Spin => Until::User(u64::MAX),
            Work::Ask { every_ns, .. } => Until::User(every_ns.get()),
            Work::Sleep { .. } | Work::Timeout { .. } => Until::Return,
        };
        Self {
            spec,
            cpu,
            entity: Some(Box::new(entity)),
            realtime_exec: 0,
            user: 0,
            until,
            woken_at: 0,
            time: TaskTime::default(),
        }
    }

    /// Whether it has not returned from its sleep.
    #[inline]
    pub(crate) fn returns(&self) -> bool {
        self.until == Until::Return
    }

    /// When it makes its next system call, if it is in user mode from `since` on.
    #[inline]
    pub(crate) fn next_call(&self, since: u64) -> u64 {
        match self.until {
            Until::Return => since,
            Until::Time(until) => since.max(until),
            Until::User(until) => since.saturating_add(until.saturating_sub(self.user)),
        }
    }
}
