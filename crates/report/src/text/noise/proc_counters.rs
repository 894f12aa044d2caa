//! `/proc` counters during a measurement: a table with a row for each counter and a column for
//! each CPU, of the CPUs with the most noise; and the interrupts of one CPU.

use std::collections::BTreeMap;

use summary::{LineSummary, NoiseSummary, ProcSummary};
use units::{Cpu, PerSecond};

use crate::number;
use crate::text::layout::labels::cut_labels;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::noise::worst::worst;

/// CPUs that fit side by side.
const COLUMNS: usize = 4;
/// Rows of each kind; less frequent ones are in the JSON object only.
const ROWS: usize = 8;
/// The widest name of a row.
const NAME: usize = 32;
/// The widest name of a row of [`interrupt_table`].
const INTERRUPT: usize = 44;

/// Rates of one CPU by name; `None` if they could not be read.
type Rates = Option<Vec<(String, Option<PerSecond>)>>;

/// A CPU and its counters.
type Column<'a> = (Cpu, &'a ProcSummary);

/// Counts and rates of interrupts, the most frequent first.
pub(crate) fn interrupt_table(lines: &[LineSummary]) -> String {
    let columns = [("", Side::Left), ("count", Side::Right), ("per second", Side::Right)];
    let mut table = Table::new(1, &columns);
    let names = cut_labels(lines.iter().take(ROWS).map(label), INTERRUPT);
    for (line, name) in lines.iter().zip(names) {
        table.row([
            name,
            number::count(line.count),
            number::known(line.rate_hz, number::bare_rate),
        ]);
    }
    table.text() + &omitted(lines.len().saturating_sub(ROWS))
}

fn label(line: &LineSummary) -> String {
    format!("{:>4} {}", line.line, line.name)
}

fn omitted(rows: usize) -> String {
    match rows {
        0 => String::new(),
        more => paragraph("  ", &format!("{more} less frequent ones: see --json.")),
    }
}

/// The counters of the CPUs with the most noise, with a title.
pub(crate) fn worst_counters(summary: &NoiseSummary) -> String {
    let shown = worst(summary, COLUMNS, COLUMNS);
    let is_cut = shown.len() < summary.cpus.len();
    let which = if is_cut { ", on the CPUs that lost most" } else { "" };
    let shown: Vec<Column<'_>> = shown.iter().map(|cpu| (cpu.cpu, &cpu.proc)).collect();
    // The steal clock is more precise, and reported above.
    counters(&shown, which, summary.steal.is_none())
}

/// The counters of a few CPUs, with a title that ends with `which`, and with their
/// steal time if requested.
pub(crate) fn counters(shown: &[Column<'_>], which: &str, has_steal: bool) -> String {
    let title = format!("/proc counters during the measurement{which}");
    let names: Vec<String> = shown.iter().map(|(cpu, _)| format!("CPU {cpu}")).collect();
    let mut columns = vec![("", Side::Left)];
    columns.extend(names.iter().map(|name| (name.as_str(), Side::Right)));
    let mut table = Table::new(1, &columns);
    let more = add_rates(&mut table, shown, "interrupts", interrupts)
        + add_rates(&mut table, shown, "softirqs", softirqs);
    add_totals(&mut table, shown, has_steal);
    paragraph("", &title) + "\n" + &table.text() + &omitted(more)
}

/// Adds the rows of one kind, the most frequent first; returns how many were omitted.
fn add_rates(
    table: &mut Table,
    shown: &[Column<'_>],
    kind: &str,
    rates: impl Fn(&ProcSummary) -> Rates,
) -> usize {
    let read: Vec<_> = shown.iter().map(|(_, counters)| rates(counters)).collect();
    if read.iter().all(Option::is_none) {
        let unread = shown.iter().map(|_| number::UNKNOWN.to_owned());
        table.row(std::iter::once(kind.to_owned()).chain(unread));
        return 0;
    }
    let rows = by_rate(&read);
    let names = cut_labels(rows.iter().take(ROWS).map(|(name, _)| name), NAME);
    for ((_, rates), name) in rows.iter().zip(names) {
        let cells = rates.iter().zip(&read).map(|(rate, read)| match read {
            None => number::UNKNOWN.to_owned(),
            Some(_) => number::any(*rate, number::rate),
        });
        table.row(std::iter::once(name).chain(cells));
    }
    rows.len().saturating_sub(ROWS)
}

/// The rows of all CPUs by name, the most frequent first.
fn by_rate(read: &[Rates]) -> Vec<(String, Vec<Option<PerSecond>>)> {
    let mut rates: BTreeMap<String, Vec<Option<PerSecond>>> = BTreeMap::new();
    for (at, column) in read.iter().enumerate() {
        for (name, rate) in column.iter().flatten() {
            let cells =
                rates.entry(name.clone()).or_insert_with(|| vec![None; read.len()]);
            if let Some(cell) = cells.get_mut(at) {
                *cell = *rate;
            }
        }
    }
    let highest = |rates: &[Option<PerSecond>]| {
        rates.iter().flatten().map(|rate| rate.get()).fold(0.0, f64::max)
    };
    let mut rows: Vec<_> = rates.into_iter().collect();
    rows.sort_by(|a, b| highest(&b.1).total_cmp(&highest(&a.1)));
    rows
}

fn interrupts(counters: &ProcSummary) -> Rates {
    let lines = counters.interrupts.as_ref()?.iter();
    Some(lines.map(|line| (label(line), line.rate_hz)).collect())
}

fn softirqs(counters: &ProcSummary) -> Rates {
    let softirqs = counters.softirqs.as_ref()?.iter();
    Some(softirqs.map(|s| (format!("softirq {}", s.name), s.rate_hz)).collect())
}

fn add_totals(table: &mut Table, shown: &[Column<'_>], has_steal: bool) {
    let mut add = |name: &str, print: &dyn Fn(&ProcSummary) -> String| {
        let cells = shown.iter().map(|(_, counters)| print(counters));
        table.row(std::iter::once(name.to_owned()).chain(cells));
    };
    let time = |time| number::known(time, number::duration);
    add("involuntary context switches", &|counters| number::count(counters.preempted));
    add("run queue wait time", &|counters| time(counters.waited_ns));
    if has_steal {
        add("steal time", &|counters| time(counters.steal_ns));
    }
}
