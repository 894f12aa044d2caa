//! The lines of other measurements: noise, ticks of idle CPUs, calls, latency, time slices.

use std::ops::RangeInclusive;

use summary::{
    CallCost, CallSummary, CellSummary, CpuLatencySummary, CpuNoiseSummary,
    CpuTicksSummary, SlicesSummary, StepSlices, Summary, WakeCulprit, answer,
};
use units::Ppm;

use crate::cells::table::{Line, Row, call_column, count, cut, value, words};
use crate::document::table::{Cell, Column};
use crate::measurements::latency::causes as late;
use crate::measurements::scheduler;
use crate::number;

/// The maximum number of causes for each cell.
const CAUSES: usize = 6;
/// The least and the most columns for the name of a scheduler.
const SCHEDULER: RangeInclusive<usize> = 9..=30;

/// The summary of a cell whose instructions are not counted.
pub(crate) fn measured<'a>(row: &'a Row<'_>) -> Option<&'a Summary> {
    let CellSummary::Measured(summary) = &row.summary else { return None };
    Some(summary)
}

pub(crate) fn call_costs(row: &Row<'_>) -> Vec<Line> {
    let cost = |call: &CallCost| {
        let cost = number::any(call.instructions.p50.map(|p50| p50.get()));
        let mark = if call.instructions.agreed.is_none() { "*" } else { "" };
        (call_column(&call.name), Cell::from(cost).tail(mark))
    };
    let CellSummary::CallCosts(costs) = &row.summary else { return Vec::new() };
    vec![costs.calls.iter().map(cost).collect()]
}

pub(crate) fn call_times(row: &Row<'_>) -> Vec<Line> {
    let time = |call: &CallSummary| {
        let median = number::any(call.step_ns.p50);
        (call_column(&call.name), median.into())
    };
    let Some(Summary::Calls(calls)) = measured(row) else { return Vec::new() };
    vec![calls.calls.iter().map(time).collect()]
}

pub(crate) fn noise(row: &Row<'_>) -> Vec<Line> {
    let noise = match measured(row) {
        Some(Summary::Noise(noise)) => noise,
        Some(Summary::Check(check)) => &check.noise,
        _ => return Vec::new(),
    };
    let line = |cpu: &CpuNoiseSummary| {
        vec![
            value("CPU", cpu.cpu),
            value("noise", number::known(cpu.noise_ppm)),
            value("gaps/s", number::known(cpu.gaps_hz)),
            value("median", number::any(cpu.gap_ns.p50)),
            value("longest", number::any(cpu.gap_ns.max)),
        ]
    };
    noise.cpus.iter().map(line).collect()
}

pub(crate) fn idle_ticks(row: &Row<'_>) -> Vec<Line> {
    let ticks = match measured(row) {
        Some(Summary::Ticks(ticks)) => ticks,
        Some(Summary::Check(check)) => &check.rest,
        _ => return Vec::new(),
    };
    let host = answer(row.named.cell).and_then(|answer| answer.host);
    let host = host.and_then(|host| Ppm::of(host.cpu_ns, host.wall_ns));
    let line = |cpu: &CpuTicksSummary| {
        vec![
            value("CPU", cpu.cpu),
            value("ticks/s", number::known(cpu.timer_hz)),
            value("busy", number::known(cpu.busy_ppm)),
            value("host", number::any(host)),
        ]
    };
    ticks.cpus.iter().map(line).collect()
}

pub(crate) fn latency(row: &Row<'_>) -> Vec<Line> {
    let line = |cpu: &CpuLatencySummary| {
        let late = cpu.late_ns;
        let time = |head, late| value(head, number::any(late));
        vec![
            value("CPU", cpu.cpu),
            value("samples", count(cpu.samples)),
            time("median", late.p50),
            time("mean", late.mean),
            time("p99", late.p99),
            time("max", late.max),
        ]
    };
    let Some(Summary::Latency(latency)) = measured(row) else { return Vec::new() };
    latency.cpus.iter().map(line).collect()
}

/// What delays the wake-ups; none of cells that are not traced.
pub(crate) fn late_causes(row: &Row<'_>) -> Vec<Line> {
    let Some(Summary::Latency(latency)) = measured(row) else { return Vec::new() };
    let mut lines = latency.culprits.iter().map(late_cause).collect();
    cut(&mut lines, CAUSES, 0);
    lines
}

fn late_cause(culprit: &WakeCulprit) -> Line {
    vec![
        words("part", late::part_word(Some(culprit.part))),
        words("source", late::kind(&culprit.cause)),
        (Column::name("", 12..=24), late::cell(&culprit.cause)),
        value("wake-ups", culprit.wakeups),
        value("time", culprit.ns),
        value("share", number::known(culprit.late_ppm)),
    ]
}

pub(crate) fn slices_costs(row: &Row<'_>) -> Vec<Line> {
    let CellSummary::SlicesCost(cost) = &row.summary else { return Vec::new() };
    let results = &cost.summary.results;
    let off = results.turns_deviation.and_then(|off| off.slice_ns);
    let [user, kernel] = cost.instructions();
    let [processes, slice, switches] = slice(&cost.summary);
    let passes = number::known(results.passes_hz);
    let line = vec![
        processes,
        slice,
        value("±", number::any(off)),
        switches,
        value("passes/s", passes),
        value("user", count(user.get())),
        value("kernel", count(kernel.get())),
    ];
    vec![with_scheduler(row, line)]
}

pub(crate) fn slices(row: &Row<'_>) -> Vec<Line> {
    let Some(Summary::Slices(summary)) = measured(row) else { return Vec::new() };
    vec![with_scheduler(row, slice(summary).into())]
}

/// The line with the name of the scheduler, if it is one of sched_ext. Tables have the column if a line has
/// it.
fn with_scheduler(row: &Row<'_>, mut line: Line) -> Line {
    let answer = answer(row.named.cell);
    let name = answer.and_then(|answer| scheduler::name(&answer.recording.facts));
    line.extend(name.map(|name| (Column::name("scheduler", SCHEDULER), name.into())));
    line
}

fn slice(summary: &SlicesSummary) -> [(Column, Cell); 3] {
    let StepSlices { slice_ns, switches_hz, .. } = &summary.results;
    let processes = format!("{}+{}", summary.spinners, summary.sleepers);
    [
        value("procs", processes),
        value("mean slice", number::any(slice_ns.mean)),
        value("switches/s", number::known(*switches_hz)),
    ]
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Mode, Recording};

    use crate::cells::cells_document;
    use crate::example::cell::{OLD, cell, done};
    use crate::example::cells::page;
    use crate::example::latency::latency;
    use crate::example::{GUEST, slices, with_scheduler};
    use crate::terminal::full_text;

    /// Check that the table of time slices has the scheduler of each cell, if one has a scheduler of sched_ext.
    #[test]
    fn schedulers_of_cells() {
        let timed = |name: &str, recording: Recording| recording::Cell {
            mode: Mode::Timed,
            ..cell(name, OLD, done(recording, None))
        };
        let own = timed("alone", slices(GUEST, true));
        let other = with_scheduler(slices(GUEST, true), "simple", true);
        let cells = [own.clone(), timed("simple alone", other)];
        let table = |cells: &[recording::Cell]| {
            let text = full_text(&cells_document(&page("mine", cells)));
            let lines = text.lines().filter(|line| !line.contains(" on "));
            lines.filter(|line| line.contains("16+2")).map(str::to_owned).collect()
        };
        let lines: Vec<String> = table(&cells);
        let [plain, simple] = lines.as_slice() else { panic!("{lines:?}") };
        assert!(plain.trim_end().ends_with('-'), "{plain}");
        assert!(simple.ends_with("simple (sched_ext)"), "{simple}");
        let lines: Vec<String> = table(&[own]);
        assert!(!lines[0].contains('-') && !lines[0].contains("sched"), "{lines:?}");
    }

    /// Check the tables of latency and of time slices.
    #[test]
    fn other_measurements() {
        let timed = |name: &str, recording: Recording| recording::Cell {
            mode: Mode::Timed,
            ..cell(name, OLD, done(recording, None))
        };
        let cells =
            [timed("fifo", latency(GUEST, 2)), timed("spin", slices(GUEST, true))];
        let text = full_text(&cells_document(&page("mine", &cells)));
        let tables = text.split_once("Wake-up latency").unwrap().1;
        assert_snapshot!(tables);
    }
}
