//! The metrics of summaries: which rows of the table each has.

use recording::LengthKind;
use stats::Unit;
use units::Cpu;

use crate::cell::CellSummary;
use crate::cell::call_costs::CallCost;
use crate::imported::{ImportedSummary, LengthsSummary};
use crate::metrics::benchmark_key;
use crate::metrics::definition::Metric;
use crate::metrics::idle::{rates, sum};
use crate::metrics::row::{each, of_call, parts, whole};
use crate::metrics::table::{
    CALL_COST, CALL_TIME, GAPS, GUESTS, GapNumbers, IDLE, INTERRUPT_LATENCY, JITTER,
    KINDS, LATENCY, NOHZ_COST, NOHZ_ENTRY, NOHZ_OBSERVED, NOISE, PROGRAM, PROGRAM_COST,
    RUN, SCALE, SLICES, STRESS, STRETCHES, TICK, TICKS, TOP, USER_LATENCY, VALUE, WAKERS,
    WATCH,
};
use crate::noise::CpuNoiseSummary;
use crate::summary::Summary;

/// The metrics of the gaps of CPUs.
pub(crate) fn gaps(cpus: impl Iterator<Item = (Cpu, GapNumbers)>) -> Vec<Metric> {
    parts(NOISE, cpus.map(|(cpu, numbers)| (Some(cpu), numbers)))
}

fn noise(cpus: &[CpuNoiseSummary]) -> Vec<Metric> {
    gaps(
        cpus.iter().map(|one| {
            (one.cpu, GapNumbers::new(one.noise_ppm, one.gaps_hz, &one.gap_ns))
        }),
    )
}

/// Lengths with a tag have no metrics: other logs may not have it.
fn imported(summary: &ImportedSummary) -> Vec<Metric> {
    let of = |lengths: &LengthsSummary| {
        let latency = |rows| parts(rows, [(lengths.cpu, lengths.ns)]);
        match lengths.kind {
            LengthKind::TimerInterruptLatency => latency(INTERRUPT_LATENCY),
            LengthKind::WakeupLatency => latency(LATENCY),
            LengthKind::UserLatency => latency(USER_LATENCY),
            LengthKind::Gap => {
                let LengthsSummary { noise_ppm, gaps_hz, ns, .. } = lengths;
                parts(NOISE, [(lengths.cpu, GapNumbers::new(*noise_ppm, *gaps_hz, ns))])
            }
            LengthKind::Value => latency(VALUE),
        }
    };
    let untagged = summary.lengths.iter().filter(|lengths| lengths.tag.is_none());
    untagged.flat_map(of).collect()
}

/// The metrics of a recording, CPU by CPU.
pub fn metrics(summary: &Summary) -> Vec<Metric> {
    match summary {
        Summary::Noise(of) => noise(&of.cpus),
        Summary::Ticks(ticks) => each(TICKS, &ticks.cpus, |cpu| cpu.cpu),
        Summary::Check(check) => {
            let ticks = each(TICKS, &check.rest.cpus, |cpu| cpu.cpu);
            [ticks, noise(&check.noise.cpus)].concat()
        }
        Summary::Calls(calls) => {
            let calls = calls.calls.iter();
            calls.flat_map(|call| of_call(CALL_TIME, &call.name, call)).collect()
        }
        Summary::Latency(latency) => {
            parts(LATENCY, latency.cpus.iter().map(|cpu| (Some(cpu.cpu), cpu.late_ns)))
        }
        Summary::Run(run) => whole(RUN, run),
        Summary::Program(run) => whole(PROGRAM, run),
        Summary::Wakers(wakers) => whole(WAKERS, wakers),
        Summary::Watch(watch) => whole(WATCH, watch),
        Summary::Top(top) => each(TOP, &top.cpus, |cpu| cpu.cpu),
        Summary::NohzTest(test) => {
            [whole(NOHZ_ENTRY, test), whole(NOHZ_OBSERVED, test)].concat()
        }
        Summary::NohzStress(stress) => whole(STRESS, stress),
        Summary::Jitter(jitter) => whole(JITTER, jitter),
        Summary::Slices(slices) => whole(SLICES, &slices.results),
        Summary::Guests(guests) => whole(GUESTS, guests),
        Summary::Scale(scale) => whole(SCALE, scale),
        Summary::Imported(summary) => imported(summary),
        Summary::Benchmarks(summary) => benchmark_key::metrics(summary),
    }
}

/// The metrics of a cell, all CPUs together.
pub fn cell_metrics(summary: &CellSummary) -> Vec<Metric> {
    match summary {
        CellSummary::TickCost(cost) => [
            whole(GAPS, cost.gap_instructions.as_ref()),
            whole(TICK, cost.kernel_instructions.as_ref()),
            whole(KINDS, cost.kinds.as_ref()),
        ]
        .concat(),
        CellSummary::IdleCost(cost) => [
            whole(IDLE, &rates(cost)),
            whole(STRETCHES, cost.idle().as_ref()),
            whole(TICK, &cost.tick_kernel_instructions),
            whole(KINDS, &cost.kinds),
        ]
        .concat(),
        CellSummary::CallCosts(costs) => {
            let of = |call: &CallCost| of_call(CALL_COST, &call.name, &call.instructions);
            costs.calls.iter().flat_map(of).collect()
        }
        CellSummary::NohzCost(cost) => {
            let entry = whole(NOHZ_COST, &cost.test);
            [entry, whole(NOHZ_OBSERVED, &cost.test)].concat()
        }
        CellSummary::SlicesCost(cost) => whole(SLICES, &cost.summary.results),
        CellSummary::ProgramCost(cost) => {
            [whole(PROGRAM, &cost.run), whole(PROGRAM_COST, cost)].concat()
        }
        CellSummary::Measured(Summary::Ticks(ticks)) => {
            let timer = sum(&ticks.cpus, |cpu| cpu.timer_hz);
            whole(IDLE, &[None, timer])
        }
        CellSummary::Measured(summary) => together(metrics(summary)),
    }
}

/// Metrics of all CPUs together: the sum of rates, the largest of other values.
fn together(metrics: Vec<Metric>) -> Vec<Metric> {
    let mut all: Vec<Metric> = Vec::new();
    for metric in metrics {
        match all.iter_mut().find(|other| other.key == metric.key) {
            None => all.push(Metric { cpu: None, ..metric }),
            Some(other) if metric.about.unit == Unit::Hz => other.value += metric.value,
            Some(other) => other.value = other.value.max(metric.value),
        }
    }
    all
}
