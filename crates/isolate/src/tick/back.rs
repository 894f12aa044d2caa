//! Tracing what restarts the stopped tick of a `nohz_full` CPU.
//!
//! The kernel keeps a tick because of one of its dependencies (`tick_stop`), or, without tracing
//! that, because the CPU's next event is due within a tick. For `tick_nohz_next_event` in
//! `kernel/time/tick-sched.c`, such events are timers of the timer wheel, and a raised timer
//! softirq: with PREEMPT_RT, the thread `ktimers/N` runs it at `SCHED_FIFO` 1, and so it waits as
//! long as a thread of higher priority has the CPU. Traced are therefore `irq:softirq_raise`,
//! `irq:softirq_entry`, `timer:timer_expire_entry` and `timer:hrtimer_expire_entry`; `/proc` has
//! the threads that wait for the CPU.
//!
//! Starting the trace makes the calling thread sleep, in which all of them run: so the tick has to
//! stop again first, and then to restart.
//!
//! The code that armed a timer is unknown; only the function that the timer calls is traced.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use facts::{Facts, Softirqs};
use units::{Cpu, CpuSet, Nanos};

use crate::error::Error;
use crate::thread::waiting::{WaitingThread, waiting};
use crate::tick::stop::{Attempts, KeptBy};
use crate::tick::tracepoint::Tracepoint;
use crate::tick::{NohzWait, OBSERVE_TICKS, STAY_TICKS, Tick, spin};

/// The functions of the tick's own hrtimer: since 6.10, and before.
const TICKS: [&str; 2] = ["tick_nohz_handler", "tick_sched_timer"];
/// The addresses of the kernel's functions.
const KALLSYMS: &str = "/proc/kallsyms";

/// What was traced while the tick restarted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TickReturn {
    /// Whether the tick stopped again at the start of the trace.
    pub stopped: bool,
    /// The length of the observation.
    pub span: Nanos,
    /// The number of timer interrupts of the CPU in that time.
    pub ticks: u64,
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
pub fn watch_tick_return(
    wait: &NohzWait<'_>,
    observe: Nanos,
    others: &CpuSet,
    facts: &Facts,
) -> Result<TickReturn, Error> {
    let mut tick = Tick::of_current_cpu(facts)?;
    let mut points = Points::trace(tick.cpu)?;
    let stopped = tick.wait(Instant::now(), wait, others)?.entered;
    points.take();
    let (before, began) = (tick.count()?, Instant::now());
    let is_stopped = || wait.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
    let mut counted = Counted::default();
    while !is_stopped() && began.elapsed() < Duration::from(observe) {
        spin(tick.period * OBSERVE_TICKS, wait.stop);
        counted.add(points.take());
    }
    let (span, waiting) = (began.elapsed().into(), waiting(tick.cpu));
    let ticks = tick.count()?.wrapping_sub(before);
    let softirqs = counted.softirqs();
    if softirqs.iter().any(|softirq| softirq.run == 0) {
        // Lets the raised softirqs run, so that their timers are traced.
        thread::sleep(tick.period * STAY_TICKS);
        counted.timers = points.take().timers;
    }
    let names = fs::read_to_string(KALLSYMS).unwrap_or_default();
    let timers = named(&counted.timers, &names);
    let mut hrtimers = named(&counted.hrtimers, &names);
    hrtimers.retain(|timer| !TICKS.contains(&timer.function.as_str()));
    let kept_by = counted.kept_by;
    Ok(TickReturn { stopped, span, ticks, kept_by, softirqs, timers, hrtimers, waiting })
}

/// The tracepoints of one CPU.
struct Points {
    attempts: Attempts,
    raised: Tracepoint<1>,
    run: Tracepoint<1>,
    timers: Tracepoint<1>,
    hrtimers: Tracepoint<1>,
}

impl Points {
    fn trace(cpu: Cpu) -> Result<Self, Error> {
        let function = |point| Tracepoint::open(point, ["function"], cpu);
        let softirq = |point| Tracepoint::open(point, ["vec"], cpu);
        Ok(Self {
            attempts: Attempts::trace(cpu)?,
            raised: softirq("irq/softirq_raise")?,
            run: softirq("irq/softirq_entry")?,
            timers: function("timer/timer_expire_entry")?,
            hrtimers: function("timer/hrtimer_expire_entry")?,
        })
    }

    /// The records since the last call.
    fn take(&mut self) -> Counted {
        Counted {
            kept_by: self.attempts.take(),
            raised: counts(self.raised.take()),
            run: counts(self.run.take()),
            timers: counts(self.timers.take()),
            hrtimers: counts(self.hrtimers.take()),
        }
    }
}

/// Counts by softirq number or function address.
type Counts = BTreeMap<u64, u64>;

/// The traced events, counted.
#[derive(Default)]
struct Counted {
    kept_by: KeptBy,
    raised: Counts,
    run: Counts,
    timers: Counts,
    hrtimers: Counts,
}

impl Counted {
    fn add(&mut self, more: Self) {
        add(&mut self.kept_by, more.kept_by);
        add(&mut self.raised, more.raised);
        add(&mut self.run, more.run);
        add(&mut self.timers, more.timers);
        add(&mut self.hrtimers, more.hrtimers);
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

fn add<K: Ord>(counts: &mut BTreeMap<K, u64>, more: BTreeMap<K, u64>) {
    for (key, times) in more {
        *counts.entry(key).or_default() += times;
    }
}

fn counts(records: Vec<[u64; 1]>) -> Counts {
    let mut found = Counts::new();
    for [number] in records {
        *found.entry(number).or_default() += 1;
    }
    found
}

/// The functions at these addresses, by name.
fn named(counts: &Counts, kallsyms: &str) -> Vec<TimerCount> {
    let count = |(address, times): (&u64, &u64)| {
        let address = format!("{address:016x}");
        TimerCount { function: function(kallsyms, &address).to_owned(), times: *times }
    };
    counts.iter().map(count).collect()
}

/// The function at an address; lines are `address type name [module]`.
fn function<'a>(kallsyms: &'a str, address: &'a str) -> &'a str {
    let mut lines = kallsyms.lines().filter_map(|line| line.strip_prefix(address));
    lines.find_map(|line| line.split_ascii_whitespace().nth(1)).unwrap_or(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that softirqs and timers are counted by name over several readings.
    #[test]
    fn names_and_counts() {
        let raised = |numbers: &[u64]| counts(numbers.iter().map(|one| [*one]).collect());
        let mut counted = Counted { raised: raised(&[1, 1]), ..Counted::default() };
        counted.add(Counted {
            raised: raised(&[1, 9]),
            run: raised(&[7]),
            ..Counted::default()
        });
        let found = counted.softirqs();
        let found: Vec<_> =
            found.iter().map(|one| (one.name.as_str(), one.raised, one.run)).collect();
        assert_eq!(found, [("TIMER", 3, 0), ("SCHED", 0, 1), ("RCU", 1, 0)]);
        let text = "00000000000000aa T process_timeout\n\
                    00000000000000ab t tick_nohz_handler\t[module]\n";
        let found = named(&raised(&[0xaa, 0xab, 0xab, 0xac]), text);
        let found: Vec<_> =
            found.iter().map(|one| (one.function.as_str(), one.times)).collect();
        assert_eq!(
            found,
            [("process_timeout", 1), ("tick_nohz_handler", 2), ("00000000000000ac", 1)]
        );
    }
}
