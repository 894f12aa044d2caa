//! The timers of a CPU, like the kernel's high-resolution ones (`kernel/time/hrtimer.c`).
//!
//! A timer of a sleep may expire anywhere in a range: the interrupt is set to its end, but any other
//! interrupt after its begin takes it along. Expired timers run in the order of the ends of their
//! ranges, and the first one whose range has not begun stops that.

/// What a timer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The tick.
    Tick,
    /// The end of the running task's slice.
    SliceEnd,
    /// Wakes a task up.
    Wake(usize),
    /// The same by the timer wheel, which is looked at after the tick (in a softirq).
    Timeout(usize),
    /// The hypervisor takes the CPU.
    Steal,
    /// Another CPU requests a reschedule (an interrupt between processors).
    Reschedule,
}

/// A timer that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timer {
    /// The begin of its range.
    pub(crate) from: u64,
    /// The end of its range.
    pub(crate) by: u64,
    pub(crate) action: Action,
}

/// The timers of one CPU, in the order of the ends of their ranges.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timers {
    /// The next one is the last.
    set: Vec<Timer>,
}

impl Timer {
    /// The end of its range, and whether it comes after others with the same one.
    #[inline]
    fn order(&self) -> (u64, bool) {
        (self.by, matches!(self.action, Action::Timeout(_)))
    }
}

impl Timers {
    /// Sets one; of several with the same end, timeouts run last, and of others the first one runs first.
    #[inline]
    pub(crate) fn set(&mut self, timer: Timer) {
        let behind = self.set.iter().rposition(|other| other.order() > timer.order());
        self.set.insert(behind.map_or(0, |place| place + 1), timer);
    }

    /// Sets one instead of that with the same action, if that is not so near to it.
    #[inline]
    pub(crate) fn reset(&mut self, timer: Timer, near: u64) {
        let is_same = |other: &Timer| other.action == timer.action;
        if let Some(place) = self.set.iter().rposition(is_same) {
            if self.set[place].by.abs_diff(timer.by) <= near {
                return;
            }
            self.set.remove(place);
        }
        self.set(timer);
    }

    /// When the next interrupt is.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        match self.set.as_slice() {
            [.., timer] => timer.by,
            [] => u64::MAX,
        }
    }

    /// Takes the next timer whose range has begun.
    #[inline]
    pub(crate) fn expired(&mut self, now: u64) -> Option<Timer> {
        match self.set.as_slice() {
            [.., timer] if timer.from <= now => self.set.pop(),
            _ => None,
        }
    }

    /// When the timer with this action is, if it is set.
    #[inline]
    pub(crate) fn find(&self, action: Action) -> Option<u64> {
        self.set.iter().find(|timer| timer.action == action).map(|timer| timer.by)
    }

    pub(crate) fn cancel(&mut self, action: Action) {
        self.set.retain(|timer| timer.action != action);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the end of a range decides on the interrupt and the order, that an interrupt takes
    /// along what may expire, and that a timer that may not stops those behind it.
    #[test]
    fn ranges() {
        let mut timers = Timers::default();
        let timer = |from, by, task| Timer { from, by, action: Action::Wake(task) };
        for timer in [timer(100, 150, 0), timer(90, 160, 1), timer(140, 140, 2)] {
            timers.set(timer);
        }
        timers.set(timer(100, 150, 3));
        assert_eq!(timers.next(), 140);
        assert_eq!(timers.expired(139), None);
        let order: Vec<Timer> = std::iter::from_fn(|| timers.expired(140)).collect();
        let tasks = order.iter().map(|timer| timer.action);
        assert_eq!(tasks.collect::<Vec<_>>(), [2, 0, 3, 1].map(Action::Wake));
        assert_eq!(timers.next(), u64::MAX);
    }
}
