//! Tracing the timer interrupts of a `nohz_full` CPU whose tick has stopped: which timers expire in
//! them, and what restarts the tick.
//!
//! The kernel keeps a tick because of one of its dependencies (`tick_stop`), or, without tracing
//! that, because the CPU's next event is due within a tick. For `tick_nohz_next_event` in
//! `kernel/time/tick-sched.c`, such events are timers of the timer wheel, and a raised timer
//! softirq: with PREEMPT_RT, the thread `ktimers/N` runs it at `SCHED_FIFO` 1, and so it waits as
//! long as a thread of higher priority has the CPU. Traced are therefore softirqs that are raised
//! and run, and timers that expire, and for [`Interrupts`] what these do; `/proc` has the threads
//! that wait for the CPU.
//!
//! Starting the trace makes the calling thread sleep, in which all of them run: so the tick has to
//! stop again first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use facts::{Facts, Softirqs, TimerList};
use units::{CpuSet, Nanos};

use crate::error::Error;
use crate::thread::waiting::{WaitingThread, waiting};
use crate::tick::stop::{ATTEMPT, KeptBy, failed_attempt};
use crate::tick::timers::{Functions, Interrupts, TimerInterrupts};
use crate::tick::tracepoint::{Point, Record, Tracepoints};
use crate::tick::{NohzWait, OBSERVE_TICKS, STAY_TICKS, Tick, spin};

/// How often a count is repeated because of an interrupt in between.
const COUNTS_MAX: u32 = 10;

/// What was traced on a CPU whose tick had stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TickTrace {
    /// Whether the tick stopped again at the start of the trace.
    pub stopped: bool,
    /// The length of the observation.
    pub span: Nanos,
    /// The number of timer interrupts of the CPU in that time.
    pub ticks: u64,
    /// Those in which timers expired, by timers, the most frequent first.
    pub interrupts: Vec<TimerInterrupts>,
    /// The number of lost records of the trace.
    pub lost: u64,
    /// The dependencies that prevented the tick from stopping, with their counts.
    pub kept_by: KeptBy,
    /// The softirqs that were raised or ran.
    pub softirqs: Vec<SoftirqCount>,
    /// The timers of the timer wheel that expired. If raised softirqs did not run: those that
    /// expired after the calling thread then left the CPU.
    pub timers: Vec<TimerCount>,
    /// The high-resolution timers that expired, except the tick.
    pub hrtimers: Vec<TimerCount>,
    /// The other threads that waited for the CPU at the end of that time.
    pub waiting: Vec<WaitingThread>,
}

/// The counts of a softirq.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoftirqCount {
    /// The name as in `/proc/softirqs`.
    pub name: String,
    /// How often it was raised.
    pub raised: u64,
    /// How often it ran.
    pub run: u64,
}

/// The number of expirations of timers with one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerCount {
    /// The name of the function, or its address.
    pub function: String,
    /// The number of expirations.
    pub times: u64,
}

/// Traces the CPU to which the calling thread is pinned: waits until its tick has stopped again,
/// and runs a busy loop for the time `observe`, or until `wait.stop` is set. If raised softirqs did
/// not run, it then leaves the CPU for two ticks.
///
/// # Errors
/// `Kind::System`, or `Kind::Privilege` if the kernel cannot be traced.
pub fn trace_tick(
    wait: &NohzWait<'_>,
    observe: Nanos,
    others: &CpuSet,
    facts: &Facts,
) -> Result<TickTrace, Error> {
    let names = Functions::read();
    let mut tick = Tick::of_current_cpu(facts)?;
    let mut trace =
        Trace { points: Tracepoints::open(&POINTS, tick.cpu)?, read: Vec::new() };
    let stopped = tick.wait(Instant::now(), wait, others)?.entered;
    let before = trace.count_with(&tick)?;
    trace.read.clear();
    let began = Instant::now();
    let is_stopped = || wait.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
    let mut counted = Counted::new(&names);
    while !is_stopped() && began.elapsed() < Duration::from(observe) {
        spin(tick.period * OBSERVE_TICKS, wait.stop);
        trace.take();
        counted.add(trace.read.drain(..));
    }
    let (span, waiting) = (began.elapsed().into(), waiting(tick.cpu));
    let ticks = trace.count_with(&tick)?.wrapping_sub(before);
    counted.add(trace.read.drain(..));
    let softirqs = counted.softirqs();
    if softirqs.iter().any(|softirq| softirq.run == 0) {
        // Lets the raised softirqs run, so that their timers are traced.
        thread::sleep(tick.period * STAY_TICKS);
        let mut later = Counted::new(&names);
        later.add(trace.points.take());
        counted.timers = later.timers;
    }
    let mut hrtimers = named(&counted.hrtimers, &names);
    hrtimers.retain(|timer| !TimerList::TICKS.contains(&timer.function.as_str()));
    Ok(TickTrace {
        stopped,
        span,
        ticks,
        interrupts: counted.interrupts.by_timers(!waiting.is_empty(), facts),
        lost: trace.points.lost(),
        kept_by: counted.kept_by,
        softirqs,
        timers: named(&counted.timers, &names),
        hrtimers,
        waiting,
    })
}

/// The kinds of traced events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// An attempt to stop the tick.
    Attempt,
    /// A softirq is raised.
    Raise,
    /// A softirq runs.
    Run,
    /// A timer interrupt begins, or any other where the timer is a device.
    Interrupt,
    /// It ends.
    InterruptEnd,
    /// A high-resolution timer expires: its function is called.
    Hrtimer,
    /// That function returns.
    HrtimerEnd,
    /// A high-resolution timer is started.
    HrtimerStart,
    /// A timer of the timer wheel expires.
    Timer,
    /// Its function returns.
    TimerEnd,
    /// A function is queued for a worker thread.
    Work,
    /// The CPU runs another thread.
    Switch,
    /// A thread is woken.
    Wakeup,
    /// A signal is sent.
    Signal,
}

/// The interrupt of the local timer, which is a device elsewhere (`irq_handler_entry`).
#[cfg(target_arch = "x86_64")]
const INTERRUPT: [&str; 2] =
    ["irq_vectors/local_timer_entry", "irq_vectors/local_timer_exit"];
#[cfg(not(target_arch = "x86_64"))]
const INTERRUPT: [&str; 2] = ["irq/irq_handler_entry", "irq/irq_handler_exit"];

const POINTS: [Point<Event>; 14] = [
    point(Event::Attempt, ATTEMPT.name, ATTEMPT.fields),
    point(Event::Raise, "irq/softirq_raise", &["vec"]),
    point(Event::Run, "irq/softirq_entry", &["vec"]),
    point(Event::Interrupt, INTERRUPT[0], &[]),
    point(Event::InterruptEnd, INTERRUPT[1], &[]),
    point(Event::Hrtimer, "timer/hrtimer_expire_entry", &["function"]),
    point(Event::HrtimerEnd, "timer/hrtimer_expire_exit", &[]),
    point(Event::HrtimerStart, "timer/hrtimer_start", &["function"]),
    point(Event::Timer, "timer/timer_expire_entry", &["function"]),
    point(Event::TimerEnd, "timer/timer_expire_exit", &[]),
    point(Event::Work, "workqueue/workqueue_queue_work", &["function"]),
    point(Event::Switch, "sched/sched_switch", &[]),
    point(Event::Wakeup, "sched/sched_waking", &["pid", "comm"]),
    point(Event::Signal, "signal/signal_generate", &["pid", "comm"]),
];

const fn point(
    kind: Event,
    name: &'static str,
    fields: &'static [&'static str],
) -> Point<Event> {
    Point { kind, name, fields }
}

/// The tracepoints of one CPU, and their records since they were last handled.
struct Trace {
    points: Tracepoints<Event>,
    read: Vec<Record<Event>>,
}

impl Trace {
    /// Reads the records, and returns their number.
    fn take(&mut self) -> usize {
        let records = self.points.take();
        let count = records.len();
        self.read.extend(records);
        count
    }

    /// The count of timer interrupts, at a moment to which the records were read: it is repeated if
    /// one came in between.
    fn count_with(&mut self, tick: &Tick) -> Result<u64, Error> {
        self.take();
        for _ in 0..COUNTS_MAX {
            let count = tick.count()?;
            if self.take() == 0 {
                return Ok(count);
            }
        }
        tick.count()
    }
}

/// Counts by softirq number or function address.
type Counts = BTreeMap<u64, u64>;

/// The traced events, counted.
struct Counted<'a> {
    kept_by: KeptBy,
    raised: Counts,
    run: Counts,
    timers: Counts,
    hrtimers: Counts,
    interrupts: Interrupts<'a>,
}

impl<'a> Counted<'a> {
    fn new(names: &'a Functions) -> Self {
        Self {
            kept_by: KeptBy::new(),
            raised: Counts::new(),
            run: Counts::new(),
            timers: Counts::new(),
            hrtimers: Counts::new(),
            interrupts: Interrupts::new(names),
        }
    }

    fn add(&mut self, records: impl IntoIterator<Item = Record<Event>>) {
        for record in records {
            match record.kind {
                Event::Attempt => {
                    let dependency = failed_attempt(&record);
                    dependency.into_iter().for_each(|one| add(&mut self.kept_by, one));
                }
                Event::Raise => add(&mut self.raised, record.number(0)),
                Event::Run => add(&mut self.run, record.number(0)),
                Event::Timer => add(&mut self.timers, record.number(0)),
                Event::Hrtimer => add(&mut self.hrtimers, record.number(0)),
                Event::Interrupt
                | Event::InterruptEnd
                | Event::HrtimerEnd
                | Event::HrtimerStart
                | Event::TimerEnd
                | Event::Work
                | Event::Switch
                | Event::Wakeup
                | Event::Signal => (),
            }
            self.interrupts.add(&record);
        }
    }

    /// All softirqs that were raised or ran.
    fn softirqs(&self) -> Vec<SoftirqCount> {
        let numbers: BTreeSet<&u64> = self.raised.keys().chain(self.run.keys()).collect();
        let times =
            |counts: &Counts, number: &u64| counts.get(number).copied().unwrap_or(0);
        let count = |number: &u64| SoftirqCount {
            name: Softirqs::name(*number),
            raised: times(&self.raised, number),
            run: times(&self.run, number),
        };
        numbers.into_iter().map(count).collect()
    }
}

fn add<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K) {
    *counts.entry(key).or_default() += 1;
}

/// The counts by the names of functions.
fn named(counts: &Counts, names: &Functions) -> Vec<TimerCount> {
    let count = |(address, times): (&u64, &u64)| TimerCount {
        function: names.name(*address),
        times: *times,
    };
    counts.iter().map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that softirqs and timers are counted by name over several readings.
    #[test]
    fn names_and_counts() {
        let event = |kind, numbers: &[u64]| {
            let of = |number: &u64| Record::of(kind, &[&number.to_ne_bytes()]);
            numbers.iter().map(of).collect::<Vec<_>>()
        };
        let text = "00000000000000aa T process_timeout\n\
                    00000000000000ab t tick_nohz_handler\t[module]\n";
        let names = Functions::parse(text.to_owned());
        let mut counted = Counted::new(&names);
        counted.add(event(Event::Raise, &[1, 1]));
        counted.add(event(Event::Raise, &[1, 9]));
        counted.add(event(Event::Run, &[7]));
        counted.add(event(Event::Timer, &[0xaa, 0xab, 0xab, 0xac]));
        let found = counted.softirqs();
        let found: Vec<_> =
            found.iter().map(|one| (one.name.as_str(), one.raised, one.run)).collect();
        assert_eq!(found, [("TIMER", 3, 0), ("SCHED", 0, 1), ("RCU", 1, 0)]);
        let found = named(&counted.timers, &names);
        let found: Vec<_> =
            found.iter().map(|one| (one.function.as_str(), one.times)).collect();
        assert_eq!(
            found,
            [("process_timeout", 1), ("tick_nohz_handler", 2), ("00000000000000ac", 1)]
        );
    }

    /// Check that all tracepoints can be opened on this machine, and that there are not more
    /// interrupts in which timers expire than timer interrupts.
    #[test]
    fn this_machine() {
        let facts = Facts::read(&facts::Root::live());
        let tick = Tick::of_current_cpu(&facts).unwrap();
        let points = match Tracepoints::open(&POINTS, tick.cpu) {
            Ok(points) => points,
            Err(why) => return println!("skipped: this_machine: {why}"),
        };
        let mut trace = Trace { points, read: Vec::new() };
        let before = trace.count_with(&tick).unwrap();
        trace.read.clear();
        while trace.read.iter().all(|record| record.kind != Event::HrtimerEnd) {
            thread::sleep(Duration::from_millis(100));
            trace.take();
        }
        let ticks = trace.count_with(&tick).unwrap() - before;
        assert_eq!(trace.points.lost(), 0);
        let names = Functions::read();
        let mut interrupts = Interrupts::new(&names);
        trace.read.iter().for_each(|record| interrupts.add(record));
        let found = interrupts.by_timers(false, &facts);
        let expired: u64 = found.iter().map(|one| one.times).sum();
        assert!((1..=ticks).contains(&expired), "{expired} {ticks}: {found:?}");
    }
}
