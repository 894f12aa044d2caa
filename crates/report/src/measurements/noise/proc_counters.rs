//! `/proc` counters during a measurement: a table with a row for each counter and a column for
//! each of a few CPUs; and the interrupts of one CPU.

use std::collections::BTreeMap;

use summary::{LineSummary, ProcSummary};
use units::{Cpu, PerSecond};

use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::number;

/// Rows of each kind; less frequent ones are in the JSON object only.
const ROWS: usize = 8;
const FEWER: &str = "less frequent ones";

/// Rates of one CPU by name; `None` if they could not be read.
type Rates = Option<Vec<(Text, Option<PerSecond>)>>;

/// A CPU and its counters.
type Counters<'a> = (Cpu, &'a ProcSummary);

/// Counts and rates of interrupts, the most frequent first.
pub(crate) fn interrupt_table(lines: &[LineSummary]) -> Table {
    Table::of(&lines[..lines.len().min(ROWS)])
        .column(Column::name("", 12..=44), label)
        .number("count", |line| line.count)
        .number("per second", |line| number::known(line.rate_hz))
        .table
        .rest(number::more(lines.len().saturating_sub(ROWS), FEWER))
}

fn label(line: &LineSummary) -> Text {
    Text::name(format!("{} {}", line.line, line.name))
}

/// The counters of a few CPUs, with a title that ends with `which`, and with their
/// steal time if requested.
pub(crate) fn counters(shown: &[Counters<'_>], which: &str, has_steal: bool) -> Document {
    let cpus = shown.iter().map(|(cpu, _)| Column::number(text!("CPU {}", *cpu)));
    let mut table = Table::new(std::iter::once(Column::name("", 12..=32)).chain(cpus));
    let more = add_rates(&mut table, shown, "interrupts", interrupts)
        + add_rates(&mut table, shown, "softirqs", softirqs);
    add_totals(&mut table, shown, has_steal);
    let title = text!("/proc counters during the measurement{}", which);
    Document::section(title, table.rest(number::more(more, FEWER)))
}

/// Adds the rows of one kind, the most frequent first; returns how many were omitted.
fn add_rates(
    table: &mut Table,
    shown: &[Counters<'_>],
    kind: &str,
    rates: impl Fn(&ProcSummary) -> Rates,
) -> usize {
    let read: Vec<_> = shown.iter().map(|(_, counters)| rates(counters)).collect();
    if read.iter().all(Option::is_none) {
        let unread = shown.iter().map(|_| number::UNKNOWN);
        table.row(std::iter::once(kind).chain(unread));
        return 0;
    }
    let rows = by_rate(&read);
    for (name, rates) in rows.iter().take(ROWS) {
        let cells = rates.iter().zip(&read).map(|(rate, read)| match read {
            None => number::UNKNOWN.into(),
            Some(_) => number::any(rate.map(number::rate)),
        });
        table.row(std::iter::once(name.clone()).chain(cells));
    }
    rows.len().saturating_sub(ROWS)
}

/// The rows of all CPUs by name, the most frequent first.
fn by_rate(read: &[Rates]) -> Vec<(Text, Vec<Option<PerSecond>>)> {
    let mut rates: BTreeMap<String, (Text, Vec<Option<PerSecond>>)> = BTreeMap::new();
    for (at, column) in read.iter().enumerate() {
        for (name, rate) in column.iter().flatten() {
            let (_, cells) = rates
                .entry(name.to_string())
                .or_insert_with(|| (name.clone(), vec![None; read.len()]));
            if let Some(cell) = cells.get_mut(at) {
                *cell = *rate;
            }
        }
    }
    let highest = |rates: &[Option<PerSecond>]| {
        rates.iter().flatten().map(|rate| rate.get()).fold(0.0, f64::max)
    };
    let mut rows: Vec<_> = rates.into_values().collect();
    rows.sort_by(|a, b| highest(&b.1).total_cmp(&highest(&a.1)));
    rows
}

fn interrupts(counters: &ProcSummary) -> Rates {
    let lines = counters.interrupts.as_ref()?.iter();
    Some(lines.map(|line| (label(line), line.rate_hz)).collect())
}

fn softirqs(counters: &ProcSummary) -> Rates {
    let softirqs = counters.softirqs.as_ref()?.iter();
    let name = |name: &str| text!("softirq {}", Text::name(name));
    Some(softirqs.map(|one| (name(&one.name), one.rate_hz)).collect())
}

fn add_totals(table: &mut Table, shown: &[Counters<'_>], has_steal: bool) {
    let mut add = |name: &str, print: &dyn Fn(&ProcSummary) -> Text| {
        let cells = shown.iter().map(|(_, counters)| print(counters));
        table.row(std::iter::once(Text::from(name)).chain(cells));
    };
    add("involuntary context switches", &|counters| counters.preempted.into());
    add("run queue wait time", &|counters| number::known(counters.waited_ns));
    if has_steal {
        add("steal time", &|counters| number::known(counters.steal_ns));
    }
}
