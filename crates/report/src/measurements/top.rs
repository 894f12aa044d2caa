//! The report of `top`: what used each CPU, and how long threads waited for it.

pub(crate) mod columns;
pub(crate) mod live;
pub(crate) mod screen;

use summary::{TopCpuSummary, TopSource, TopSummary};

use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::number;

/// The rows of one screen, and of the whole report.
const ON_SCREEN: usize = 8;
const LISTED: usize = 64;
const LEGEND: &str = "Percentages are shares of the time. \"prog\": programs; \"kthr\": kernel threads; \"irq\": interrupts \
    and softirqs; \"steal\": the hypervisor's part of these; \"quota\": the time in which the CPU quota of a \
    cgroup was used up, whatever had the CPU. \"irq max\": the longest time of interrupts without a thread in \
    between. \"wait\": the time that threads waited in the run queue, as a share of the time; \"wait max\": \
    the longest of these waits.";
const COUNTED: &str =
    "The kernel counts these times in whole ticks: what is shorter is missed.";

pub(crate) fn top(summary: &TopSummary) -> Document {
    let document = Document::from(title(summary));
    if summary.cpus.is_empty() {
        return document;
    }
    let mut busiest: Vec<&TopCpuSummary> = summary.cpus.iter().collect();
    if busiest.len() > ON_SCREEN {
        busiest.sort_by(|one, other| columns::used(other).total_cmp(&columns::used(one)));
        busiest.truncate(ON_SCREEN);
    }
    let left_out = summary.cpus.len() - busiest.len();
    let rest = match left_out {
        0 => Text::default(),
        more => {
            text!("{} CPUs that were used less: see {}", more, Text::command("--full"))
        }
    };
    let all: Vec<&TopCpuSummary> = summary.cpus.iter().collect();
    let full = cpus(&all).legend(LEGEND);
    document
        .add(Document::default().heading("CPUs").add_or(full, cpus(&busiest).rest(rest)))
        .add(sources(&summary.sources))
        .lines((summary.source == "proc").then(|| COUNTED.into()))
}

fn title(summary: &TopSummary) -> Text {
    if summary.cpus.is_empty() {
        return text!("No CPU was watched.");
    }
    text!(
        "What used {} in {}; noisefloor itself used {} of one.",
        number::counted(u64::try_from(summary.cpus.len()).unwrap_or(u64::MAX), "CPU"),
        number::duration(summary.elapsed_ns),
        number::known(summary.own_ppm),
    )
}

fn cpus(cpus: &[&TopCpuSummary]) -> Table {
    let mut table = Table::of(cpus).number("CPU", |one| one.cpu.to_string());
    for column in columns::known(cpus.iter().copied()) {
        table = table.number(column.head(), move |one| column.text(one));
    }
    table.table
}

fn sources(all: &[TopSource]) -> Document {
    if all.is_empty() {
        return Document::default();
    }
    let table = |listed: usize| {
        Table::of(&all[..all.len().min(listed)])
            .column(Column::name("source", 12..=30), |one| Text::name(&one.name))
            .column(Column::name("", 8..=24), columns::what)
            .number("of one CPU", |one| number::known(one.ppm))
            .number("time", |one| one.ns)
            .number("runs/s", |one| number::any(one.runs_hz.map(number::bare_rate)))
            .number("longest", |one| number::any(one.ns_max))
            .table
            .rest(number::more(all.len().saturating_sub(listed), "with less time"))
    };
    Document::default().heading("What used them").add_or(table(LISTED), table(ON_SCREEN))
}

#[cfg(test)]
mod tests;
