//! The timers of the timer interrupts that remain on a CPU whose tick has stopped: how often they
//! expire, what they are, and how to avoid them.

use recording::{ExpiredTimer, TimerReason};
use summary::{RemainingCause, RemainingSummary};

use crate::document::Document;
use crate::document::list::List;
use crate::document::table::{Column, Table, cells};
use crate::document::text::{Text, text};
use crate::measurements::nohz::timer_functions::description;
use crate::number;

/// A title, a row for each cause, and an item for each timer.
pub(crate) fn remaining_timers(remaining: &RemainingSummary) -> Document {
    let title = text!(
        "Timers of the remaining interrupts, traced for another {} with {}",
        remaining.span_ns,
        number::counted(remaining.count, "timer interrupt")
    );
    Document::section(title, causes(remaining))
        .add(lost(remaining))
        .add(meaning(remaining))
}

/// Counts and rates; the counts add up to all timer interrupts.
fn causes(remaining: &RemainingSummary) -> Table {
    let mut table = Table::new([
        Column::name("timers that expired", 16..=56),
        Column::number("count"),
        Column::number("per second"),
    ]);
    for cause in &remaining.causes {
        table.row(cells![names(cause), cause.count, number::known(cause.rate_hz)]);
    }
    if remaining.unexplained > 0 {
        let rate = number::known(remaining.unexplained_hz);
        table.row(cells!["unexplained: none", remaining.unexplained, rate]);
    }
    table
}

fn lost(remaining: &RemainingSummary) -> Option<Text> {
    let lost = number::counted(remaining.lost, "event");
    (remaining.lost > 0).then(|| text!("{} of the trace were lost.", lost))
}

/// What each timer is, once.
fn meaning(remaining: &RemainingSummary) -> List {
    let mut known: Vec<(String, &ExpiredTimer)> = Vec::new();
    for timer in remaining.causes.iter().flat_map(|cause| &cause.timers) {
        let text = description(timer);
        if known.iter().all(|(other, _)| *other != text) {
            known.push((text, timer));
        }
    }
    let item = |(text, timer): (String, &ExpiredTimer)| {
        let name = match &timer.reason {
            Some(TimerReason::Thread { .. }) => timer.function.clone(),
            Some(_) | None => name(timer),
        };
        text!("{}: {}", Text::name(name), text)
    };
    List::bullets(known.into_iter().map(item))
}

/// The timers of a cause.
pub(crate) fn names(cause: &RemainingCause) -> Text {
    if cause.timers.is_empty() {
        return "none: early, its timer expired in the next one".into();
    }
    let names: Vec<String> = cause.timers.iter().map(name).collect();
    Text::name(names.join(", "))
}

/// The most frequent cause in a table's cell: without a tick that only serves another timer.
pub(crate) fn first(remaining: &RemainingSummary) -> Option<Text> {
    let mut causes = remaining.causes.iter().map(|cause| &cause.timers);
    let timers = causes.find(|timers| !timers.is_empty())?;
    let timer = timers
        .iter()
        .find(|timer| !timer.is_tick() || timer.reason.is_some())
        .or(timers.first())?;
    Some(Text::name(name(timer)))
}

/// The function, and what the timer is for.
fn name(timer: &ExpiredTimer) -> String {
    let function = &timer.function;
    match &timer.reason {
        None => function.clone(),
        Some(TimerReason::Work(work)) => format!("{function} ({work})"),
        Some(TimerReason::Thread { tid, name }) => format!("{function} ({name}, {tid})"),
        Some(TimerReason::FairServer) => format!("{function} (fair server)"),
        Some(TimerReason::Dependency(dependency)) => format!("{function} ({dependency})"),
    }
}
