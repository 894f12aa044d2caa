//! The loop of `latency`: sleeps until the next expiry of a fixed schedule, reads the clock, and
//! records how late that was, and for how many expiries.
//!
//! No expiry is skipped. A thread that is late by more than an interval answers, at that one
//! moment, all expiries that have passed, with the delay of each. To skip them, or to set the next
//! expiry relative to the wake-up, would count an hour of delay as one sample among many
//! (coordinated omission).
//!
//! The loop does not allocate or lock; it enters the kernel to sleep. The buffer for wake-ups is
//! touched before it begins. When it is full the loop continues: later wake-ups are counted and
//! summed, not recorded.

use std::io;
use std::sync::atomic::Ordering;

use recording::{LostWakeups, Wakeup};
use units::Nanos;

use crate::control::moments::OnMoment;

/// Expiries: the first one, and then one per interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// `CLOCK_MONOTONIC` at the first one.
    pub(crate) first: Nanos,
    pub(crate) interval: Nanos,
    /// Their number.
    pub(crate) expiries: u64,
}

impl Schedule {
    /// When one of them is due; 0 is the first.
    pub(crate) fn at(self, number: u64) -> Nanos {
        self.first + self.interval.saturating_mul(number)
    }

    /// The number of expiries from the one due at `due` to `now`, that one included.
    pub(crate) fn passed(self, due: Nanos, now: Nanos) -> u64 {
        now.saturating_sub(due).get() / self.interval.get().max(1) + 1
    }

    /// The same schedule from the first expiry after `now`.
    pub(crate) fn after(self, now: Nanos) -> Self {
        let number = if now < self.first { 0 } else { self.passed(self.first, now) };
        Self { first: self.at(number), ..self }
    }
}

/// A wake-up of the thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Woken {
    /// `CLOCK_MONOTONIC`.
    pub(crate) now: Nanos,
    /// The number of expiries since the last one.
    pub(crate) expiries: u64,
}

/// A timer that wakes a thread by a schedule.
pub(crate) trait WakeTimer {
    /// Sets the schedule.
    fn set(&mut self, schedule: Schedule) -> io::Result<()>;

    /// Sleeps until the expiry that is due then.
    fn wait(&mut self, due: Nanos) -> io::Result<Woken>;
}

/// A buffer for wake-ups.
#[derive(Debug)]
pub(crate) struct WakeupBuffer<'a> {
    places: &'a mut [Wakeup],
    used: usize,
    lost: Option<LostWakeups>,
}

impl<'a> WakeupBuffer<'a> {
    pub(crate) fn new(places: &'a mut [Wakeup]) -> Self {
        Self { places, used: 0, lost: None }
    }

    /// The recorded wake-ups, in order.
    pub(crate) fn recorded(&self) -> &[Wakeup] {
        &self.places[..self.used]
    }

    /// The wake-ups after the buffer was full.
    pub(crate) fn lost(&self) -> Option<LostWakeups> {
        self.lost
    }

    #[inline(always)]
    fn put(&mut self, wakeup: Wakeup, due: Nanos, schedule: Schedule) {
        match self.places.get_mut(self.used) {
            Some(place) => {
                *place = wakeup;
                self.used += 1;
            }
            None => self.count_lost(wakeup, due.saturating_sub(schedule.first), schedule),
        }
    }

    fn count_lost(&mut self, wakeup: Wakeup, since_ns: Nanos, schedule: Schedule) {
        let (most, more) = (wakeup.late_ns, wakeup.expiries.saturating_sub(1));
        let least = most.saturating_sub(schedule.interval.saturating_mul(more));
        let lost = self.lost.get_or_insert(LostWakeups {
            since_ns,
            wakeups: 0,
            samples: 0,
            ns: Nanos::ZERO,
            min_ns: Nanos::MAX,
            max_ns: Nanos::ZERO,
        });
        lost.wakeups += 1;
        lost.samples += wakeup.expiries;
        // Their delays decrease evenly from the longest to the shortest.
        let ends = u128::from(most.get()) + u128::from(least.get());
        let sum = ends.saturating_mul(u128::from(wakeup.expiries)) / 2;
        let sum = Nanos::from_nanos(u64::try_from(sum).unwrap_or(u64::MAX));
        lost.ns = lost.ns + sum;
        lost.min_ns = lost.min_ns.min(least);
        lost.max_ns = lost.max_ns.max(most);
    }
}

/// What ends the loop before its last expiry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End<'a> {
    /// The stop request of all loops, and what is done with a moment.
    pub(crate) moments: OnMoment<'a>,
    /// A wake-up later than this is one.
    pub(crate) above: Nanos,
}

/// Answers all expiries of the schedule, or those until the end.
#[inline(never)]
pub(crate) fn answer(
    timer: &mut impl WakeTimer,
    schedule: Schedule,
    end: End<'_>,
    buffer: &mut WakeupBuffer<'_>,
) -> io::Result<()> {
    timer.set(schedule)?;
    let mut answered = 0;
    while answered < schedule.expiries {
        let due = schedule.at(answered);
        let woken = timer.wait(due)?;
        let expiries = woken.expiries.min(schedule.expiries - answered);
        let late_ns = woken.now.saturating_sub(due);
        buffer.put(Wakeup { expiries, late_ns }, due, schedule);
        answered += expiries;
        if late_ns > end.above {
            end.moments.handle(|| (late_ns, late_ns));
        }
        if end.moments.stop().load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use proptest::prelude::*;

    use super::*;

    const BLANK: Wakeup = Wakeup { expiries: 0, late_ns: Nanos::ZERO };

    fn schedule(first: u64, interval: u64, expiries: u64) -> Schedule {
        let (first, interval) = (Nanos::from_nanos(first), Nanos::from_nanos(interval));
        Schedule { first, interval, expiries }
    }

    /// A simulated machine with one CPU, which other tasks use at times; a nanosecond is a step.
    struct Machine {
        /// Whether another task uses the CPU, step by step; none does after the last.
        taken: Vec<bool>,
        schedule: Schedule,
        /// Whether the timer counts expiries itself, as a timerfd does when it is read.
        counts: bool,
        answered: u64,
        /// When the thread returned from its sleep, and when it then read the clock.
        woken: Vec<(u64, u64)>,
    }

    impl Machine {
        /// The first moment from then on in which the thread has the CPU.
        fn free(&self, from: u64) -> u64 {
            let taken = |step: &u64| {
                self.taken.get(usize::try_from(*step).unwrap()).copied().unwrap_or(false)
            };
            (from..).find(|step| !taken(step)).unwrap()
        }
    }

    impl WakeTimer for Machine {
        fn set(&mut self, _: Schedule) -> io::Result<()> {
            Ok(())
        }

        fn wait(&mut self, due: Nanos) -> io::Result<Woken> {
            let last = self.woken.last().map_or(0, |(_, read)| *read);
            let back = self.free(last.max(due.get()));
            let read = self.free(back + 1);
            self.woken.push((back, read));
            let now = Nanos::from_nanos(read);
            let passed =
                (0..).take_while(|&number| self.schedule.at(number).get() <= back);
            let counted = u64::try_from(passed.count()).unwrap() - self.answered;
            let expiries =
                if self.counts { counted } else { self.schedule.passed(due, now) };
            self.answered += expiries;
            Ok(Woken { now, expiries })
        }
    }

    /// The delay of each expiry according to the wake-ups.
    fn samples(wakeups: &[Wakeup], interval: Nanos) -> Vec<u64> {
        let each = wakeups.iter().flat_map(|wakeup| {
            (0..wakeup.expiries).map(|number| {
                wakeup.late_ns.get() - interval.saturating_mul(number).get()
            })
        });
        each.collect()
    }

    proptest! {
        /// Check against a machine that is simulated step by step: each expiry has one sample,
        /// which ends when the thread has returned from its sleep after that expiry (or, as it
        /// counts itself, has read the clock after it).
        #[test]
        fn every_expiry_is_answered(
            taken in prop::collection::vec(prop::bool::weighted(0.7), 0..400),
            first in 0u64..30,
            interval in 1u64..40,
            expiries in 1u64..60,
            counts: bool,
        ) {
            let schedule = schedule(first, interval, expiries);
            let (answered, woken) = (0, Vec::new());
            let mut machine = Machine { taken, schedule, counts, answered, woken };
            let (mut places, never) = ([BLANK; 60], AtomicBool::new(false));
            let mut buffer = WakeupBuffer::new(&mut places);
            answer(&mut machine, schedule, End { moments: OnMoment::stopping(&never), above: Nanos::MAX }, &mut buffer).unwrap();

            let expected = (0..expiries).map(|number| {
                let due = schedule.at(number).get();
                let answers = |(back, read): &&(u64, u64)| {
                    if counts { *back >= due } else { *read >= due }
                };
                machine.woken.iter().find(answers).unwrap().1 - due
            });
            let expected: Vec<u64> = expected.collect();
            prop_assert_eq!(samples(buffer.recorded(), schedule.interval), expected);
        }

        /// Check that wake-ups after the buffer is full are counted and summed as recorded ones
        /// would be.
        #[test]
        fn nothing_is_lost_silently(
            lates in prop::collection::vec(0u64..90, 1..40),
            capacity in 0usize..40,
        ) {
            let schedule = schedule(1_000, 10, 400);
            let mut places = vec![BLANK; capacity];
            let mut buffer = WakeupBuffer::new(&mut places);
            let (mut due, mut all) = (schedule.first, Vec::new());
            for late in lates {
                let late_ns = Nanos::from_nanos(late);
                let wakeup = Wakeup { expiries: late / 10 + 1, late_ns };
                buffer.put(wakeup, due, schedule);
                due = due + schedule.interval.saturating_mul(wakeup.expiries);
                all.push(wakeup);
            }
            let recorded = all.len().min(capacity);
            prop_assert_eq!(buffer.recorded(), &all[..recorded]);
            let rest = samples(&all[recorded..], schedule.interval);
            let before = samples(&all[..recorded], schedule.interval).len();
            prop_assert_eq!(buffer.lost().is_some(), !rest.is_empty());
            if let Some(lost) = buffer.lost() {
                prop_assert_eq!(lost.since_ns.get(), 10 * u64::try_from(before).unwrap());
                prop_assert_eq!(lost.wakeups, u64::try_from(all.len() - recorded).unwrap());
                prop_assert_eq!(lost.samples, u64::try_from(rest.len()).unwrap());
                prop_assert_eq!(lost.ns.get(), rest.iter().sum::<u64>());
                prop_assert_eq!(lost.min_ns.get(), *rest.iter().min().unwrap());
                prop_assert_eq!(lost.max_ns.get(), *rest.iter().max().unwrap());
            }
        }
    }

    /// A timer that wakes the thread as late as the list says, and fails at its end.
    struct Late(Vec<u64>);

    impl WakeTimer for Late {
        fn set(&mut self, _: Schedule) -> io::Result<()> {
            Ok(())
        }

        fn wait(&mut self, due: Nanos) -> io::Result<Woken> {
            if self.0.is_empty() {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            let now = due + Nanos::from_nanos(self.0.remove(0));
            Ok(Woken { now, expiries: 1 })
        }
    }

    /// Check that the stop request ends it after the wake-up in which it arrived, that a wake-up above the
    /// limit makes it, and that the failure of a timer ends it, too.
    #[test]
    fn ends_early() {
        let ended = |late: &[u64], is_told, above| {
            let (mut places, told) = ([BLANK; 9], AtomicBool::new(is_told));
            let mut buffer = WakeupBuffer::new(&mut places);
            let end = End {
                moments: OnMoment::stopping(&told),
                above: Nanos::from_nanos(above),
            };
            let mut timer = Late(late.to_vec());
            let answered = answer(&mut timer, schedule(5, 5, 9), end, &mut buffer);
            let is_told = told.load(Ordering::Relaxed);
            (answered.is_ok(), buffer.recorded().len(), is_told)
        };
        assert_eq!(ended(&[0, 0], true, u64::MAX), (true, 1, true));
        assert_eq!(ended(&[1, 2, 3, 2], false, 2), (true, 3, true));
        assert_eq!(ended(&[1, 2], false, 2), (false, 2, false));
    }

    /// Check which expiry is the next one.
    #[test]
    fn schedules() {
        let schedule = schedule(100, 10, 5);
        let after = |now| schedule.after(Nanos::from_nanos(now)).first.get();
        assert_eq!([0, 99, 100, 109, 110].map(after), [100, 100, 110, 110, 120]);
        assert_eq!(schedule.passed(Nanos::from_nanos(110), Nanos::from_nanos(130)), 3);
        assert_eq!(schedule.at(4), Nanos::from_nanos(140));
    }
}
