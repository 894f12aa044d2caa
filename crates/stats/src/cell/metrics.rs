//! A cell's numbers by name: what a limit or a stored baseline is held against.
//!
//! One name means one thing, whatever the cell's mode. Where there are several CPUs,
//! rates are those of all together, and shares and lengths those of the worst. What is
//! not known has no metric: no limit is ever met by a number that is not there.
//!
//! Each has a tolerance, by which it may differ in another run of the same kernel: the
//! largest distance of a single phase from all phases, and twice that for means and rates,
//! which rare and expensive events move.

use units::{Instructions, Nanos, PerSecond};

use crate::{
    CallCost, CallCosts, CallSummary, CallsSummary, CellSummary, CpuIdleCost, IdleCost,
    NohzTestSummary, NoiseSummary, SlicesSummary, Spread, Summary, TickCost, TickKinds,
    TicksSummary, TurnsOff,
};

const GAP: &str = "tick_instructions";
const GAP_MEAN: &str = "tick_instructions_mean";
const TICK: &str = "tick_kernel_instructions";
const TICK_MEAN: &str = "tick_kernel_instructions_mean";
const KIND_MIN: &str = "tick_kind_instructions_min";
const KIND_MAX: &str = "tick_kind_instructions_max";
const IDLE: &str = "idle_instructions_hz";
const IDLE_TIMER: &str = "idle_timer_hz";
const ENTRY: &str = "nohz_entry_instructions";
const ENTRY_LENGTH: &str = "nohz_entry_ns";
const LEFT: &str = "nohz_timer_hz";
const SLICE: &str = "slice_ns_mean";
const SWITCHES: &str = "slice_switches_hz";
const PASSES: &str = "spinner_passes_hz";
const NOISE: &str = "noise_ppm";
const GAP_TYPICAL: &str = "gap_ns_p50";
const GAP_MAX: &str = "gap_ns_max";
/// How much more than a single phase another run may be off, where rare events count.
const RARE: f64 = 2.0;
/// Kinds of tick may cost so many instructions more or less for the same kernel: what
/// `rcu_sched_clock_irq` executes depends on what RCU waits for just then, for all ticks of a
/// boot or for some (4 on 6.12, 6 on 6.1; docs/method.md).
const BY_STATE: f64 = 6.0;
/// What stands behind a call's name.
const CALL: &str = "_instructions";
const CALL_MEAN: &str = "_instructions_mean";
const CALL_TYPICAL: &str = "_ns_p50";

/// The names of all metrics there can be, with those of these calls.
pub fn metric_names<'a>(calls: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let names = [
        GAP,
        GAP_MEAN,
        TICK,
        TICK_MEAN,
        KIND_MIN,
        KIND_MAX,
        IDLE,
        IDLE_TIMER,
        NOISE,
        GAP_TYPICAL,
        GAP_MAX,
        ENTRY,
        ENTRY_LENGTH,
        LEFT,
        SLICE,
        SWITCHES,
        PASSES,
    ];
    let of_call =
        |call| [CALL, CALL_MEAN, CALL_TYPICAL].map(|end| format!("{call}{end}"));
    let calls = calls.into_iter().flat_map(of_call);
    names.map(str::to_owned).into_iter().chain(calls).collect()
}

/// The metrics of a summary, in the order in which they are listed.
///
/// | name | what |
/// |---|---|
/// | `tick_instructions`, `tick_instructions_mean` | median and mean of the gaps, the loop's own pass included |
/// | `tick_kernel_instructions`, `tick_kernel_instructions_mean` | median and mean cost of a timer interrupt in the kernel |
/// | `tick_kind_instructions_min`, `tick_kind_instructions_max` | the cheapest and the most expensive kind that at least 10 % of these timer interrupts are of |
/// | `idle_instructions_hz` | instructions per idle second, all CPUs together |
/// | `idle_timer_hz` | timer interrupts per idle second, all CPUs together |
/// | `<call>_instructions`, `<call>_instructions_mean` | median and mean cost of a request: `getpid_instructions` |
/// | `nohz_entry_instructions`, `nohz_entry_ns` | until a tick had stopped; none where it did not |
/// | `nohz_timer_hz` | timer interrupts a second after that |
/// | `slice_ns_mean` | CPU time of spinners by involuntary switches; in exact mode instructions |
/// | `slice_switches_hz`, `spinner_passes_hz` | those switches, and passes of the spinners' loops, a second |
/// | `noise_ppm`, `gap_ns_p50`, `gap_ns_max` | what a spinning CPU lost, in time |
/// | `<call>_ns_p50` | how long a request took |
pub fn metrics(summary: &CellSummary) -> Vec<Metric> {
    match summary {
        CellSummary::TickCost(cost) => tick_cost(cost),
        CellSummary::IdleCost(cost) => idle_cost(cost),
        CellSummary::CallCosts(costs) => call_costs(costs),
        CellSummary::NohzCost(cost) => nohz(&cost.test, ENTRY),
        CellSummary::SlicesCost(cost) => slices(&cost.found),
        CellSummary::Measured(summary) => measured(summary),
    }
}

fn measured(summary: &Summary) -> Vec<Metric> {
    match summary {
        Summary::Slices(summary) => slices(summary),
        Summary::NohzTest(test) => nohz(test, ENTRY_LENGTH),
        Summary::Noise(summary) => exact(noise(summary)),
        Summary::Ticks(summary) => exact(ticks(summary)),
        Summary::Calls(summary) => exact(calls(summary)),
        Summary::Check(summary) => {
            exact([ticks(&summary.rest), noise(&summary.noise)].concat())
        }
        Summary::Latency(_)
        | Summary::Run(_)
        | Summary::Wakers(_)
        | Summary::NohzStress(_)
        | Summary::Jitter(_) => Vec::new(),
    }
}

/// One number of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Its name, with the unit in it.
    pub name: String,
    /// The number.
    pub value: f64,
    /// By how much it may differ in another run of the same kernel, in the same unit.
    pub tolerance: f64,
}

/// Numbers that have no spread over phases.
fn exact(named: Vec<(String, Option<f64>)>) -> Vec<Metric> {
    let metric = |(name, value): (String, Option<f64>)| metric(&name, value, None);
    named.into_iter().filter_map(metric).collect()
}

fn metric(name: &str, value: Option<f64>, tolerance: Option<f64>) -> Option<Metric> {
    let tolerance = tolerance.unwrap_or(0.0);
    Some(Metric { name: name.to_owned(), value: value?, tolerance })
}

/// Median and mean of a spread.
fn spread(names: [&str; 2], spread: Option<&Spread>) -> [Option<Metric>; 2] {
    let [p50, mean] = names;
    let Some(spread) = spread else { return [None, None] };
    [
        metric(p50, spread.p50.map(float), spread.p50_deviation.map(float)),
        metric(mean, spread.mean, spread.mean_deviation.map(|off| off * RARE)),
    ]
}

fn kinds(kinds: &TickKinds) -> [Option<Metric>; 2] {
    let [min, max] = kinds.deviations();
    let off = |deviation: Option<u64>| {
        deviation.map(|off| float(Instructions::new(off)).max(BY_STATE))
    };
    [
        metric(KIND_MIN, kinds.frequent_min.map(float), off(min)),
        metric(KIND_MAX, kinds.frequent_max.map(float), off(max)),
    ]
}

fn float(instructions: Instructions) -> f64 {
    instructions.get() as f64
}

fn tick_cost(cost: &TickCost) -> Vec<Metric> {
    let gap = spread([GAP, GAP_MEAN], cost.gap_instructions.as_ref());
    let tick = spread([TICK, TICK_MEAN], cost.kernel_instructions.as_ref());
    let kinds = cost.kinds.as_ref().map_or([None, None], kinds);
    [gap, tick, kinds].into_iter().flatten().flatten().collect()
}

fn idle_cost(cost: &IdleCost) -> Vec<Metric> {
    let sum = |rate: fn(&CpuIdleCost) -> Option<PerSecond>| -> Option<f64> {
        cost.cpus.iter().map(|cpu| Some(rate(cpu)?.get())).sum()
    };
    let idle = metric(
        IDLE,
        sum(|cpu| cpu.instructions_hz),
        sum(|cpu| cpu.instructions_hz_deviation).map(|off| off * RARE),
    );
    let timer = metric(
        IDLE_TIMER,
        sum(|cpu| cpu.timer_hz),
        sum(|cpu| cpu.timer_hz_deviation).map(|off| off * RARE + edges(cost)),
    );
    let tick = spread([TICK, TICK_MEAN], Some(&cost.tick_kernel_instructions));
    [[idle, timer], tick, kinds(&cost.kinds)].into_iter().flatten().flatten().collect()
}

/// The rate of one interrupt at each edge of each interval: /proc is read just before an
/// interval, and just after.
fn edges(cost: &IdleCost) -> f64 {
    let edges = cost.intervals.saturating_mul(2);
    PerSecond::of(edges, cost.idle_ns).map_or(0.0, PerSecond::get)
}

fn call_costs(costs: &CallCosts) -> Vec<Metric> {
    let cost = |call: &CallCost| {
        let names = [CALL, CALL_MEAN].map(|end| format!("{}{end}", call.name));
        spread(names.each_ref().map(String::as_str), Some(&call.instructions))
    };
    costs.calls.iter().flat_map(cost).flatten().collect()
}

/// In exact mode a nanosecond of the guest's clock is an instruction.
fn nohz(test: &NohzTestSummary, entry: &str) -> Vec<Metric> {
    let nanos = |length: Nanos| length.get() as f64;
    let wait = test.wait_ns.filter(|_| test.entered == Some(true)).map(nanos);
    let off = test.wait_off_ns.map(|off| nanos(off) * RARE);
    let observed = test.observed.as_ref();
    let left = observed.and_then(|observed| observed.timer_hz).map(PerSecond::get);
    // One interrupt at each edge: /proc is read just before the observed time, and just after.
    let edges = observed
        .and_then(|observed| PerSecond::of(2, observed.span_ns))
        .map(PerSecond::get);
    let metrics = [metric(entry, wait, off), metric(LEFT, left, edges)];
    metrics.into_iter().flatten().collect()
}

/// In exact mode a nanosecond of the guest's clock is an instruction.
fn slices(summary: &SlicesSummary) -> Vec<Metric> {
    let found = &summary.found;
    let nanos = |length: Nanos| length.get() as f64;
    let off = |of: fn(&TurnsOff) -> Option<f64>| {
        found.turns_off.as_ref().and_then(of).map(|off| off * RARE)
    };
    let metrics = [
        metric(
            SLICE,
            found.slice_ns.mean.map(nanos),
            off(|off| off.slice_ns.map(|length| length.get() as f64)),
        ),
        metric(
            SWITCHES,
            found.switches_hz.map(PerSecond::get),
            off(|off| off.switches_hz.map(PerSecond::get)),
        ),
        metric(
            PASSES,
            found.passes_hz.map(PerSecond::get),
            off(|off| off.passes_hz.map(PerSecond::get)),
        ),
    ];
    metrics.into_iter().flatten().collect()
}

fn noise(summary: &NoiseSummary) -> Vec<(String, Option<f64>)> {
    let cpus = || summary.cpus.iter();
    let nanos = |length: Nanos| length.get() as f64;
    vec![
        (NOISE.to_owned(), worst(cpus().map(|cpu| Some(cpu.noise_ppm?.get())))),
        (GAP_TYPICAL.to_owned(), worst(cpus().map(|cpu| cpu.gap_ns.p50.map(nanos)))),
        (GAP_MAX.to_owned(), worst(cpus().map(|cpu| cpu.gap_ns.max.map(nanos)))),
    ]
}

fn ticks(summary: &TicksSummary) -> Vec<(String, Option<f64>)> {
    let timer = summary.cpus.iter().map(|cpu| Some(cpu.timer_hz?.get()));
    vec![(IDLE_TIMER.to_owned(), timer.sum())]
}

fn calls(summary: &CallsSummary) -> Vec<(String, Option<f64>)> {
    let length = |call: &CallSummary| {
        let p50 = call.step_ns.p50.map(|length| length.get() as f64);
        (format!("{}{CALL_TYPICAL}", call.name), p50)
    };
    summary.calls.iter().map(length).collect()
}

fn worst(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use recording::{Call, CallTimes, CallsSeries, CallsSpec, CpuTicks, TickSample};
    use units::{Cpu, Instructions, TscHz};

    use super::*;
    use crate::cell::Idle;

    /// Names and values.
    fn named(found: &[Metric]) -> Vec<(&str, f64)> {
        found.iter().map(|metric| (metric.name.as_str(), metric.value)).collect()
    }

    /// Check that what a limit may be held against has a name that is known beforehand.
    #[test]
    fn names_are_known() {
        let names = metric_names(["getpid"]);
        for known in ["tick_instructions", "getpid_instructions", "getpid_ns_p50"] {
            assert!(names.iter().any(|name| name == known), "{known}");
        }
        assert!(!names.iter().any(|name| name.starts_with("pipe")));
    }

    /// Check that a tick's numbers have names of their own, with the spread over phases as
    /// tolerance, and that what is not known has none.
    #[test]
    fn ticks_cost() {
        let phase = |values: [u64; 2]| values.map(|value| (Instructions::new(value), 1));
        let cost = TickCost {
            gap_instructions: Some(Spread::phased(
                [[2584, 2584], [2584, 2600]].map(phase),
            )),
            kernel_instructions: None,
            kinds: None,
            culprits: Vec::new(),
        };
        let found = metrics(&CellSummary::TickCost(cost));
        let expected =
            [("tick_instructions", 2584.0), ("tick_instructions_mean", 2588.0)];
        assert_eq!(named(&found), expected);
        assert_eq!([found[0].tolerance, found[1].tolerance], [0.0, 8.0]);
    }

    /// Check that idle rates are those of all CPUs, and unknown as soon as one is.
    #[test]
    fn idle_rates_add_up() {
        let cpu = |cpu: u32, timer| {
            let cpu = Cpu::new(cpu);
            Idle { cpu, timer, phases: Vec::new() }
        };
        let of = |timers: [Option<u64>; 2]| {
            let cpus = [cpu(0, timers[0]), cpu(1, timers[1])];
            metrics(&CellSummary::IdleCost(IdleCost::of_cpus(
                &[Nanos::from_secs(2)],
                &cpus,
            )))
        };
        let all = [("idle_instructions_hz", 0.0), ("idle_timer_hz", 7.0)];
        assert_eq!(named(&of([Some(4), Some(10)])), all);
        assert_eq!(named(&of([Some(4), None])), all[..1]);
    }

    /// Check that timed cells have metrics too, under the same name where it is the same.
    #[test]
    fn timed() {
        let cpu = CpuTicks {
            cpu: Cpu::new(0),
            timer: Some(250),
            interrupts: None,
            busy_ns: None,
            accounted_ns: None,
        };
        let (start_ns, span_ns) = (Nanos::ZERO, Nanos::from_secs(1));
        let sample = TickSample { start_ns, span_ns, cpus: vec![cpu] };
        let summary = CellSummary::Measured(Summary::Ticks(TicksSummary::of(&[sample])));
        assert_eq!(named(&metrics(&summary)), [("idle_timer_hz", 250.0)]);
        let (cpu, calls) = (Cpu::new(0), vec![Call::Getpid]);
        let spec = CallsSpec { cpu, calls, repeats: 3, phases: None };
        let step_ns = [130, 120, 9_000].map(Nanos::from_nanos).to_vec();
        let series = CallsSeries {
            clock: "tsc".to_owned(),
            clock_hz: TscHz::new(2_000_000_000).unwrap(),
            calls: vec![CallTimes { call: Call::Getpid, step_ns }],
        };
        let summary =
            CellSummary::Measured(Summary::Calls(CallsSummary::of(&spec, &series)));
        assert_eq!(named(&metrics(&summary)), [("getpid_ns_p50", 130.0)]);
        let none = CellSummary::Measured(Summary::Noise(NoiseSummary {
            cpus: Vec::new(),
            source: None,
            culprits: Vec::new(),
            eventless: None,
            steal: None,
        }));
        assert_eq!(metrics(&none), []);
    }
}
