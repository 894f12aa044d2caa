//! One sleeping thread: takes its CPU, learns what its clock costs, waits for the start,
//! answers its expiries, and tells what it saw.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::thread::Scope;

use recording::{LostWakeups, Meanwhile, Timer, Wakeup};
use units::{Cpu, Nanos};

use crate::Error;
use crate::latency::alarms::{Nanosleep, Timerfd, now, timer_slack};
use crate::latency::wakeups::{Alarm, Room, Schedule, answer};
use crate::meanwhile::OwnTime;
use crate::memory::Memory;
use crate::stop::Stop;
use crate::thread::{Seat, Seated, block_signals};

/// Expiries that are answered before the first one that counts: they fill caches and fault
/// in what is needed.
const WARM_UP: u64 = 3;
/// Readings of the clock of which the median is what one costs.
const READINGS: usize = 101;
const BLANK: Wakeup = Wakeup { expiries: 0, late_ns: Nanos::MAX };

/// What a sleeper is told before it starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) cpu: Cpu,
    pub(crate) fifo: Option<u8>,
    pub(crate) timer: Timer,
    /// Room for so many wake-ups.
    pub(crate) capacity: usize,
}

/// What a sleeper saw.
pub(crate) struct Seen {
    pub(crate) cpu: Cpu,
    /// `CLOCK_MONOTONIC` at the first expiry.
    pub(crate) first: Nanos,
    pub(crate) slack: Nanos,
    pub(crate) clock: Nanos,
    pub(crate) wakeups: Vec<Wakeup>,
    pub(crate) lost: Option<LostWakeups>,
    pub(crate) meanwhile: Meanwhile,
    /// The CPU the thread was on when it ended.
    pub(crate) ended_on: Option<Cpu>,
}

/// A sleeping thread that has its CPU and waits for the start.
pub(crate) type Sleeper<'scope> = Seated<'scope, (), Schedule, Result<Seen, Error>>;

/// Starts a sleeping thread; `done` is sent to when its expiries are over.
pub(crate) fn seat<'scope>(
    scope: &'scope Scope<'scope, '_>,
    place: Place,
    stop: &'scope Stop,
    done: Sender<()>,
) -> Result<Sleeper<'scope>, Error> {
    let name = format!("late/{}", place.cpu);
    Seated::take(scope, name, done, move |seat| work(place, stop.as_atomic(), seat))
}

/// The thread's whole life; `None` where it could not be seated or was never started.
fn work(
    place: Place,
    stop: &AtomicBool,
    seat: Seat<(), Schedule>,
) -> Option<Result<Seen, Error>> {
    block_signals();
    let taken = isolate::pin_with_priority(place.cpu, place.fifo).map_err(Error::from);
    let schedule = seat.wait(taken)?;
    let seen = match place.timer {
        Timer::ClockNanosleep => {
            sleep(&mut Nanosleep::new(schedule), place, schedule, stop)
        }
        Timer::Timerfd => {
            Timerfd::new().and_then(|mut alarm| sleep(&mut alarm, place, schedule, stop))
        }
    };
    let failed = |error: io::Error| {
        let text = format!("{} on CPU {} failed", place.timer.name(), place.cpu);
        Error::system(text, error)
    };
    Some(seen.map_err(failed))
}

/// Answers the schedule's expiries from the next one on. Where the thread was kept off its
/// CPU until here they are later ones, but as many.
fn sleep(
    alarm: &mut impl Alarm,
    place: Place,
    schedule: Schedule,
    stop: &AtomicBool,
) -> io::Result<Seen> {
    let clock = clock_cost();
    let mut memory = Memory::new(place.capacity.max(1) * size_of::<Wakeup>())?;
    let mut room = Room::new(memory.filled(BLANK));
    let next = || schedule.after(now() + schedule.interval);
    let warm_up = Schedule { expiries: WARM_UP, ..next() };
    answer(alarm, warm_up, &AtomicBool::new(false), &mut Room::new(&mut []))?;

    let before = OwnTime::now();
    let schedule = next();
    answer(alarm, schedule, stop, &mut room)?;
    let mut meanwhile = Meanwhile::default();
    OwnTime::now().add_since(before, &mut meanwhile);
    let has_slack = place.fifo.is_none() && place.timer == Timer::ClockNanosleep;
    Ok(Seen {
        cpu: place.cpu,
        first: schedule.first,
        slack: if has_slack { timer_slack() } else { Nanos::ZERO },
        clock,
        wakeups: room.kept().to_vec(),
        lost: room.lost(),
        meanwhile,
        ended_on: isolate::current_cpu(),
    })
}

/// The median time between two readings of the clock with nothing between them.
fn clock_cost() -> Nanos {
    let mut readings = [Nanos::ZERO; READINGS + 1];
    readings.iter_mut().for_each(|reading| *reading = now());
    let mut steps = [Nanos::ZERO; READINGS];
    for (step, pair) in steps.iter_mut().zip(readings.windows(2)) {
        if let [before, after] = pair {
            *step = after.saturating_sub(*before);
        }
    }
    steps.sort_unstable();
    steps[READINGS / 2]
}
