//! Tables of cells that ran spinning processes: how long at a time, and what was executed.

use stats::{CellSummary, SlicesCost, SlicesSummary, StepSlices, Summary};
use units::{Instructions, Nanos};

use crate::number;
use crate::text::cells::tables::{Count, Row, section, table};

/// Both tables, exact and timed, as far as there are rows for them.
pub(crate) fn slices_tables(rows: &[Row]) -> [Option<String>; 2] {
    [exact(rows), timed(rows)]
}

fn exact(rows: &[Row]) -> Option<String> {
    let head = ["procs", "mean slice", "±", "switches/s", "passes/s", "user", "kernel"];
    let table = table(head, rows, |summary, count| match summary {
        CellSummary::SlicesCost(cost) => vec![exact_line(cost, count)],
        _ => Vec::new(),
    })?;
    let words = "\"procs\": processes that spin, and that sleep again and again. A slice is \
                 what one of the former executes between two involuntary switches: 1 ms is a \
                 million instructions. \"±\": by how much the mean of a single phase of the \
                 measurement is off at most. \"passes/s\": of the spinners' loops, all together. \
                 \"user\", \"kernel\": what all CPUs executed meanwhile, by the lab's counter.";
    Some(section("How long processes run at a time, exactly", &table, words))
}

fn exact_line(cost: &SlicesCost, count: Count) -> [String; 7] {
    let [user, kernel] = cost.instructions().map(Instructions::get);
    let [processes, slice, switches] = line(&cost.found);
    let passes = number::known(cost.found.found.passes_hz, number::bare_rate);
    let off = cost.found.found.turns_off.and_then(|off| off.slice_ns);
    let off = number::any(off, number::duration);
    [processes, slice, off, switches, passes, count(user), count(kernel)]
}

fn timed(rows: &[Row]) -> Option<String> {
    let head = ["procs", "mean slice", "switches/s"];
    let table = table(head, rows, |summary, _| match summary {
        CellSummary::Measured(Summary::Slices(summary)) => vec![line(summary)],
        _ => Vec::new(),
    })?;
    let words = "\"procs\": processes that spin, and that sleep again and again. A slice is the \
                 CPU time of one of the former between two involuntary switches.";
    Some(section("How long processes run at a time", &table, words))
}

fn line(summary: &SlicesSummary) -> [String; 3] {
    let StepSlices { slice_ns, switches_hz, .. } = &summary.found;
    [
        format!("{}+{}", summary.spinners, summary.sleepers),
        number::any(slice_ns.mean, |mean: Nanos| number::duration(mean)),
        number::known(*switches_hz, number::bare_rate),
    ]
}
