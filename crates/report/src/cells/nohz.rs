//! The lines of `nohz` cells: whether the tick stopped, the work until then, the timer interrupts
//! that remained, and their timers.

use recording::KeptBy;
use summary::{CellSummary, CpuWork, NohzCost, NohzTestSummary, ProcSummary, Summary};
use units::{Nanos, PerSecond};

use crate::cells::measured::measured;
use crate::cells::table::{Line, Row, any, count, known, value, words};
use crate::document::table::{Cell, Column};
use crate::document::text::Text;
use crate::measurements::nohz::remaining::{first, names};
use crate::measurements::nohz::tick_back::short;
use crate::number;

pub(crate) fn costs(row: &Row<'_>) -> Vec<Line> {
    let CellSummary::NohzCost(cost) = &row.summary else { return Vec::new() };
    let NohzCost { test, entering, observing } = cost;
    let of = |work: &[CpuWork]| work.iter().find(|work| work.cpu == test.cpu).copied();
    let counted = of(observing).and_then(|work| work.timer_entries_hz);
    let kernel = known(of(entering), |work| count(work.kernel_instructions.get()));
    vec![vec![
        value("CPU", test.cpu),
        value("stops after", stop_time(test, |wait| count(wait.get()))),
        value("±", any(test.wait_deviation_ns, |off| count(off.get()))),
        value("in kernel", kernel),
        value("ticks/s", number::any(test.observed.as_ref().map(ticks))),
        value("counted/s", number::any(counted)),
        words("reason", reason(test)),
    ]]
}

pub(crate) fn tests(row: &Row<'_>) -> Vec<Line> {
    let Some(Summary::NohzTest(test)) = measured(row) else { return Vec::new() };
    vec![vec![
        value("CPU", test.cpu),
        value("stops after", stop_time(test, |wait| number::duration(wait).into())),
        value("ticks/s", number::any(test.observed.as_ref().map(ticks))),
        words("reason", reason(test)),
    ]]
}

/// The timers of the interrupts that remained.
pub(crate) fn timers(row: &Row<'_>) -> Vec<Line> {
    let test = match (&row.summary, measured(row)) {
        (CellSummary::NohzCost(cost), _) => &cost.test,
        (_, Some(Summary::NohzTest(test))) => test,
        _ => return Vec::new(),
    };
    let Some(remaining) = &test.remaining else { return Vec::new() };
    let line = |timers: Text, count: u64, rate: Option<PerSecond>| {
        vec![
            (Column::name("timers that expired", 16..=48), timers.into()),
            value("count", count),
            value("per second", number::known(rate)),
        ]
    };
    let causes = remaining.causes.iter();
    let causes = causes.map(|cause| line(names(cause), cause.count, cause.rate_hz));
    let (unexplained, hz) = (remaining.unexplained, remaining.unexplained_hz);
    let rest =
        (unexplained > 0).then(|| line("unexplained: none".into(), unexplained, hz));
    causes.chain(rest).collect()
}

fn stop_time(test: &NohzTestSummary, print: impl Fn(Nanos) -> Cell) -> Cell {
    match test.entered {
        Some(true) => {
            let back = if test.came_back == Some(true) { ", back" } else { "" };
            known(test.wait_ns, print).tail(back)
        }
        Some(false) => "not stopped".into(),
        None => number::UNKNOWN.into(),
    }
}

/// Timer interrupts per second after the tick had stopped.
fn ticks(observed: &ProcSummary) -> Text {
    number::known(observed.timer_hz)
}

fn reason(test: &NohzTestSummary) -> Text {
    if let Some(back) = &test.brought_back {
        return number::any(back.causes.first().map(|cause| Text::from(short(cause))));
    }
    if let (Some(true), Some(remaining)) = (test.entered, &test.remaining) {
        return number::any(first(remaining));
    }
    let first = |reasons: &Vec<KeptBy>| {
        number::any(reasons.first().map(|reason| Text::name(&reason.dependency)))
    };
    number::known(test.kept_by.as_ref().map(first))
}
