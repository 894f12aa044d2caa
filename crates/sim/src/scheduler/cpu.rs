//! The state of a CPU.

use crate::scheduler::balance::Balancing;
use crate::scheduler::fair::Fair;
use crate::scheduler::timers::{Action, Timer, Timers};
use crate::scheduler::tree::Tree;

/// The least time that the timer of a slice is set to (`hrtick_start`).
const SLICE_TIMER_MIN: u64 = 10_000;
/// A set timer of a slice is not set again if it is that near to the new time (`hrtick_needs_rearm`).
const SLICE_TIMER_NEAR: u64 = 5_000;

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

    /// The queue's clock is read again, and is what a reschedule uses that was requested before.
    #[inline]
    pub(crate) fn read_clock(&mut self, now: u64) {
        if let Some(kept) = &mut self.clock_kept {
            *kept = now;
        }
    }

    /// Sets the timer for the end of the running task's slice (`hrtick_start_fair`).
    #[inline]
    pub(crate) fn start_slice_timer(&mut self, now: u64) {
        let Some(rest) = self.fair.rest() else { return };
        let by = now + rest.max(SLICE_TIMER_MIN);
        let timer = Timer { from: by, by, action: Action::SliceEnd };
        self.timers.reset(timer, SLICE_TIMER_NEAR);
    }

    /// A real-time task wakes up.
    pub(crate) fn wake_realtime(&mut self, task: usize, priority: u8) {
        self.realtime.push(priority, task);
        if self.realtime.first().is_some_and(|(_, first)| first == task) {
            self.request(false, false);
        }
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
        self.tasks.iter().rev().max_by_key(|(priority, _)| *priority).copied()
    }

    /// Lets the others of the same priority run before this one.
    pub(crate) fn rotate(&mut self, task: usize) {
        if let Some(place) = self.tasks.iter().position(|(_, other)| *other == task) {
            let entry = self.tasks.remove(place);
            self.tasks.push(entry);
        }
    }
}
