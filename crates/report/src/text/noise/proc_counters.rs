//! What `/proc` counted while the loops spun: a table with a line for each thing counted
//! and a column for each CPU, of the CPUs that lost most.

use std::collections::BTreeMap;

use stats::{MeanwhileSummary, NoiseSummary};
use units::{Cpu, PerSecond};

use crate::number;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table, cut};
use crate::text::noise::worst::worst;

/// CPUs that fit side by side.
const COLUMNS: usize = 4;
/// Lines of each kind; rarer ones are left to JSON.
const LINES: usize = 8;
/// The widest name of a line.
const NAME: usize = 32;

/// What was counted on one CPU, by name, a second; `None`: it could not be read.
type Counted = Option<Vec<(String, Option<PerSecond>)>>;

/// A CPU, and what was counted on it.
type Column<'a> = (Cpu, &'a MeanwhileSummary);

/// The table of the CPUs that lost most, with its title.
pub(crate) fn meanwhile_of_worst(summary: &NoiseSummary) -> String {
    let shown = worst(summary, COLUMNS, COLUMNS);
    let is_cut = shown.len() < summary.cpus.len();
    let which = if is_cut { " on the CPUs that lost most" } else { "" };
    let shown: Vec<Column<'_>> =
        shown.iter().map(|cpu| (cpu.cpu, &cpu.meanwhile)).collect();
    meanwhile_table(&shown, which)
}

/// The table of a few CPUs, with its title, which says which those are.
pub(crate) fn meanwhile_table(shown: &[Column<'_>], which: &str) -> String {
    let title = format!("What /proc counted meanwhile{which}");
    let names: Vec<String> = shown.iter().map(|(cpu, _)| format!("CPU {cpu}")).collect();
    let mut columns = vec![("", Side::Left)];
    columns.extend(names.iter().map(|name| (name.as_str(), Side::Right)));
    let mut table = Table::new(1, &columns);
    let left_out = add_rates(&mut table, shown, "interrupts", interrupts)
        + add_rates(&mut table, shown, "softirqs", softirqs);
    add_sums(&mut table, shown);
    let mut text = paragraph("", &title) + "\n" + &table.text();
    if left_out > 0 {
        text.push_str(&paragraph(
            "  ",
            &format!("{left_out} rarer lines are in --json."),
        ));
    }
    text
}

/// Adds the lines of one kind, the most frequent first; returns how many were left out.
fn add_rates(
    table: &mut Table,
    shown: &[Column<'_>],
    kind: &str,
    of: impl Fn(&MeanwhileSummary) -> Counted,
) -> usize {
    let read: Vec<_> = shown.iter().map(|(_, meanwhile)| of(meanwhile)).collect();
    if read.iter().all(Option::is_none) {
        let unread = shown.iter().map(|_| number::UNKNOWN.to_owned());
        table.row(std::iter::once(kind.to_owned()).chain(unread));
        return 0;
    }
    let lines = by_rate(&read);
    for (name, rates) in lines.iter().take(LINES) {
        let cells = rates.iter().zip(&read).map(|(rate, read)| match read {
            None => number::UNKNOWN.to_owned(),
            Some(_) => number::any(*rate, number::rate),
        });
        table.row(std::iter::once(cut(name, NAME)).chain(cells));
    }
    lines.len().saturating_sub(LINES)
}

/// The lines of all CPUs by name, the most frequent first.
fn by_rate(read: &[Counted]) -> Vec<(String, Vec<Option<PerSecond>>)> {
    let mut rates: BTreeMap<String, Vec<Option<PerSecond>>> = BTreeMap::new();
    for (at, lines) in read.iter().enumerate() {
        for (name, rate) in lines.iter().flatten() {
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
    let mut lines: Vec<_> = rates.into_iter().collect();
    lines.sort_by(|a, b| highest(&b.1).total_cmp(&highest(&a.1)));
    lines
}

fn interrupts(meanwhile: &MeanwhileSummary) -> Counted {
    let lines = meanwhile.interrupts.as_ref()?.iter();
    Some(
        lines
            .map(|line| (format!("{:>4} {}", line.line, line.name), line.rate_hz))
            .collect(),
    )
}

fn softirqs(meanwhile: &MeanwhileSummary) -> Counted {
    let softirqs = meanwhile.softirqs.as_ref()?.iter();
    Some(softirqs.map(|s| (format!("softirq {}", s.name), s.rate_hz)).collect())
}

fn add_sums(table: &mut Table, shown: &[Column<'_>]) {
    let mut add = |name: &str, print: &dyn Fn(&MeanwhileSummary) -> String| {
        let cells = shown.iter().map(|(_, meanwhile)| print(meanwhile));
        table.row(std::iter::once(name.to_owned()).chain(cells));
    };
    add("times other programs took the CPU", &|m| number::count(m.preempted));
    add("time they ran there", &|m| number::known(m.waited_ns, number::duration));
    add("time the hypervisor took (steal)", &|m| {
        number::known(m.steal_ns, number::duration)
    });
}
