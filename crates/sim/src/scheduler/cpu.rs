//! The state of a CPU.

use crate::scheduler::balance::Balancing;
use crate::scheduler::fair::Fair;
use crate::scheduler::timers::Timers;
use crate::scheduler::tree::Tree;

/// A CPU.
#[derive(Debug, Clone)]
pub(crate) struct CpuState {
    /// The task that runs; `None`: it is idle.
    pub(crate) current: Option<usize>,
    /// Since when.
    pub(crate) switched_at: u64,
    /// Since when the task is in user mode, or will be.
    pub(crate) user_since: u64,
    /// Ordinary tasks.
    pub(crate) fair: Tree,
    /// Real-time tasks.
    pub(crate) realtime: RealtimeQueue,
    pub(crate) timers: Timers,
    /// The request to reschedule.
    pub(crate) request: Option<Request>,
    /// When a wake-up read the clock that requested a reschedule: the kernel does not read it again
    /// then.
    pub(crate) clock_kept: Option<u64>,
    pub(crate) balancing: Balancing,
    /// The tick also stops while a single task runs.
    pub(crate) is_nohz_full: bool,
}

/// A request to reschedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    /// A tick found that the slice is over.
    pub(crate) by_tick: bool,
    /// It does not keep a wake-up from being checked.
    pub(crate) is_lazy: bool,
}

impl CpuState {
    /// An idle CPU, with groups of these weights; `averages`: loads decide.
    pub(crate) fn new(fair: Fair, groups: &[u64], averages: bool) -> Self {
        Self {
            current: None,
            switched_at: 0,
            user_since: 0,
            fair: Tree::new(fair, groups, averages),
            realtime: RealtimeQueue::default(),
            timers: Timers::default(),
            request: None,
            clock_kept: None,
            balancing: Balancing::default(),
            is_nohz_full: false,
        }
    }

    /// Requests a reschedule; the first request says why.
    #[inline]
    pub(crate) fn request(&mut self, by_tick: bool, is_lazy: bool) {
        let request = self.request.get_or_insert(Request { by_tick, is_lazy });
        request.is_lazy &= is_lazy;
    }

    /// The number of runnable tasks.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.fair.len() + self.realtime.tasks.len()
    }
}

/// The runnable real-time tasks of a CPU, the running one included (`kernel/sched/rt.c`).
#[derive(Debug, Clone, Default)]
pub(crate) struct RealtimeQueue {
    /// Priority, and task; the first one of the highest priority runs.
    tasks: Vec<(u8, usize)>,
    /// Until when the running one's time is accounted.
    pub(crate) accounted_until: u64,
}

impl RealtimeQueue {
    #[inline]
    pub(crate) fn push(&mut self, priority: u8, task: usize) {
        self.tasks.push((priority, task));
    }

    pub(crate) fn remove(&mut self, task: usize) {
        self.tasks.retain(|(_, other)| *other != task);
    }

    /// The task that runs.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u8, usize)> {
        let highest = self.tasks.iter().map(|(priority, _)| *priority).max()?;
        self.tasks.iter().copied().find(|(priority, _)| *priority == highest)
    }

    /// Lets the others of the same priority run before this one.
    pub(crate) fn rotate(&mut self, task: usize) {
        if let Some(place) = self.tasks.iter().position(|(_, other)| *other == task) {
            let entry = self.tasks.remove(place);
            self.tasks.push(entry);
        }
    }
}
