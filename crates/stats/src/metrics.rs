//! A cell's numbers by name: what a limit or a stored baseline is held against.
//!
//! One name means one thing, whatever the cell's mode. Where there are several CPUs,
//! rates are those of all together, and shares and lengths those of the worst. What is
//! not known has no metric: no limit is ever met by a number that is not there.

use units::{Nanos, PerSecond};

use crate::{
    CallCost, CallCosts, CallSummary, CallsSummary, CellSummary, IdleCost,
    NohzTestSummary, NoiseSummary, SlicesSummary, Spread, TickCost, TicksSummary,
};

const GAP: &str = "tick_instructions";
const TICK: &str = "tick_kernel_instructions";
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
/// What stands behind a call's name.
const CALL: &str = "_instructions";
const CALL_TYPICAL: &str = "_ns_p50";

/// The names of all metrics there can be, with those of these calls.
pub fn metric_names<'a>(calls: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let names = [
        GAP,
        TICK,
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
    let of_call = |call| [CALL, CALL_TYPICAL].map(|end| format!("{call}{end}"));
    let calls = calls.into_iter().flat_map(of_call);
    names.map(str::to_owned).into_iter().chain(calls).collect()
}

/// The metrics of a summary, in the order in which they are told.
///
/// | name | what |
/// |---|---|
/// | `tick_instructions` | the most frequent gap, the loop's own pass included |
/// | `tick_kernel_instructions` | the most frequent cost of a timer interrupt in the kernel |
/// | `idle_instructions_hz` | instructions per idle second, all CPUs together |
/// | `idle_timer_hz` | timer interrupts per idle second, all CPUs together |
/// | `<call>_instructions` | the most frequent cost of a request: `getpid_instructions` |
/// | `nohz_entry_instructions`, `nohz_entry_ns` | until a tick had stopped; none where it did not |
/// | `nohz_timer_hz` | timer interrupts a second after that |
/// | `slice_ns_mean` | CPU time of spinners by involuntary switches; in exact mode instructions |
/// | `slice_switches_hz`, `spinner_passes_hz` | those switches, and passes of the spinners' loops, a second |
/// | `noise_ppm`, `gap_ns_p50`, `gap_ns_max` | what a spinning CPU lost, in time |
/// | `<call>_ns_p50` | how long a request took |
pub fn metrics(summary: &CellSummary) -> Vec<(String, f64)> {
    let named: Vec<(String, Option<f64>)> = match summary {
        CellSummary::TickCost(cost) => tick_cost(cost),
        CellSummary::IdleCost(cost) => idle_cost(cost),
        CellSummary::CallCosts(costs) => call_costs(costs),
        CellSummary::NohzCost(cost) => nohz(&cost.test, ENTRY),
        CellSummary::SlicesCost(cost) => slices(&cost.found),
        CellSummary::Slices(summary) => slices(summary),
        CellSummary::Nohz(test) => nohz(test, ENTRY_LENGTH),
        CellSummary::Noise(summary) => noise(summary),
        CellSummary::Ticks(summary) => ticks(summary),
        CellSummary::Calls(summary) => calls(summary),
        CellSummary::Check(summary) => {
            [ticks(&summary.rest), noise(&summary.noise)].concat()
        }
    };
    named.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn tick_cost(cost: &TickCost) -> Vec<(String, Option<f64>)> {
    let TickCost { gap_instructions, kernel_instructions, .. } = cost;
    vec![
        (GAP.to_owned(), gap_instructions.as_ref().and_then(mode)),
        (TICK.to_owned(), kernel_instructions.as_ref().and_then(mode)),
    ]
}

fn idle_cost(cost: &IdleCost) -> Vec<(String, Option<f64>)> {
    let instructions = cost.cpus.iter().map(|cpu| Some(cpu.instructions_hz?.get()));
    let timer = cost.cpus.iter().map(|cpu| Some(cpu.timer_hz?.get()));
    vec![
        (IDLE.to_owned(), instructions.sum()),
        (IDLE_TIMER.to_owned(), timer.sum()),
        (TICK.to_owned(), mode(&cost.tick_kernel_instructions)),
    ]
}

fn call_costs(costs: &CallCosts) -> Vec<(String, Option<f64>)> {
    let cost =
        |call: &CallCost| (format!("{}{CALL}", call.name), mode(&call.instructions));
    costs.calls.iter().map(cost).collect()
}

/// In exact mode a nanosecond of the guest's clock is an instruction.
fn nohz(test: &NohzTestSummary, entry: &str) -> Vec<(String, Option<f64>)> {
    let wait = test.wait_ns.filter(|_| test.entered == Some(true));
    let left = test.stay.as_ref().and_then(|stay| stay.timer_hz);
    vec![
        (entry.to_owned(), wait.map(|wait| wait.get() as f64)),
        (LEFT.to_owned(), left.map(PerSecond::get)),
    ]
}

/// In exact mode a nanosecond of the guest's clock is an instruction.
fn slices(summary: &SlicesSummary) -> Vec<(String, Option<f64>)> {
    let found = &summary.found;
    vec![
        (SLICE.to_owned(), found.slice_ns.mean.map(|mean| mean.get() as f64)),
        (SWITCHES.to_owned(), found.switches_hz.map(PerSecond::get)),
        (PASSES.to_owned(), found.passes_hz.map(PerSecond::get)),
    ]
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

fn mode(spread: &Spread) -> Option<f64> {
    spread.mode.map(|mode| mode.get() as f64)
}

fn worst(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallInput, IdleInput, TickInput};
    use units::{Cpu, Instructions};

    fn owned(pairs: &[(&str, f64)]) -> Vec<(String, f64)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
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

    /// Check that a tick's two numbers have names of their own, and that what is not
    /// known has none.
    #[test]
    fn ticks_cost() {
        let gaps = Some(Spread::of([2584, 2584, 2600].map(Instructions::new)));
        let cost = TickCost {
            gap_instructions: gaps,
            kernel_instructions: None,
            culprits: Vec::new(),
        };
        let found = metrics(&CellSummary::TickCost(cost));
        assert_eq!(found, owned(&[("tick_instructions", 2584.0)]));
    }

    /// Check that idle rates are those of all CPUs, and unknown as soon as one is.
    #[test]
    fn idle_rates_add_up() {
        let cpu = |cpu: u32, timer| {
            let cpu = Cpu::new(cpu);
            IdleInput { cpu, timer, phases: Vec::new() }
        };
        let of = |timers: [Option<u64>; 2]| {
            let cpus = [cpu(0, timers[0]), cpu(1, timers[1])];
            metrics(&CellSummary::IdleCost(IdleCost::of(Nanos::from_secs(2), &cpus)))
        };
        let all = [("idle_instructions_hz", 0.0), ("idle_timer_hz", 7.0)];
        assert_eq!(of([Some(4), Some(10)]), owned(&all));
        assert_eq!(of([Some(4), None]), owned(&all[..1]));
    }

    /// Check that timed cells have metrics too, under the same name where it is the same.
    #[test]
    fn timed() {
        let seen = |timer| TickInput {
            cpu: Cpu::new(0),
            span: Nanos::from_secs(1),
            timer,
            interrupts: None,
            busy: None,
            accounted: None,
        };
        let summary = CellSummary::Ticks(TicksSummary::of([seen(Some(250))]));
        assert_eq!(metrics(&summary), owned(&[("idle_timer_hz", 250.0)]));
        let steps = [130, 120, 9_000].map(Nanos::from_nanos);
        let call = CallInput { name: "getpid", steps: &steps };
        let summary = CellSummary::Calls(CallsSummary::of(Cpu::new(0), [call]));
        assert_eq!(metrics(&summary), owned(&[("getpid_ns_p50", 130.0)]));
        let none = CellSummary::Noise(NoiseSummary {
            cpus: Vec::new(),
            source: None,
            culprits: Vec::new(),
        });
        assert_eq!(metrics(&none), []);
    }
}
