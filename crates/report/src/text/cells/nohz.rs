//! Tables of cells that were to stop a tick: whether it did, after how much work, and what
//! then came nevertheless.

use stats::{CpuWork, MeanwhileSummary, NohzCost, NohzTestSummary};
use units::Nanos;

use crate::number;
use crate::text::cells::lines::{Count, Lines};
use crate::text::nohz::tick_back::short;

pub(crate) fn costs(lines: &Lines<'_, 7>) -> Option<String> {
    let head =
        ["CPU", "stops after", "±", "in kernel", "ticks/s", "counted/s", "kept by"];
    let words = "\"stops after\": instructions of all CPUs until the kernel said that the \
                 tick had stopped, the median of all tries; \"±\": by how much a single try \
                 is off at most; \"in kernel\": those of the kernel on that CPU. Then the \
                 timer interrupts that came while the thread went on: \"ticks/s\" by \
                 /proc/interrupts, \"counted/s\" by the lab's counter. \"kept by\": why it \
                 did not stop, in the kernel's words. \"back\": it stopped and came back, \
                 with more than ten timer interrupts a second; \"kept by\" is then what \
                 brought it back once more while that was watched.";
    lines.section("Whether the tick stops under a running thread, exactly", head, words)
}

pub(crate) fn cost_line(cost: &NohzCost, count: Count) -> [String; 7] {
    let NohzCost { test, entering, staying } = cost;
    let of = |work: &[CpuWork]| work.iter().find(|work| work.cpu == test.cpu).copied();
    let counted = of(staying).and_then(|work| work.timer_entries_hz);
    [
        test.cpu.to_string(),
        stops(test, |wait| count(wait.get())),
        number::any(test.wait_off_ns, |off| count(off.get())),
        number::known(of(entering), |work| count(work.kernel_instructions.get())),
        number::any(test.observed.as_ref(), ticks),
        number::any(counted, number::bare_rate),
        kept_by(test),
    ]
}

pub(crate) fn tests(lines: &Lines<'_, 4>) -> Option<String> {
    let head = ["CPU", "stops after", "ticks/s", "kept by"];
    let words = "\"ticks/s\": the timer interrupts that came while the thread went on. \
                 \"kept by\": why the tick did not stop, in the kernel's words. \"back\": it \
                 stopped and came back, with more than ten timer interrupts a second; \"kept \
                 by\" is then what brought it back once more while that was watched.";
    lines.section("Whether the tick stops under a running thread, in time", head, words)
}

pub(crate) fn test_line(test: &NohzTestSummary) -> [String; 4] {
    [
        test.cpu.to_string(),
        stops(test, number::duration),
        number::any(test.observed.as_ref(), ticks),
        kept_by(test),
    ]
}

fn stops(test: &NohzTestSummary, print: impl Fn(Nanos) -> String) -> String {
    match test.entered {
        Some(true) if test.came_back == Some(true) => {
            format!("{}, back", number::known(test.wait_ns, print))
        }
        Some(true) => number::known(test.wait_ns, print),
        Some(false) => "it does not".to_owned(),
        None => number::UNKNOWN.to_owned(),
    }
}

/// The timer interrupts during the observed time, a second.
fn ticks(observed: &MeanwhileSummary) -> String {
    number::known(observed.timer_hz, number::bare_rate)
}

fn kept_by(test: &NohzTestSummary) -> String {
    if let Some(back) = &test.brought_back {
        return back.causes.first().map_or_else(|| number::NONE.to_owned(), short);
    }
    let first = |kept: &Vec<recording::KeptBy>| {
        kept.first()
            .map_or_else(|| number::NONE.to_owned(), |kept| kept.dependency.clone())
    };
    number::known(test.kept_by.as_ref(), first)
}
