//! The stolen time during a loop, from the best clock that is available.
//!
//! If the kernel subtracts stolen time from its tasks' (`CONFIG_PARAVIRT_TIME_ACCOUNTING`, with any
//! hypervisor), the scheduler reads the clock at each tick and each switch, to the nanosecond, and
//! the programs copy its readings (`bpf/events.bpf.c`). Else `/proc/stat` is read before and after
//! the run: it counts in steps of 10 ms (`USER_HZ`), and both readings may be a step too low.

use recording::{CpuNoise, StealClock};
use units::{Nanos, Span};

use crate::clock::Clock;
use crate::join::steal::{StealBounds, common};
use crate::records::{Lane, Stolen};

/// The stolen time, from each reading with an increase to the one before; `None` without a clock.
pub(crate) fn read(
    lane: &Lane,
    cpu: &CpuNoise,
    clock: Clock,
) -> Option<(StealClock, Vec<StealBounds>)> {
    if let Some(stolen) = lane.all_stolen() {
        let bounds = stolen.iter().filter_map(|stolen| of_scheduler(*stolen, cpu, clock));
        return Some((StealClock::Paravirt, bounds.collect()));
    }
    Some((StealClock::Proc, vec![of_proc(cpu)?]))
}

/// The bounds for the loop's time. Time outside of the run, or in periods of lost gaps, may contain
/// all of it.
fn of_scheduler(stolen: Stolen, cpu: &CpuNoise, clock: Clock) -> Option<StealBounds> {
    let Stolen { from, until, ns } = stolen;
    let span = clock.span((from, until), cpu.began_ns)?;
    let inside: Nanos = cpu.ran().iter().map(|ran| common(*ran, span)).sum();
    if inside.is_zero() {
        return None;
    }
    let ns = Nanos::from_nanos(ns);
    let outside = Nanos::from_nanos(until.saturating_sub(from)).saturating_sub(inside);
    let is_kept = cpu.lost.is_none_or(|lost| span.end() <= lost.since_ns);
    let at_least = if is_kept { ns.saturating_sub(outside) } else { Nanos::ZERO };
    let at_most = ns.min(inside);
    Some(StealBounds { span, at_least: at_least.min(at_most), at_most })
}

/// The same if only the sum is known.
fn of_proc(cpu: &CpuNoise) -> Option<StealBounds> {
    let counted = cpu.proc.steal_ns?;
    let ran = cpu.ran();
    let length = ran.last()?.end();
    let step =
        StealClock::STEP.saturating_mul(u64::try_from(ran.len()).unwrap_or(u64::MAX));
    let outside = cpu.proc.span_ns.saturating_sub(cpu.elapsed_ns);
    let lost = cpu.lost.map_or(Nanos::ZERO, |lost| lost.ns);
    Some(StealBounds {
        span: Span { start: Nanos::ZERO, length },
        at_least: counted.saturating_sub(step + outside + lost),
        at_most: (counted + step).min(cpu.elapsed_ns),
    })
}
