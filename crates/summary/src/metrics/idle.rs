//! The metrics of idle CPUs, and by how much they may differ in another run of the same kernel.
//!
//! An idle CPU is interrupted rarely, and by events of which each run has another number: what the
//! kernel does every few seconds, and timers that expire together or not. They are counted as independent
//! ones are.

use units::PerSecond;

use crate::cell::idle_cost::IdleCost;
use crate::cell::idle_stretches::{IdleStretches, StateShare};
use crate::metrics::row::{RARE, Reading, exact, ns, ppm, within};

/// Instructions and timer interrupts per second, of all idle CPUs of a cell together.
pub(crate) type Rates = [Option<Reading>; 2];

/// What one interruption of an idle CPU costs if none was seen, in instructions: a timer interrupt and
/// the work of a kernel thread.
const INTERRUPTION: f64 = 10_000.0;

/// By how much the number of independent events may differ in another run of the same length: three
/// standard deviations of Poisson's distribution, and three events if there was none (after six runs
/// without one, four or more in the next have a probability of 1 in 2401, with a uniform prior of their
/// rate).
fn events(count: u64) -> f64 {
    3.0 * (count as f64 + 1.0).sqrt()
}

pub(crate) fn rates(cost: &IdleCost) -> Rates {
    // One interrupt at each edge of each interval: /proc is read just before and just after.
    let edges = PerSecond::of(cost.intervals.saturating_mul(2), cost.idle_ns);
    let edges = edges.map_or(0.0, PerSecond::get);
    let off = |deviation| sum(&cost.cpus, deviation).map(|(off, _)| off * RARE);
    let instructions_off = off(|cpu| cpu.instructions_hz_deviation).unwrap_or(0.0);
    [
        within(
            sum(&cost.cpus, |cpu| cpu.instructions_hz),
            Some(instructions_off.max(rare_instructions_hz(cost))),
        ),
        within(
            sum(&cost.cpus, |cpu| cpu.timer_hz),
            off(|cpu| cpu.timer_hz_deviation).map(|off| off + edges),
        ),
    ]
}

/// The instructions per second of the interruptions that another run may have more.
fn rare_instructions_hz(cost: &IdleCost) -> f64 {
    let entries = cost.cpus.iter().map(|cpu| cpu.timer_entries).sum();
    let all: u64 = cost.cpus.iter().map(|cpu| cpu.instructions.get()).sum();
    let each = if entries == 0 { INTERRUPTION } else { all as f64 / entries as f64 };
    let once = PerSecond::of(1, cost.idle_ns).map_or(0.0, PerSecond::get);
    events(entries) * each * once
}

/// The rate of all CPUs together; unknown if one of them is.
pub(crate) fn sum<S>(cpus: &[S], rate: fn(&S) -> Option<PerSecond>) -> Option<Reading> {
    let sum: Option<f64> = cpus.iter().map(|cpu| Some(rate(cpu)?.get())).sum();
    exact(sum.map(|sum| sum + 0.0), f64::from) // the sum of no numbers would be -0
}

/// Their mean length: longer, if there are fewer of them.
pub(crate) fn mean_stretch(idle: &IdleStretches) -> Option<Reading> {
    let (mean, _) = ns(idle.mean_ns)?;
    let count = idle.stretches as f64;
    let fewer = (count - events(idle.stretches)).max(count / 2.0);
    Some((mean, mean * (count / fewer - 1.0)))
}

/// The share of a processor's state: each interruption takes a stretch that is just too short from it.
pub(crate) fn share(
    idle: &IdleStretches,
    processor: &str,
    state: &str,
) -> Option<Reading> {
    let &StateShare { state, share_ppm } = idle.state(processor, state)?;
    let (share, _) = ppm(share_ppm)?;
    let residency_ns = state.target_residency_us as f64 * 1e3;
    let lost = events(idle.stretches) * residency_ns / idle.halted_ns.get() as f64;
    Some((share, (lost * 1e6).min(1e6)))
}
