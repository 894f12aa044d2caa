//! Latency: how late a timer wakes a thread; one pinned thread per CPU, each with its own schedule.
//!
//! A sample is the time from an expiry until the thread has read the clock after it: the timer's
//! own lateness (slack, a CPU that has to leave idle), its interrupt, the wake-up, the context
//! switch, the return from the kernel, and the reading.
//!
//! Cannot see which of these it was: `blame` divides and attributes it.

pub(crate) mod sleeper;
pub(crate) mod timers;
pub(crate) mod wakeups;

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::thread;

use facts::{Facts, IdleCount, Root};
use recording::{
    Code, CpuLatency, Doubt, IdleUse, LatencySeries, LatencySpec, ProcCounts, Wakeup,
};
use units::{Cpu, Nanos, Span};

use crate::control::moments::check_trigger;
use crate::control::observer::Watch;
use crate::doubts::DoubtIf;
use crate::latency::sleeper::{Config, SleepResult, Sleeper};
use crate::latency::timers::now;
use crate::latency::wakeups::Schedule;
use crate::proc_counters::ProcCounters;
use crate::time::counter;
use crate::{Error, Kind, check_length, check_priority, doubts};

/// Shorter intervals leave no time to sleep; longer ones delay Ctrl-C.
const SHORTEST: Nanos = Nanos::from_micros(10);
const LONGEST: Nanos = Nanos::from_secs(1);
/// The capacity for wake-ups of all CPUs together: 256 MiB.
const WAKEUPS_ALL: u64 = 1 << 24;
/// From the start to the first expiry, so that threads are asleep by then.
const LEAD: Nanos = Nanos::from_millis(5);
/// With fewer samples the p99.9 is the longest of them.
const FEW: u64 = 1_000;
/// A clock that takes longer to read is a system call, or a device.
const SLOW_CLOCK: Nanos = Nanos::from_micros(1);

/// Measures all requested CPUs at once.
pub(crate) fn run(
    spec: &LatencySpec,
    facts: &Facts,
    watch: &mut Watch<'_>,
    doubts: &mut Vec<Doubt>,
) -> Result<LatencySeries, Error> {
    refuse(spec, facts)?;
    let suspended = counter::suspended();
    let whole = sleep_all(spec, watch)?;
    let after = ProcCounters::now();
    let slept = counter::suspended().saturating_sub(suspended);
    doubts.extend(doubts::of_suspension(slept));
    doubts.extend(after.doubts());
    doubts.extend(doubts_of(&whole.results));
    Ok(whole.series(&after, facts))
}

/// The raw data of a run.
struct RawRun {
    before: ProcCounters,
    idle: Vec<CpuIdle>,
    began: Nanos,
    results: Vec<SleepResult>,
}

impl RawRun {
    fn series(self, after: &ProcCounters, facts: &Facts) -> LatencySeries {
        let (began_ns, before) = (self.began, self.before);
        let mut idle: BTreeMap<Cpu, CpuIdle> =
            self.idle.into_iter().map(|idle| (idle.cpu, idle)).collect();
        let cpu_latency = |result: SleepResult| CpuLatency {
            cpu: result.cpu,
            first_ns: result.first.saturating_sub(began_ns),
            slack_ns: result.slack,
            clock_ns: result.clock,
            wakeups: result.wakeups,
            lost: result.lost,
            causes: None,
            proc: ProcCounts {
                preempted: result.proc.preempted,
                waited_ns: result.proc.waited_ns,
                ..after.since(&before, result.cpu, facts)
            },
            wake_limit_us: idle.get(&result.cpu).and_then(|idle| idle.wake_limit_us),
            idle_states: idle
                .remove(&result.cpu)
                .map(CpuIdle::until_now)
                .unwrap_or_default(),
        };
        let cpus = self.results.into_iter().map(cpu_latency).collect();
        LatencySeries { began_ns, source: None, cpus }
    }
}

/// A CPU's idle states at one moment.
struct CpuIdle {
    cpu: Cpu,
    wake_limit_us: Option<u32>,
    /// Empty if the kernel has none.
    counts: Vec<IdleCount>,
}

impl CpuIdle {
    fn now(cpu: Cpu) -> Self {
        let counts = facts::idle_counts(&Root::live(), cpu).unwrap_or_default();
        Self { cpu, wake_limit_us: isolate::wake_limit_us(cpu), counts }
    }

    /// The use of the states since then.
    fn until_now(self) -> Vec<IdleUse> {
        let later = Self::now(self.cpu).counts;
        let pairs = self.counts.into_iter().zip(later);
        let used = pairs.map(|(before, after)| IdleUse {
            name: before.state.name,
            latency_us: before.state.latency_us,
            disabled: before.state.disabled,
            entered: after.entered.saturating_sub(before.entered),
            time_ns: Nanos::from_micros(after.time_us.saturating_sub(before.time_us)),
        });
        used.collect()
    }
}

/// Pins a thread to each CPU, starts them together and waits until all have ended.
fn sleep_all(spec: &LatencySpec, watch: &mut Watch<'_>) -> Result<RawRun, Error> {
    let control = watch.control;
    thread::scope(|scope| {
        let (done, finished) = channel();
        let seated = spec
            .cpus
            .iter()
            .map(|cpu| sleeper::seat(scope, place(spec, cpu), control, done.clone()));
        let sleepers = seated.collect::<Result<Vec<_>, _>>()?;
        // Only the threads hold a sender now, so that the wait ends even if all of them die.
        drop(done);
        let before = ProcCounters::now();
        let idle = spec.cpus.iter().map(CpuIdle::now).collect();
        let began = now();
        let start = counter::kernel(libc::CLOCK_MONOTONIC_RAW);
        for (number, sleeper) in (0..).zip(&sleepers) {
            sleeper.start(schedule(spec, began, number));
        }
        let length = Span { start, length: spec.duration_ns };
        watch.until_all("sleeping", &finished, sleepers.len(), length);
        let joined = sleepers.into_iter().map(|s| Sleeper::join(s).and_then(|one| one));
        let results = joined.collect::<Result<_, _>>()?;
        Ok(RawRun { before, idle, began, results })
    })
}

/// The schedule of one of the CPUs: they have the same interval, with expiries spread evenly over
/// it, so that no CPU is woken because of another.
fn schedule(spec: &LatencySpec, began: Nanos, number: u64) -> Schedule {
    let interval = spec.interval_ns;
    let cpus = u64::try_from(spec.cpus.len()).unwrap_or(1).max(1);
    let offset = Nanos::from_nanos(interval.saturating_mul(number).get() / cpus);
    Schedule { first: began + LEAD + offset, interval, expiries: expiries(spec) }
}

/// The number of intervals that fit into the duration.
fn expiries(spec: &LatencySpec) -> u64 {
    spec.duration_ns.get() / spec.interval_ns.get().max(1)
}

fn place(spec: &LatencySpec, cpu: Cpu) -> Config {
    let share = WAKEUPS_ALL / u64::try_from(spec.cpus.len()).unwrap_or(1).max(1);
    let capacity = usize::try_from(expiries(spec).min(share)).unwrap_or(0);
    Config {
        cpu,
        fifo: spec.fifo,
        timer: spec.timer,
        capacity,
        above: spec.trigger.stop_above_ns,
    }
}

/// Refuses an invalid specification, and one that would leave the machine no CPU time.
pub(crate) fn refuse(spec: &LatencySpec, facts: &Facts) -> Result<(), Error> {
    let refused = |text: &str| Err(Error::new(Kind::Spec, text));
    check_length("the duration", spec.duration_ns)?;
    if spec.cpus.is_empty() {
        return refused("no CPU to measure");
    }
    if !(SHORTEST..=LONGEST).contains(&spec.interval_ns) {
        return refused("the interval must be between 10 us and 1 s");
    }
    if spec.interval_ns > spec.duration_ns {
        return refused("the interval must not be longer than the duration");
    }
    check_trigger("latency", spec.trigger)?;
    check_priority(spec.fifo, &spec.cpus, facts)
}

/// Doubts of the threads: a wrong CPU, samples that are missing or few, a slow clock.
fn doubts_of(results: &[SleepResult]) -> Vec<Doubt> {
    let conditions: [DoubtIf<'_, SleepResult>; 4] = [
        (
            &|result| result.ended_on.is_some_and(|cpu| cpu != result.cpu),
            Code::Migrated,
            "the sleeping thread was moved to another CPU: something changed its affinity, \
             or the CPU went offline",
        ),
        (
            &|result| result.lost.is_some(),
            Code::SamplesLost,
            "more wake-ups than the buffer holds: all are counted and summed, but the later \
             ones are missing in the quantiles; a longer --interval gives fewer",
        ),
        (
            &|result| samples(&result.wakeups) < FEW,
            Code::TooShort,
            "fewer than 1000 samples: the p99.9 is the longest of them, and unreliable",
        ),
        (
            &|result| result.clock > SLOW_CLOCK,
            Code::CoarseClock,
            "reading the clock takes more than 1 us, which is part of every sample",
        ),
    ];
    doubts::of_cpus(results, |result| result.cpu, &conditions)
}

fn samples(wakeups: &[Wakeup]) -> u64 {
    wakeups.iter().fold(0, |sum, wakeup| sum.saturating_add(wakeup.expiries))
}

#[cfg(test)]
mod tests {
    use recording::Timer;

    use super::*;

    fn spec() -> LatencySpec {
        LatencySpec {
            cpus: "2,5,7".parse().unwrap(),
            interval_ns: Nanos::from_millis(3),
            duration_ns: Nanos::from_millis(31),
            timer: Timer::ClockNanosleep,
            fifo: None,
            trigger: recording::Trigger::default(),
        }
    }

    /// Check that invalid specifications are refused before anything runs.
    #[test]
    fn nonsense_is_refused() {
        let facts = serde_json::from_str(r#"{"sources": {}, "unknown": {}}"#).unwrap();
        let refused = |change: fn(&mut LatencySpec)| {
            let mut spec = spec();
            change(&mut spec);
            refuse(&spec, &facts).is_err_and(|error| error.kind() == Kind::Spec)
        };
        assert!(refused(|spec| spec.duration_ns = Nanos::ZERO));
        assert!(refused(|spec| spec.cpus = units::CpuSet::empty()));
        assert!(refused(|spec| spec.interval_ns = Nanos::from_nanos(9_999)));
        assert!(refused(|spec| spec.interval_ns = Nanos::from_nanos(1_000_000_001)));
        assert!(refused(|spec| spec.interval_ns = Nanos::from_millis(32)));
        assert!(refused(|spec| spec.trigger.stop_above_ns = Some(Nanos::ZERO)));
        assert!(refused(|spec| spec.fifo = Some(0)));
        assert!(refused(|spec| spec.fifo = Some(100)));
        assert!(!refused(|_| {}));
        assert!(!refused(|spec| spec.fifo = Some(99)));
    }

    /// Check that CPUs are woken at different times, evenly spaced, and as often as intervals fit.
    #[test]
    fn schedules_are_apart() {
        let of = |number| schedule(&spec(), Nanos::from_secs(9), number);
        let firsts = [0, 1, 2].map(|number| of(number).first.saturating_sub(of(0).first));
        assert_eq!(firsts, [0, 1, 2].map(Nanos::from_millis));
        assert_eq!((of(2).expiries, of(2).interval), (10, Nanos::from_millis(3)));
    }

    /// Check that the capacity suffices for every wake-up, within the limit for all CPUs.
    #[test]
    fn room() {
        assert_eq!(place(&spec(), Cpu::new(2)).capacity, 10);
        let long = LatencySpec { duration_ns: Nanos::from_secs(1 << 20), ..spec() };
        assert_eq!(place(&long, Cpu::new(2)).capacity, (1 << 24) / 3);
    }

    /// Check what causes doubts.
    #[test]
    fn what_went_wrong_is_told() {
        let result = SleepResult {
            cpu: Cpu::new(3),
            first: Nanos::ZERO,
            slack: Nanos::ZERO,
            clock: Nanos::from_micros(2),
            wakeups: vec![Wakeup { expiries: 999, late_ns: Nanos::from_secs(1) }],
            lost: None,
            proc: ProcCounts::default(),
            ended_on: Some(Cpu::new(1)),
        };
        let doubts = doubts_of(&[result]);
        let codes: Vec<Code> = doubts.iter().map(|doubt| doubt.code).collect();
        assert_eq!(codes, [Code::Migrated, Code::TooShort, Code::CoarseClock]);
        assert!(doubts[0].text.starts_with("CPU 3: "), "{}", doubts[0]);
    }
}
