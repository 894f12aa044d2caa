//! Whether the tick of a CPU stops while a thread runs there, how long that takes, and what
//! interrupts it even so.
//!
//! Each try uses a new thread, as a program would: it takes its CPU, waits until the tick has
//! stopped (`isolate::wait_for_nohz`), and ends. In a guest each wait is one phase of the counter,
//! and the observation by the last thread is the last phase.
//!
//! If timer interrupts remained during the observation, a second one with the kernel's tracepoints
//! examines them: those change the counts, and are therefore not used in the first.
//!
//! What prevents the tick from stopping is visible only through tracing, while it is prevented.

use std::sync::atomic::AtomicBool;
use std::thread::scope;

use facts::Facts;
use isolate::{NohzOutcome, NohzWait, TickTrace};
use recording::{
    Code, Doubt, ExpiredTimer, KeptBy, NohzSeries, NohzSpec, NohzTry, ProcCounts,
    RemainingTimers, SoftirqCount, TimerCount, TimerInterrupts, TimerKind, TimerReason,
    WaitingThread,
};
use units::{Cpu, CpuSet, Nanos, chain};

use crate::control::observer::Watch;
use crate::proc_counters::ProcCounters;
use crate::threads::thread::{died, start};
use crate::time::counter;
use crate::time::mark;
use crate::time::phase;
use crate::{Error, Kind, check_length, check_priority};

/// The thread's name.
const NAME: &str = "nohz";
/// How long a measurement waits for its CPU's tick to stop, and as long again, forced.
const PATIENCE: Nanos = Nanos::from_secs(1);
/// The minimum time of a traced observation: for a tick that restarted to do so again, and for
/// interrupts of one per second.
const AGAIN: Nanos = Nanos::from_secs(5);
/// The most tries: their times are stored.
const TRIES_MAX: u64 = 1 << 24;

/// Repeats the test as often as requested, or until the tick does not stop.
pub(crate) fn run(
    spec: &NohzSpec,
    facts: &Facts,
    watch: &mut Watch<'_>,
    doubts: &mut Vec<Doubt>,
) -> Result<NohzSeries, Error> {
    refuse(spec, facts)?;
    let now = || counter::kernel(libc::CLOCK_MONOTONIC_RAW);
    let began = now();
    let mut last = began;
    let mut series = NohzSeries {
        elapsed_ns: Nanos::ZERO,
        tries: Vec::new(),
        kept_by: Some(Vec::new()),
        others: Vec::new(),
        observed: None,
        back: None,
        remaining: None,
    };
    for number in 0..spec.tries.unwrap_or(TRIES_MAX) {
        if let (Some(phases), Ok(part)) = (&spec.phases, u32::try_from(number)) {
            phase::wait(phases, part);
        }
        let is_last = spec.tries == Some(number + 1);
        let observe_ns = if is_last { spec.observe_ns } else { Nanos::ZERO };
        let one = NohzSpec { observe_ns, ..spec.clone() };
        let tried = TryResult::of(&one, facts, watch.control.stop.as_atomic())?;
        if watch.control.stop.is_requested() && !tried.entry.entered {
            break;
        }
        let entered = tried.add_to(&mut series, doubts);
        let is_time = watch.control.period.is_some_and(|period| now() >= last + period);
        if is_time {
            last = now();
            let passed = last.saturating_sub(began);
            let whole = |tries| passed.get().saturating_mul(tries) / (number + 1);
            let whole =
                spec.tries.map_or(passed, |tries| Nanos::from_nanos(whole(tries)));
            watch.progress(&format!("try {}", number + 1), passed, whole);
        }
        if !entered || watch.control.stop.is_requested() {
            break;
        }
    }
    series.elapsed_ns = now().saturating_sub(began);
    Ok(series)
}

/// Refuses an invalid or unsupported specification, and one that leaves the machine no CPU time.
pub(crate) fn refuse(spec: &NohzSpec, facts: &Facts) -> Result<(), Error> {
    check_length("the wait", spec.limit_ns)?;
    if !spec.observe_ns.is_zero() {
        check_length("the observation time", spec.observe_ns)?;
    }
    if spec.tries.is_some_and(|tries| !(1..=TRIES_MAX).contains(&tries)) {
        let text = format!("between 1 and {TRIES_MAX} tries are made");
        return Err(Error::new(Kind::Spec, text));
    }
    isolate::nohz_full(spec.cpu, facts)?;
    check_priority(spec.fifo, &CpuSet::from_iter([spec.cpu]), facts)
}

/// The upper limit of one try's duration, and of the tracing after it.
pub(crate) fn max_duration(spec: &NohzSpec) -> Nanos {
    let traced = spec.observe_ns.max(AGAIN);
    spec.limit_ns.saturating_mul(2) + spec.observe_ns + traced
}

/// The result of one try.
struct TryResult {
    entry: NohzOutcome,
    observed: Option<ProcCounts>,
    /// The trace of a second observation, if timer interrupts remained.
    trace: Option<Result<TickTrace, isolate::Error>>,
}

impl TryResult {
    /// Runs one try in a new thread.
    fn of(spec: &NohzSpec, facts: &Facts, stop: &AtomicBool) -> Result<Self, Error> {
        scope(|scope| {
            let thread = start(scope, NAME, || Self::run(spec, facts, stop))?;
            thread.join().unwrap_or_else(|_| Err(died(NAME)))
        })
    }

    /// The thread's main function.
    fn run(spec: &NohzSpec, facts: &Facts, stop: &AtomicBool) -> Result<Self, Error> {
        let others = isolate::pick(Some(spec.cpu), facts)?.others;
        isolate::pin_with_priority(spec.cpu, spec.fifo)?;
        let (limit, forced) = (spec.limit_ns, spec.forced);
        let wait = NohzWait { limit, forced, confirmed: false, stop: Some(stop) };
        mark::begin();
        let entry = isolate::wait_for_nohz(&wait, &others, facts);
        mark::end();
        let entry = match entry? {
            entry if entry.entered => confirm(entry, wait, &others, facts)?,
            failed => failed,
        };
        let stays = entry.entered && !spec.observe_ns.is_zero();
        let observed = stays.then(|| stay(spec, facts, stop));
        let remaining = observed.as_ref().map_or(0, NohzSeries::timer_interrupts);
        let again = NohzWait { limit, forced, confirmed: true, stop: Some(stop) };
        let duration = spec.observe_ns.max(AGAIN);
        let trace = (remaining > 0)
            .then(|| isolate::trace_tick(&again, duration, &others, facts));
        Ok(Self { entry, observed, trace })
    }

    /// Adds it to the series; whether the tick stopped.
    fn add_to(self, series: &mut NohzSeries, doubts: &mut Vec<Doubt>) -> bool {
        let NohzOutcome { entered, waited, left, kept_by, others } = self.entry;
        series.others = others.iter().map(other).collect();
        series.tries.push(NohzTry { entered, wait_ns: waited, left });
        series.observed = self.observed.or(series.observed.take());
        let is_back = series.observed.as_ref().is_some_and(NohzSeries::is_back);
        let kept_by = match self.trace {
            Some(Ok(trace)) => {
                series.remaining = Some(recorded_timers(&trace));
                if is_back {
                    series.back = Some(recorded_return(&trace));
                    Ok(trace.kept_by)
                } else {
                    kept_by
                }
            }
            Some(Err(why)) if is_back => Err(why),
            Some(Err(_)) | None => kept_by,
        };
        series.kept_by = match kept_by {
            Ok(seen) => Some(seen.into_iter().map(recorded_dependency).collect()),
            Err(why) => {
                doubts.push(Doubt::new(Code::Untraced, chain(&why)));
                None
            }
        };
        entered
    }
}

/// Confirms for the rest of the limit that no tick occurs any more.
fn confirm(
    seen: NohzOutcome,
    wait: NohzWait<'_>,
    others: &CpuSet,
    facts: &Facts,
) -> Result<NohzOutcome, Error> {
    let limit = wait.limit.saturating_sub(seen.waited);
    let wait = NohzWait { limit, confirmed: true, ..wait };
    let second = isolate::wait_for_nohz(&wait, others, facts)?;
    // If it succeeded at once, the first wait was the whole duration.
    let hz = facts.tick.hz.get();
    let is_at_once = second.entered && hz.is_none_or(|hz| second.waited < hz.period());
    let more = if is_at_once { Nanos::ZERO } else { second.waited };
    Ok(NohzOutcome {
        waited: seen.waited + more,
        left: seen.left + second.left,
        ..second
    })
}

fn recorded_dependency((dependency, times): (isolate::Dependency, u64)) -> KeptBy {
    KeptBy { dependency: dependency.to_string(), times }
}

fn other(thread: &isolate::WaitingThread) -> WaitingThread {
    WaitingThread {
        tid: thread.tid,
        name: thread.name.clone(),
        rt_priority: thread.rt_priority,
    }
}

fn recorded_return(back: &TickTrace) -> recording::TickReturn {
    let timer = |timer: &isolate::TimerCount| TimerCount {
        function: timer.function.clone(),
        times: timer.times,
    };
    let softirq = |softirq: &isolate::SoftirqCount| SoftirqCount {
        name: softirq.name.clone(),
        raised: softirq.raised,
        run: softirq.run,
    };
    recording::TickReturn {
        stopped: back.stopped,
        span_ns: back.span,
        ticks: back.ticks,
        softirqs: back.softirqs.iter().map(softirq).collect(),
        timers: back.timers.iter().map(timer).collect(),
        hrtimers: back.hrtimers.iter().map(timer).collect(),
        waiting: back.waiting.iter().map(other).collect(),
    }
}

fn recorded_timers(trace: &TickTrace) -> RemainingTimers {
    let interrupts = |one: &isolate::TimerInterrupts| TimerInterrupts {
        timers: one.timers.iter().map(expired_timer).collect(),
        times: one.times,
    };
    RemainingTimers {
        span_ns: trace.span,
        count: trace.ticks,
        interrupts: trace.interrupts.iter().map(interrupts).collect(),
        lost: trace.lost,
    }
}

fn expired_timer(timer: &isolate::ExpiredTimer) -> ExpiredTimer {
    let reason = |reason: &isolate::TimerReason| match reason.clone() {
        isolate::TimerReason::Work(function) => TimerReason::Work(function),
        isolate::TimerReason::Thread { tid, name } => TimerReason::Thread { tid, name },
        isolate::TimerReason::FairServer => TimerReason::FairServer,
        isolate::TimerReason::Dependency(dependency) => {
            TimerReason::Dependency(dependency.to_string())
        }
    };
    ExpiredTimer {
        kind: if timer.is_of_wheel { TimerKind::Timer } else { TimerKind::Hrtimer },
        function: timer.function.clone(),
        reason: timer.reason.as_ref().map(reason),
    }
}

/// Waits until the tick of the CPU that the calling thread is pinned to has stopped, if it can;
/// forced, if waiting alone does not suffice. A doubt if it did not stop.
pub(crate) fn stop_tick(cpu: Cpu, facts: &Facts, stop: &AtomicBool) -> Option<Doubt> {
    isolate::nohz_full(cpu, facts).ok()?;
    let others = isolate::pick(Some(cpu), facts).ok()?.others;
    let wait = |forced| {
        let wait =
            NohzWait { limit: PATIENCE, forced, confirmed: false, stop: Some(stop) };
        isolate::wait_for_nohz(&wait, &others, facts)
    };
    let why = match wait(false) {
        Ok(entry) if entry.entered => return None,
        _ => match wait(true) {
            Ok(entry) if entry.entered => return None,
            Ok(NohzOutcome { kept_by, others, .. }) => {
                kept_by.map_or_else(|why| chain(&why), |kept_by| named(&kept_by, &others))
            }
            Err(why) => chain(&why),
        },
    };
    let text =
        format!("the tick of CPU {cpu} did not stop, and affects the results: {why}");
    Some(Doubt::new(Code::TickNotStopped, text))
}

fn named(kept_by: &isolate::KeptBy, others: &[isolate::WaitingThread]) -> String {
    let list = |words: Vec<String>| words.join(", ");
    let reasons: Vec<String> = kept_by.keys().map(ToString::to_string).collect();
    let reasons = if reasons.is_empty() { "unknown".to_owned() } else { list(reasons) };
    let others: Vec<String> = others.iter().map(ToString::to_string).collect();
    let runnable = match others.is_empty() {
        true => String::new(),
        false => format!("; also runnable there: {}", list(others)),
    };
    format!("dependencies: {reasons}{runnable}; `noisefloor nohz test -a` shows more")
}

/// Keeps the CPU busy in user space, and counts the interrupts.
fn stay(spec: &NohzSpec, facts: &Facts, stop: &AtomicBool) -> ProcCounts {
    let before = ProcCounters::now();
    mark::begin();
    isolate::spin(spec.observe_ns.into(), Some(stop));
    mark::end();
    ProcCounters::now().since(&before, spec.cpu, facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> NohzSpec {
        NohzSpec {
            cpu: Cpu::new(1),
            tries: Some(1),
            limit_ns: Nanos::from_secs(1),
            forced: false,
            fifo: None,
            observe_ns: Nanos::ZERO,
            phases: None,
        }
    }

    /// Check that an invalid specification is refused, and a machine with a tick that cannot stop.
    #[test]
    fn nonsense_is_refused() {
        let page = serde_json::json!({
            "cpus": {"online": "0-1", "allowed": "0-1", "present": "0-1"},
            "tick": {"nohz_full": "1"}, "sources": {}, "unknown": {},
        });
        let facts: Facts = serde_json::from_value(page).unwrap();
        let kind = |spec: NohzSpec| refuse(&spec, &facts).err().map(|e| e.kind());
        assert_eq!(kind(spec()), None);
        assert_eq!(kind(NohzSpec { limit_ns: Nanos::ZERO, ..spec() }), Some(Kind::Spec));
        assert_eq!(kind(NohzSpec { tries: Some(0), ..spec() }), Some(Kind::Spec));
        assert_eq!(kind(NohzSpec { fifo: Some(100), ..spec() }), Some(Kind::Spec));
        let other = NohzSpec { cpu: Cpu::new(0), ..spec() };
        assert_eq!(kind(other), Some(Kind::Isolate(isolate::Kind::NoNohz)));
    }

    /// Check that if the tick of a busy CPU never stops, that is detected without the facts: the
    /// thread waits until its limit; and that another runnable thread is named.
    #[test]
    fn ticks_are_seen() {
        let facts = Facts::read(&facts::Root::live());
        let cpu = facts.cpus.allowed.get().and_then(|cpus| cpus.iter().last()).unwrap();
        if isolate::nohz_full(cpu, &facts).is_ok() {
            println!("skipped: ticks_are_seen: CPU {cpu} is nohz_full");
            return;
        }
        let limit_ns = Nanos::from_millis(30);
        let spec = NohzSpec { cpu, limit_ns, ..spec() };
        let tried = TryResult::of(&spec, &facts, &AtomicBool::new(false)).unwrap();
        assert!(!tried.entry.entered && tried.entry.waited >= limit_ns);
        let is_busy = |other: &isolate::WaitingThread| other.name == "busy";
        assert!(!tried.entry.others.iter().any(is_busy));
        let over = AtomicBool::new(false);
        let tried = scope(|scope| {
            let busy = start(scope, "busy", || {
                isolate::pin(cpu).unwrap();
                isolate::spin(Nanos::from_secs(60).into(), Some(&over));
            });
            let tried = TryResult::of(&spec, &facts, &AtomicBool::new(false)).unwrap();
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            busy.unwrap().join().unwrap();
            tried
        });
        assert!(tried.entry.others.iter().any(is_busy), "{:?}", tried.entry.others);
        let stopped = TryResult::of(&spec, &facts, &AtomicBool::new(true)).unwrap();
        assert!(!stopped.entry.entered && stopped.observed.is_none());
    }
}
