//! The sources of noise (culprits), of all CPUs together and of each.

use recording::{CulpritKind, Source, Thread};
use summary::{CulpritSummary, NoiseSummary, OwnCost};

use crate::document::Document;
use crate::document::table::{Cell, Column, Table, cells};
use crate::document::text::{Text, text};
use crate::number;

/// The number of listed culprits if one CPU was measured; the others are one line.
const LISTED: usize = 12;
/// The same for each of several CPUs, and for all together.
const LISTED_OF_EACH: usize = 6;
/// The same on one screen.
const LISTED_ON_SCREEN: usize = 4;
/// Of more CPUs than this, only the total is reported.
pub(crate) const CPUS: usize = 4;
/// The threads of the measuring process.
pub(crate) const OWN: &str = "noisefloor itself";
/// The explanation below the table.
const LEGEND: &str = "\"time\": the part of the gaps' time that is attributed to the source; \"share\": its \
    share of all gaps' time. A gap may have several sources. \"device\" and \"IPI\": interrupts of \
    devices and between CPUs.";
/// Replaces the table if single events were not traced.
const TOTALS_ONLY: &str = "Sources of noise unknown: /proc has totals only (see below).";

/// On one screen the table of all CPUs together, with `--full` also of each if they are few; empty
/// if events were not traced.
pub(crate) fn culprits(source: Option<Source>, summary: &NoiseSummary) -> Document {
    let source = match source {
        None => return Document::default(),
        Some(Source::Proc) => return TOTALS_ONLY.into(),
        Some(source) => source,
    };
    Document::default()
        .heading(text!("Sources of noise, traced with {}", source_words(source)))
        .add_or(of_each(summary).legend(LEGEND), together(summary))
}

/// The largest sources of all CPUs together.
pub(crate) fn together(summary: &NoiseSummary) -> Table {
    table("gaps", &summary.culprits, summary.own, LISTED_ON_SCREEN)
}

/// A table of that many culprits; `count` is the heading of the number of gaps.
pub(crate) fn table(
    count: &str,
    culprits: &[CulpritSummary],
    own: Option<OwnCost>,
    listed: usize,
) -> Table {
    Table { rows: rows(culprits, own, listed), ..Table::new(columns(count)) }
}

/// All listed sources: of all CPUs together, and of each if they are few.
fn of_each(summary: &NoiseSummary) -> Table {
    let cpu = std::iter::once(Column::number("CPU"));
    let mut table = Table::new(cpu.chain(columns("gaps")));
    let mut add = |cpu: &str, culprits: &[CulpritSummary], own, listed| {
        for row in rows(culprits, own, listed) {
            table.row(std::iter::once(Cell::from(cpu)).chain(row));
        }
    };
    let is_one = summary.cpus.len() == 1;
    if !is_one {
        add("all", &summary.culprits, summary.own, LISTED_OF_EACH);
    }
    let listed = if is_one { LISTED } else { LISTED_OF_EACH };
    for cpu in summary.cpus.iter().filter(|_| summary.cpus.len() <= CPUS) {
        add(&cpu.cpu.to_string(), &cpu.culprits, cpu.own, listed);
    }
    table
}

/// The columns of [`rows`]; `count` is the heading of the number of gaps.
fn columns(count: &str) -> [Column; 6] {
    [
        Column::words("source"),
        Column::name("", 12..=23),
        Column::number(count),
        Column::number("time"),
        Column::number("share"),
        Column::number("longest"),
    ]
}

/// The rows of that many culprits, of the number of the others, and of noisefloor itself: its
/// threads are one line, after all others.
fn rows(
    culprits: &[CulpritSummary],
    own: Option<OwnCost>,
    listed: usize,
) -> Vec<Vec<Cell>> {
    let others = || culprits.iter().filter(|culprit| !culprit.is_own());
    let mut rows: Vec<Vec<Cell>> = others().take(listed).map(row).collect();
    if let count @ 1.. = others().count().saturating_sub(listed) {
        rows.push(cells!["", format!("{count} more: see --json")].into());
    }
    rows.extend(own.filter(|own| own.threads > 0).map(own_row));
    rows
}

/// The cells of a culprit: kind, name, number of gaps, time, share of the noise, longest.
fn row(culprit: &CulpritSummary) -> Vec<Cell> {
    cells![
        kind_word(culprit.kind),
        named(culprit),
        culprit.gaps,
        culprit.ns,
        number::known(culprit.noise_ppm),
        culprit.max_ns,
    ]
    .into()
}

fn own_row(own: OwnCost) -> Vec<Cell> {
    cells!["", OWN, own.gaps, own.ns, number::known(own.noise_ppm), own.max_ns,].into()
}

/// A culprit's name; that of a thread with its TID and priority.
pub(crate) fn name(culprit: &CulpritSummary) -> Text {
    name_of(&culprit.name, culprit.thread.as_ref())
}

/// The same of a name and its thread.
pub(crate) fn name_of(name: &str, thread: Option<&Thread>) -> Text {
    text!("{}{}", Text::name(name), thread_of(thread))
}

/// A culprit's name as a cell; the TID and priority of a thread, which distinguish it, are never cut.
pub(crate) fn named(culprit: &CulpritSummary) -> Cell {
    cell_of(&culprit.name, culprit.thread.as_ref())
}

/// The same of a name and its thread.
pub(crate) fn cell_of(name: &str, thread: Option<&Thread>) -> Cell {
    Cell::from(Text::name(name)).tail(thread_of(thread))
}

/// The TID and priority of a thread; empty of other culprits.
pub(crate) fn thread(culprit: &CulpritSummary) -> String {
    thread_of(culprit.thread.as_ref())
}

/// The same of a thread: ` (417 rt 99)`.
fn thread_of(thread: Option<&Thread>) -> String {
    thread.map_or_else(String::new, |it| format!(" ({}{})", it.tid, class(it.prio)))
}

/// A thread's scheduling class, if not an ordinary one; real-time priorities are as in chrt(1).
fn class(prio: i32) -> String {
    match prio {
        ..0 => " deadline".to_owned(),
        0..=98 => format!(" rt {}", 99 - prio),
        _ => String::new(),
    }
}

/// Whether it is an interrupt, or work that follows from one.
pub(crate) fn is_interrupt(kind: CulpritKind) -> bool {
    kind.is_event() && !matches!(kind, CulpritKind::Thread | CulpritKind::Quota)
}

pub(crate) fn kind_word(kind: CulpritKind) -> &'static str {
    kind.word()
}

/// A name after the word for its kind, if there is one.
pub(crate) fn of_kind(kind: CulpritKind, name: Text) -> Text {
    match kind_word(kind) {
        "" => name,
        word => text!("{} {}", word, name),
    }
}

pub(crate) fn source_words(source: Source) -> &'static str {
    match source {
        Source::Bpf => "eBPF at kernel tracepoints",
        Source::BpfClassic => "eBPF at classic kernel tracepoints",
        Source::Tracefs => "kernel trace events (tracefs)",
        Source::Proc => "/proc counters",
        Source::Simulation => "the simulation",
        Source::Other => "an unknown event source",
    }
}
