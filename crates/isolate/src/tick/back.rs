//! What brings the tick of a `nohz_full` CPU back after it had stopped.
//!
//! The kernel keeps a tick for one of its dependencies (`tick_stop`), or, without saying so,
//! because the CPU's next event is due within a tick. `tick_nohz_next_event` in
//! `kernel/time/tick-sched.c` takes for that a timer of the timer wheel, and a raised timer
//! softirq: with PREEMPT_RT that is run by the thread `ktimers/N` at `SCHED_FIFO` 1, and waits as
//! long as a thread of higher priority has the CPU. So these are watched, by their tracepoints:
//! `irq:softirq_raise`, `irq:softirq_entry`, `timer:timer_expire_entry` and
//! `timer:hrtimer_expire_entry`; and `/proc` says which threads wait for the CPU.
//!
//! Beginning to watch makes the calling thread sleep, which lets all of them run: so the tick has
//! to stop again first, and to come back.
//!
//! Cannot see which code armed a timer, only the function that it calls when it expires.

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
use crate::tick::{ASK, STAY, Tick, Wait, spin};

/// The tick itself is an hrtimer: since 6.10, and before.
const TICKS: [&str; 2] = ["tick_nohz_handler", "tick_sched_timer"];
/// Where the kernel names its functions.
const KALLSYMS: &str = "/proc/kallsyms";

/// What went on while the tick came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TickReturn {
    /// Whether the tick stopped again before, while it was watched.
    pub stopped: bool,
    /// For how long this was watched.
    pub span: Nanos,
    /// How often the timer interrupted the CPU in that time.
    pub ticks: u64,
    /// The dependencies that kept the tick, and how often the kernel said so.
    pub kept_by: KeptBy,
    /// Which softirqs were raised, how often, and how often each ran.
    pub softirqs: Vec<SoftirqCount>,
    /// The timers of the timer wheel that expired. Where raised softirqs did not run: those
    /// that expired when the calling thread then left the CPU.
    pub timers: Vec<TimerCount>,
    /// The high-resolution timers that expired, without the tick.
    pub hrtimers: Vec<TimerCount>,
    /// The other threads that waited for the CPU at the end of that time.
    pub waiting: Vec<WaitingThread>,
}

/// How often a softirq was raised, and how often it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoftirqCount {
    /// As `/proc/softirqs` names it.
    pub name: String,
    /// How often it was raised.
    pub raised: u64,
    /// How often it ran.
    pub run: u64,
}

/// How often timers with one function expired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerCount {
    /// The kernel's name of the function, or its address.
    pub function: String,
    /// How often.
    pub times: u64,
}

/// Begins to watch the CPU that the calling thread is pinned to, waits until its tick has stopped
/// again, and spins for that `stay`, or until `wait.stop` is set. Where raised softirqs did not run,
/// it then leaves the CPU for two ticks.
///
/// # Errors
/// `Kind::System`, or `Kind::Privilege` where the kernel cannot be watched.
pub fn watch_tick_return(
    wait: &Wait<'_>,
    stay: Nanos,
    others: &CpuSet,
    facts: &Facts,
) -> Result<TickReturn, Error> {
    let mut tick = Tick::here(facts)?;
    let mut points = Points::watch(tick.cpu)?;
    let stopped = tick.wait(Instant::now(), wait, others)?.entered;
    points.take();
    let (before, began) = (tick.count()?, Instant::now());
    let told = || wait.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
    let mut seen = Seen::default();
    while !told() && began.elapsed() < Duration::from(stay) {
        spin(tick.period * ASK, wait.stop);
        seen.add(points.take());
    }
    let (span, waiting) = (began.elapsed().into(), waiting(tick.cpu));
    let ticks = tick.count()?.wrapping_sub(before);
    let softirqs = seen.softirqs();
    if softirqs.iter().any(|softirq| softirq.run == 0) {
        // Lets them run, which shows what they are raised for.
        thread::sleep(tick.period * STAY);
        seen.timers = points.take().timers;
    }
    let names = fs::read_to_string(KALLSYMS).unwrap_or_default();
    let timers = named(&seen.timers, &names);
    let mut hrtimers = named(&seen.hrtimers, &names);
    hrtimers.retain(|timer| !TICKS.contains(&timer.function.as_str()));
    let kept_by = seen.kept_by;
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
    fn watch(cpu: Cpu) -> Result<Self, Error> {
        let function = |point| Tracepoint::open(point, ["function"], cpu);
        let softirq = |point| Tracepoint::open(point, ["vec"], cpu);
        Ok(Self {
            attempts: Attempts::watch(cpu)?,
            raised: softirq("irq/softirq_raise")?,
            run: softirq("irq/softirq_entry")?,
            timers: function("timer/timer_expire_entry")?,
            hrtimers: function("timer/hrtimer_expire_entry")?,
        })
    }

    /// What passed since the last call.
    fn take(&mut self) -> Seen {
        Seen {
            kept_by: self.attempts.take(),
            raised: counts(self.raised.take()),
            run: counts(self.run.take()),
            timers: counts(self.timers.take()),
            hrtimers: counts(self.hrtimers.take()),
        }
    }
}

/// How often each number, or each address of a function, was seen.
type Counts = BTreeMap<u64, u64>;

/// What passed the tracepoints.
#[derive(Default)]
struct Seen {
    kept_by: KeptBy,
    raised: Counts,
    run: Counts,
    timers: Counts,
    hrtimers: Counts,
}

impl Seen {
    fn add(&mut self, more: Self) {
        add(&mut self.kept_by, more.kept_by);
        add(&mut self.raised, more.raised);
        add(&mut self.run, more.run);
        add(&mut self.timers, more.timers);
        add(&mut self.hrtimers, more.hrtimers);
    }

    /// Each softirq that was raised or ran.
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

/// The functions at those addresses, by the kernel's names of them.
fn named(counts: &Counts, kallsyms: &str) -> Vec<TimerCount> {
    let count = |(address, times): (&u64, &u64)| {
        let address = format!("{address:016x}");
        TimerCount { function: function(kallsyms, &address).to_owned(), times: *times }
    };
    counts.iter().map(count).collect()
}

/// The function at that address: lines of `address type name [module]`.
fn function<'a>(kallsyms: &'a str, address: &'a str) -> &'a str {
    let mut lines = kallsyms.lines().filter_map(|line| line.strip_prefix(address));
    lines.find_map(|line| line.split_ascii_whitespace().nth(1)).unwrap_or(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that softirqs and timers are counted, each by its name, over several readings.
    #[test]
    fn names_and_counts() {
        let raised = |numbers: &[u64]| counts(numbers.iter().map(|one| [*one]).collect());
        let mut seen = Seen { raised: raised(&[1, 1]), ..Seen::default() };
        seen.add(Seen { raised: raised(&[1, 9]), run: raised(&[7]), ..Seen::default() });
        let found = seen.softirqs();
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
