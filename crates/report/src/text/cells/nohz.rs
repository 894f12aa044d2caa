//! Tables of `nohz` cells: whether the tick stopped, the work until then, and the timer
//! interrupts that remained.

use summary::{CpuWork, NohzCost, NohzTestSummary, ProcSummary};
use units::Nanos;

use crate::number;
use crate::text::cells::lines::{Count, Lines};
use crate::text::nohz::tick_back::short;

pub(crate) fn costs(lines: &Lines<'_, 7>) -> Option<String> {
    let head = ["CPU", "stops after", "±", "in kernel", "ticks/s", "counted/s", "reason"];
    let words = "\"stops after\": instructions of all CPUs until the kernel reported the tick as \
                 stopped, median of all tries; \"±\": largest difference of a single try from \
                 it; \"in kernel\": kernel instructions of that CPU. Timer interrupts while the \
                 thread continued: \"ticks/s\" in /proc/interrupts, \"counted/s\" counted by \
                 the lab. \"reason\": the tick dependency that prevented the stop. \
                 \"back\": the tick stopped and came back, with more than ten timer interrupts \
                 per second; \"reason\" is then the cause in a second, traced observation.";
    lines.section("Tick of a CPU with one running thread, in instructions", head, words)
}

pub(crate) fn cost_line(cost: &NohzCost, count: Count) -> [String; 7] {
    let NohzCost { test, entering, observing } = cost;
    let of = |work: &[CpuWork]| work.iter().find(|work| work.cpu == test.cpu).copied();
    let counted = of(observing).and_then(|work| work.timer_entries_hz);
    [
        test.cpu.to_string(),
        stop_time(test, |wait| count(wait.get())),
        number::any(test.wait_deviation_ns, |off| count(off.get())),
        number::known(of(entering), |work| count(work.kernel_instructions.get())),
        number::any(test.observed.as_ref(), ticks),
        number::any(counted, number::bare_rate),
        reason(test),
    ]
}

pub(crate) fn tests(lines: &Lines<'_, 4>) -> Option<String> {
    let head = ["CPU", "stops after", "ticks/s", "reason"];
    let words = "\"ticks/s\": timer interrupts while the thread continued. \"reason\": the tick \
                 dependency that prevented the stop. \"back\": the tick stopped and came back, \
                 with more than ten timer interrupts per second; \"reason\" is then the cause in \
                 a second, traced observation.";
    lines.section("Tick of a CPU with one running thread, in time", head, words)
}

pub(crate) fn test_line(test: &NohzTestSummary) -> [String; 4] {
    [
        test.cpu.to_string(),
        stop_time(test, number::duration),
        number::any(test.observed.as_ref(), ticks),
        reason(test),
    ]
}

fn stop_time(test: &NohzTestSummary, print: impl Fn(Nanos) -> String) -> String {
    match test.entered {
        Some(true) if test.came_back == Some(true) => {
            format!("{}, back", number::known(test.wait_ns, print))
        }
        Some(true) => number::known(test.wait_ns, print),
        Some(false) => "not stopped".to_owned(),
        None => number::UNKNOWN.to_owned(),
    }
}

/// Timer interrupts per second after the tick had stopped.
fn ticks(observed: &ProcSummary) -> String {
    number::known(observed.timer_hz, number::bare_rate)
}

fn reason(test: &NohzTestSummary) -> String {
    if let Some(back) = &test.brought_back {
        return number::any(back.causes.first(), short);
    }
    let first = |reasons: &Vec<recording::KeptBy>| {
        let first = reasons.first().map(|reason| reason.dependency.clone());
        number::any(first, |dependency| dependency)
    };
    number::known(test.kept_by.as_ref(), first)
}
