//! The cost of single system calls: a pinned thread repeats each call, and every repeat is timed.
//!
//! Each call has a new thread, so that none inherits a priority, a mapping or a warm stack from
//! another. Signals are blocked in these threads.
//!
//! Cannot see: the share of an interrupt in the time of a repeat; the shortest repeats had none.

pub(crate) mod partners;
pub(crate) mod repeats;
pub(crate) mod requests;

use std::sync::atomic::AtomicBool;
use std::thread::scope;

use facts::Facts;
use recording::{Call, CallTimes, CallsSeries, CallsSpec, Code, Doubt};
use units::{Cpu, CpuSet, Nanos, Tsc, TscDelta, TscHz};

use crate::calls::repeats::{Repeats, failed};
use crate::clock::Clock;
use crate::control::observer::Watch;
use crate::threads::memory::Memory;
use crate::threads::thread::{block_signals, died, start};
use crate::time::counter;
use crate::{Error, Kind};

/// The most repeats: their times are stored.
const REPEATS_MAX: u32 = 1_000_000;
/// The most page faults: each allocates a page, and a guest has 256 MB.
const PAGES_MAX: u32 = 16_384;

/// Makes the calls, one after the other.
pub(crate) fn run(
    spec: &CallsSpec,
    facts: &Facts,
    watch: &mut Watch<'_>,
    doubts: &mut Vec<Doubt>,
) -> Result<CallsSeries, Error> {
    refuse(spec, facts)?;
    let clock = Clock::calibrate()?;
    let mut results = Vec::new();
    for &call in &spec.calls {
        if watch.control.stop.is_requested() {
            break;
        }
        results.push(RawCall::of(call, spec, watch.control.stop.as_atomic())?);
    }
    let (clock_hz, of_clock) = clock.finish(facts);
    doubts.extend(of_clock);
    doubts.extend(doubts_of(&results, spec.cpu));
    let calls = results.iter().map(|result| result.times(clock_hz)).collect();
    Ok(CallsSeries { clock: counter::NAME.to_owned(), clock_hz, calls })
}

/// Refuses an invalid specification, and one that would leave the machine no CPU time.
pub(crate) fn refuse(spec: &CallsSpec, facts: &Facts) -> Result<(), Error> {
    let refused = |text: &str| Err(Error::new(Kind::Spec, text));
    if spec.calls.is_empty() {
        return refused("no call to make");
    }
    if !(1..=REPEATS_MAX).contains(&spec.repeats) {
        return refused("a call is repeated between 1 and 1000000 times");
    }
    if spec.calls.contains(&Call::PageFault) && spec.repeats > PAGES_MAX {
        return refused("page_fault allocates a page per repeat: 16384 repeats at most");
    }
    if spec.calls.contains(&Call::Switch) {
        let alone: CpuSet = [spec.cpu].into_iter().collect();
        isolate::require_ordinary_share(&alone, facts)?;
    }
    Ok(())
}

/// The result of one call, in ticks of the counter.
struct RawCall {
    call: Call,
    steps: Vec<TscDelta>,
    /// The CPU of the thread when it ended.
    ended_on: Option<Cpu>,
}

impl RawCall {
    /// Repeats one call in a new thread.
    fn of(call: Call, spec: &CallsSpec, stop: &AtomicBool) -> Result<Self, Error> {
        scope(|scope| {
            let thread = start(scope, "calls", || Self::run(call, spec, stop))?;
            thread.join().unwrap_or_else(|_| Err(died("calls")))
        })
    }

    /// The thread's main function.
    fn run(call: Call, spec: &CallsSpec, stop: &AtomicBool) -> Result<Self, Error> {
        block_signals();
        isolate::pin(spec.cpu)?;
        let count = usize::try_from(spec.repeats).unwrap_or(usize::MAX);
        let bytes = count.saturating_mul(size_of::<Tsc>());
        let mut memory = Memory::new(bytes).map_err(|error| failed("mmap(2)", error))?;
        let excluded = memory.exclude_from_children();
        excluded.map_err(|error| failed("madvise(2)", error))?;
        let mut repeats =
            Repeats::new(memory.filled(Tsc::from_counter(0)), spec.phases, stop);
        requests::make(call, spec.cpu, &mut repeats)?;
        Ok(Self { call, steps: repeats.steps(), ended_on: isolate::current_cpu() })
    }

    fn times(&self, hz: TscHz) -> CallTimes {
        let forwards = |&step: &TscDelta| {
            if step.is_backwards() { Nanos::ZERO } else { hz.span(step) }
        };
        CallTimes { call: self.call, step_ns: self.steps.iter().map(forwards).collect() }
    }
}

/// Doubts of the threads: a wrong CPU, a counter that was set back.
fn doubts_of(results: &[RawCall], cpu: Cpu) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    if results.iter().any(|result| result.ended_on.is_some_and(|ended| ended != cpu)) {
        let text = format!(
            "CPU {cpu}: the calling thread was moved to another CPU: something changed its \
             affinity, or the CPU went offline"
        );
        doubts.push(Doubt::new(Code::Migrated, text));
    }
    if results.iter().flat_map(|result| &result.steps).any(|step| step.is_backwards()) {
        let text = format!("CPU {cpu}: the counter went backwards during the run");
        doubts.push(Doubt::new(Code::ClockBackwards, text));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(calls: &[Call], repeats: u32) -> CallsSpec {
        CallsSpec { cpu: Cpu::new(0), calls: calls.to_vec(), repeats, phases: None }
    }

    fn facts(rt_runtime_us: i64) -> Facts {
        let page = serde_json::json!({
            "cpus": {"online": "0"}, "sched": {"rt_runtime_us": rt_runtime_us},
            "sources": {}, "unknown": {},
        });
        serde_json::from_value(page).unwrap()
    }

    /// Check that invalid specifications are refused before anything runs, and a switch that would
    /// leave the machine no CPU time.
    #[test]
    fn nonsense_is_refused() {
        let kind = |calls: &[Call], repeats, rt_runtime_us| {
            let refused = refuse(&spec(calls, repeats), &facts(rt_runtime_us));
            refused.err().map(|error| error.kind())
        };
        assert_eq!(kind(&[], 1, 0), Some(Kind::Spec));
        assert_eq!(kind(&[Call::Getpid], 0, 0), Some(Kind::Spec));
        assert_eq!(kind(&[Call::Getpid], REPEATS_MAX + 1, 0), Some(Kind::Spec));
        assert_eq!(kind(&[Call::PageFault], PAGES_MAX + 1, 0), Some(Kind::Spec));
        assert_eq!(kind(&[Call::Getpid], REPEATS_MAX, -1), None);
        assert_eq!(kind(&[Call::PageFault, Call::Switch], PAGES_MAX, 950_000), None);
        let taken_over = Kind::Isolate(isolate::Kind::Unsafe);
        assert_eq!(kind(&[Call::Switch], 1, -1), Some(taken_over));
    }

    /// Check that a call is made on the requested CPU, and that one that is not available is
    /// refused.
    #[test]
    fn calls_are_made_where_asked() {
        let never = AtomicBool::new(false);
        let ended_on = |cpu| {
            let spec = CallsSpec { cpu, ..spec(&[Call::Getpid], 3) };
            RawCall::of(Call::Getpid, &spec, &never).map(|result| result.ended_on)
        };
        let facts = Facts::read(&facts::Root::live());
        for cpu in facts.cpus.allowed.get().unwrap().iter() {
            assert_eq!(ended_on(cpu).unwrap(), Some(cpu));
        }
        let refused = ended_on(Cpu::new(60_000)).unwrap_err();
        assert_eq!(refused.kind(), Kind::Isolate(isolate::Kind::Cpuset));
    }

    /// Check that a moved thread and a counter that was set back are reported, and that a step back
    /// has no length.
    #[test]
    fn what_went_wrong_is_told() {
        let steps = [7, u64::MAX].map(TscDelta::from_ticks).to_vec();
        let result = RawCall { call: Call::Fork, steps, ended_on: Some(Cpu::new(1)) };
        let times = result.times(TscHz::new(1_000_000_000).unwrap());
        assert_eq!(times.step_ns, [Nanos::from_nanos(7), Nanos::ZERO]);
        let codes = |cpu| -> Vec<Code> {
            let doubts = doubts_of(std::slice::from_ref(&result), Cpu::new(cpu));
            doubts.iter().map(|doubt| doubt.code).collect()
        };
        assert_eq!(codes(1), [Code::ClockBackwards]);
        assert_eq!(codes(0), [Code::Migrated, Code::ClockBackwards]);
    }
}
