//! Tables of `slices` cells: time slices of spinners, and what the CPUs executed.

use summary::{SlicesCost, SlicesSummary, StepSlices};
use units::{Instructions, Nanos};

use crate::number;
use crate::text::cells::lines::{Count, Lines};

pub(crate) fn costs(lines: &Lines<'_, 7>) -> Option<String> {
    let head = ["procs", "mean slice", "±", "switches/s", "passes/s", "user", "kernel"];
    let words = "\"procs\": number of spinners and sleepers. A slice is what a spinner executes \
                 between two involuntary switches: 1 ms is a million instructions. \"±\": largest \
                 difference of the mean of a single phase of the measurement. \"passes/s\": of all \
                 spinners' loops. \"user\", \"kernel\": instructions of all CPUs, counted by the \
                 lab.";
    lines.section("Time slices, in guest time", head, words)
}

pub(crate) fn cost_line(cost: &SlicesCost, count: Count) -> [String; 7] {
    let [user, kernel] = cost.instructions().map(Instructions::get);
    let [processes, slice, switches] = line(&cost.summary);
    let passes = number::known(cost.summary.results.passes_hz, number::bare_rate);
    let off = cost.summary.results.turns_deviation.and_then(|off| off.slice_ns);
    let off = number::any(off, number::duration);
    [processes, slice, off, switches, passes, count(user), count(kernel)]
}

pub(crate) fn means(lines: &Lines<'_, 3>) -> Option<String> {
    let head = ["procs", "mean slice", "switches/s"];
    let words = "\"procs\": number of spinners and sleepers. A slice is the CPU time of a spinner \
                 between two involuntary switches.";
    lines.section("Time slices", head, words)
}

pub(crate) fn line(summary: &SlicesSummary) -> [String; 3] {
    let StepSlices { slice_ns, switches_hz, .. } = &summary.results;
    [
        format!("{}+{}", summary.spinners, summary.sleepers),
        number::any(slice_ns.mean, |mean: Nanos| number::duration(mean)),
        number::known(*switches_hz, number::bare_rate),
    ]
}
