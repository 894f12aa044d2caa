//! The tables of `check` with a row for each CPU: timer interrupts while idle and busy, lost time, and
//! gaps.

use recording::{CheckSeries, CheckSpec};
use summary::{CheckSummary, CpuNoiseSummary, CpuTicksSummary};
use units::{Cpu, Nanos, Ppm};

use crate::document::table::Table;
use crate::document::text::{Text, text};
use crate::measurements::noise::{left_out, worst};
use crate::measurements::ticks::words::cpus;
use crate::number;

/// More CPUs than this are cut to [`WORST`].
const LISTED: usize = 16;
const WORST: usize = 8;

/// The CPUs that lost most, at most so many, without load while idle and CPUs that were not measured.
pub(crate) fn overview(summary: &CheckSummary, listed: usize) -> Table {
    let shown = worst(&summary.noise, listed, listed);
    let busy = ["busy ticks", "lost", "median gap", "longest gap", "1 ms job risk"];
    Table::of(&shown.listed)
        .number("CPU", |cpu| cpu.cpu.to_string())
        .numbers(["idle ticks"], |cpu| [ticks(idle(summary, cpu.cpu))])
        .numbers(busy, |cpu| while_busy(cpu))
        .table
        .rest(left_out(&shown))
}

/// All CPUs, or of many those that lost most.
pub(crate) fn measured(
    spec: &CheckSpec,
    series: &CheckSeries,
    summary: &CheckSummary,
) -> Table {
    let shown = worst(&summary.noise, LISTED, WORST);
    let legend = (!shown.listed.is_empty()).then(|| {
        text!(
            "\"ticks\": timer interrupts; \"gap\": the loop did not run for more than {}; \"lost\": \
             all gaps; \"risk\": that a job, started at a random moment, meets one.",
            series.noise.threshold_ns
        )
    });
    let table = rows(spec, summary, &shown.listed);
    table.legend(legend).rest(left_out(&shown))
}

/// How long it was measured, and where.
pub(crate) fn title(
    spec: &CheckSpec,
    series: &CheckSeries,
    summary: &CheckSummary,
) -> Text {
    let idle = series.rest.samples.last().map(|last| last.start_ns + last.span_ns);
    let idle = number::measured(idle, spec.idle_ns);
    let Some(busy) = summary.noise.cpus.iter().map(|cpu| cpu.elapsed_ns).max() else {
        return text!("Each CPU while idle ({}); the busy loop was not started.", idle);
    };
    let of: Text = match spec.cpus == spec.rest_cpus {
        true => "all of them".into(),
        false => cpus(&spec.cpus),
    };
    text!(
        "Each CPU while idle ({}), and while a busy loop ran on {} ({}).",
        idle,
        of,
        number::measured(Some(busy), spec.noise_ns)
    )
}

fn rows(spec: &CheckSpec, summary: &CheckSummary, shown: &[&CpuNoiseSummary]) -> Table {
    let is_measured =
        |cpu: &Cpu| summary.noise.cpus.iter().any(|noise| noise.cpu == *cpu);
    let others = spec.rest_cpus.iter().filter(|cpu| !is_measured(cpu)).take(LISTED);
    let shown = shown.iter().map(|cpu| (cpu.cpu, Some(*cpu)));
    let all: Vec<_> = shown.chain(others.map(|cpu| (cpu, None))).collect();
    let heads = ["ticks", "lost", "gap", "gap", "risk"];
    let mut table = Table::of(&all)
        .number("CPU", |(cpu, _)| cpu.to_string())
        .number("ticks", |(cpu, _)| ticks(idle(summary, *cpu)))
        .number("busy", |(cpu, _)| {
            number::known(idle(summary, *cpu).and_then(|idle| idle.busy_ppm))
        })
        .numbers(heads, |(_, busy)| {
            busy.map_or([number::NONE; 5].map(Text::from), while_busy)
        })
        .table;
    let above = ["", "idle", "", "busy loop", "", "median", "longest", "1 ms job"];
    for (column, above) in table.columns.iter_mut().zip(above) {
        column.above = above.to_owned();
    }
    table
}

/// What was measured on a CPU while noisefloor slept.
fn idle(summary: &CheckSummary, cpu: Cpu) -> Option<&CpuTicksSummary> {
    summary.rest.cpus.iter().find(|rest| rest.cpu == cpu)
}

fn ticks(idle: Option<&CpuTicksSummary>) -> Text {
    number::known(idle.and_then(|idle| idle.timer_hz).map(number::rate))
}

/// What a CPU lost in its busy loop: ticks, share, median and longest gap, risk.
fn while_busy(cpu: &CpuNoiseSummary) -> [Text; 5] {
    let length = number::any;
    [
        number::known(cpu.proc.timer_hz.map(number::rate)),
        number::known(cpu.noise_ppm),
        length(cpu.gap_ns.p50),
        length(cpu.gap_ns.max),
        number::known(job_risk(cpu)),
    ]
}

/// The probability that a job of 1 ms meets a gap.
fn job_risk(cpu: &CpuNoiseSummary) -> Option<Ppm> {
    let job = cpu.risk.iter().find(|risk| risk.job_ns == Nanos::from_millis(1));
    job.and_then(|risk| risk.hit_ppm)
}
