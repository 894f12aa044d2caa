//! One sleeping thread: takes its CPU, measures the cost of its clock, waits for the start, answers
//! its expiries, and returns its result.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::thread::Scope;

use recording::{LostWakeups, ProcCounts, Timer, Wakeup};
use units::{Cpu, Nanos};

use crate::Error;
use crate::control::moments::OnMoment;
use crate::control::observer::Control;
use crate::latency::timers::{Nanosleep, Timerfd, now, timer_slack};
use crate::latency::wakeups::{End, Schedule, WakeTimer, WakeupBuffer, answer};
use crate::proc_counters::ThreadTime;
use crate::threads::memory::Memory;
use crate::threads::thread::{PinnedThread, StartGate, block_signals};

/// Expiries before the first one that counts: they fill caches and cause the page faults.
const WARM_UP: u64 = 3;
/// The cost of a reading is the median of that many.
const READINGS: usize = 101;
const BLANK: Wakeup = Wakeup { expiries: 0, late_ns: Nanos::MAX };

/// The configuration of a sleeper.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Config {
    pub(crate) cpu: Cpu,
    pub(crate) fifo: Option<u8>,
    pub(crate) timer: Timer,
    /// The capacity in wake-ups.
    pub(crate) capacity: usize,
    /// A later wake-up is a moment.
    pub(crate) above: Option<Nanos>,
}

/// The result of a sleeper.
pub(crate) struct SleepResult {
    pub(crate) cpu: Cpu,
    /// `CLOCK_MONOTONIC` at the first expiry.
    pub(crate) first: Nanos,
    pub(crate) slack: Nanos,
    pub(crate) clock: Nanos,
    pub(crate) wakeups: Vec<Wakeup>,
    pub(crate) lost: Option<LostWakeups>,
    pub(crate) proc: ProcCounts,
    /// The CPU of the thread when it ended.
    pub(crate) ended_on: Option<Cpu>,
}

/// A sleeping thread that is pinned to its CPU and waits for the start.
pub(crate) type Sleeper<'scope> =
    PinnedThread<'scope, (), Schedule, Result<SleepResult, Error>>;

/// Starts a sleeping thread; a message is sent to `done` at its end.
pub(crate) fn seat<'scope>(
    scope: &'scope Scope<'scope, '_>,
    config: Config,
    control: &'scope Control,
    done: Sender<()>,
) -> Result<Sleeper<'scope>, Error> {
    let name = format!("late/{}", config.cpu);
    PinnedThread::spawn(scope, name, done, move |seat| {
        let Control { stop, moments, .. } = control;
        work(config, OnMoment::of(stop.as_atomic(), moments, config.cpu), seat)
    })
}

/// The thread's main function; `None` if it could not be pinned or was never started.
fn work(
    config: Config,
    moments: OnMoment<'_>,
    seat: StartGate<(), Schedule>,
) -> Option<Result<SleepResult, Error>> {
    block_signals();
    let taken = isolate::pin_with_priority(config.cpu, config.fifo).map_err(Error::from);
    let schedule = seat.wait(taken)?;
    let result = match config.timer {
        Timer::ClockNanosleep => {
            sleep(&mut Nanosleep::new(schedule), config, schedule, moments)
        }
        Timer::Timerfd => Timerfd::new()
            .and_then(|mut timer| sleep(&mut timer, config, schedule, moments)),
    };
    let failed = |error: io::Error| {
        let text = format!("{} on CPU {} failed", config.timer.name(), config.cpu);
        Error::system(text, error)
    };
    Some(result.map_err(failed))
}

/// Answers the schedule's expiries from the next one on. If the thread did not run until here they
/// are later ones, but as many.
fn sleep(
    timer: &mut impl WakeTimer,
    config: Config,
    schedule: Schedule,
    moments: OnMoment<'_>,
) -> io::Result<SleepResult> {
    let clock = clock_cost();
    let mut memory = Memory::new(config.capacity.max(1) * size_of::<Wakeup>())?;
    let mut buffer = WakeupBuffer::new(memory.filled(BLANK));
    let next = || schedule.after(now() + schedule.interval);
    let warm_up = Schedule { expiries: WARM_UP, ..next() };
    let never = AtomicBool::new(false);
    let end = End { moments: OnMoment::stopping(&never), above: Nanos::MAX };
    answer(timer, warm_up, end, &mut WakeupBuffer::new(&mut []))?;

    let before = ThreadTime::now();
    let schedule = next();
    let end = End { moments, above: config.above.unwrap_or(Nanos::MAX) };
    answer(timer, schedule, end, &mut buffer)?;
    let mut proc = ProcCounts::default();
    ThreadTime::now().add_since(before, &mut proc);
    let has_slack = config.fifo.is_none() && config.timer == Timer::ClockNanosleep;
    Ok(SleepResult {
        cpu: config.cpu,
        first: schedule.first,
        slack: if has_slack { timer_slack() } else { Nanos::ZERO },
        clock,
        wakeups: buffer.recorded().to_vec(),
        lost: buffer.lost(),
        proc,
        ended_on: isolate::current_cpu(),
    })
}

/// The median time between two consecutive readings of the clock.
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
