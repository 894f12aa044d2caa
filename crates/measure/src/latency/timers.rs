//! The timers that wake a thread periodically: `clock_nanosleep(2)`, or a `timerfd(2)`.
//!
//! Both use absolute times of `CLOCK_MONOTONIC`, so that a late wake-up does not delay later ones.
//! The first is called again for each expiry, and allows the kernel the thread's timer slack
//! (`prctl(2)`, `PR_SET_TIMERSLACK`: 50 us by default); real-time threads have none. The other is
//! one periodic timer, which the kernel rearms by itself and without slack (`fs/timerfd.c`);
//! reading it returns the number of expirations.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec,
    timerfd_create, timerfd_settime,
};
use units::Nanos;

use crate::latency::wakeups::{Schedule, WakeTimer, Woken};
use crate::time::counter;
use crate::time::timespec::parts;

/// The clock of schedules, now.
pub(crate) fn now() -> Nanos {
    counter::kernel(libc::CLOCK_MONOTONIC)
}

/// The calling thread's timer slack, whether it is used or not.
pub(crate) fn timer_slack() -> Nanos {
    // SAFETY: takes numbers only. A direct call, as libc truncates the result to 32 bits.
    let slack = unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_TIMERSLACK) };
    Nanos::from_nanos(u64::try_from(slack).unwrap_or(0))
}

/// A new sleep for each expiry.
#[derive(Debug)]
pub(crate) struct Nanosleep {
    schedule: Schedule,
}

impl Nanosleep {
    pub(crate) fn new(schedule: Schedule) -> Self {
        Self { schedule }
    }
}

impl WakeTimer for Nanosleep {
    fn set(&mut self, schedule: Schedule) -> io::Result<()> {
        self.schedule = schedule;
        Ok(())
    }

    #[inline(always)]
    fn wait(&mut self, due: Nanos) -> io::Result<Woken> {
        let (tv_sec, tv_nsec) = parts(due);
        let until = libc::timespec { tv_sec, tv_nsec };
        let (clock, absolute) = (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME);
        loop {
            // SAFETY: `until` outlives the call, which only reads it; absolute times have no
            // remaining time.
            let error = unsafe {
                libc::clock_nanosleep(
                    clock,
                    absolute,
                    &raw const until,
                    std::ptr::null_mut(),
                )
            };
            let now = now();
            match error {
                0 if now >= due => {
                    return Ok(Woken { now, expiries: self.schedule.passed(due, now) });
                }
                // Woken early: there is time left to sleep.
                0 | libc::EINTR => {}
                error => return Err(io::Error::from_raw_os_error(error)),
            }
        }
    }
}

/// One periodic timer.
#[derive(Debug)]
pub(crate) struct Timerfd(OwnedFd);

impl Timerfd {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?))
    }
}

impl WakeTimer for Timerfd {
    fn set(&mut self, schedule: Schedule) -> io::Result<()> {
        let setting = Itimerspec {
            it_interval: timespec(schedule.interval),
            it_value: timespec(schedule.first),
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &setting)?;
        Ok(())
    }

    #[inline(always)]
    fn wait(&mut self, _: Nanos) -> io::Result<Woken> {
        let mut count = [0; 8];
        loop {
            let read = rustix::io::read(&self.0, &mut count);
            let now = now();
            match read {
                Ok(_) => return Ok(Woken { now, expiries: u64::from_ne_bytes(count) }),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn timespec(time: Nanos) -> Timespec {
    let (tv_sec, tv_nsec) = parts(time);
    Timespec { tv_sec, tv_nsec }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use recording::Wakeup;

    use super::*;
    use crate::control::moments::OnMoment;
    use crate::latency::wakeups::{End, WakeupBuffer, answer};

    /// Answers ten expiries of 2 ms, of which the first five have passed.
    fn answers(mut timer: impl WakeTimer) -> Vec<Wakeup> {
        let first = now();
        let schedule = Schedule { first, interval: Nanos::from_millis(2), expiries: 10 };
        let blank = Wakeup { expiries: 0, late_ns: Nanos::ZERO };
        let (mut places, never) = ([blank; 10], AtomicBool::new(false));
        let mut buffer = WakeupBuffer::new(&mut places);
        std::thread::sleep(std::time::Duration::from_millis(9));
        answer(
            &mut timer,
            schedule,
            End { moments: OnMoment::stopping(&never), above: Nanos::MAX },
            &mut buffer,
        )
        .unwrap();
        assert!(now() >= schedule.at(9));
        assert_eq!(buffer.lost(), None);
        buffer.recorded().to_vec()
    }

    /// Check that both timers answer every expiry, those that have passed already at once, and none
    /// too early.
    #[test]
    fn alarms_of_this_machine() {
        let schedule =
            Schedule { first: now(), interval: Nanos::from_millis(2), expiries: 0 };
        let by_sleep = answers(Nanosleep::new(schedule));
        let by_timerfd = answers(Timerfd::new().unwrap());
        for wakeups in [by_sleep, by_timerfd] {
            assert!(wakeups[0].expiries >= 5, "{wakeups:?}");
            assert!(wakeups[0].late_ns >= Nanos::from_millis(8), "{wakeups:?}");
            assert_eq!(wakeups.iter().map(|wakeup| wakeup.expiries).sum::<u64>(), 10);
        }
    }

    /// Check the slack against the value in `/proc`.
    #[test]
    fn slack_of_this_thread() {
        let told = std::fs::read_to_string("/proc/thread-self/timerslack_ns");
        let Ok(told) = told else {
            println!("skipped: slack_of_this_thread: no timerslack_ns before Linux 4.6");
            return;
        };
        assert_eq!(timer_slack().get().to_string(), told.trim());
    }
}
