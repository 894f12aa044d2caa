//! The time of interrupts before, between and after their tracepoints.

use summary::{CulpritSummary, NoiseSummary};

use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::measurements::noise::culprits::{is_interrupt, kind_word, named};
use crate::number;

/// The number of listed culprits.
const LISTED: usize = 6;
/// The explanation below the table.
const LEGEND: &str = "\"entry\": before the first tracepoint of a gap: kernel entry and, in a guest, \
    delivery of the interrupt by the hypervisor; \"inside\": between an event's tracepoints; \"exit\": \
    after the event.";

/// A table of all CPUs together; empty if no interrupt has time outside of its tracepoints, or
/// events were not traced.
pub(crate) fn edges(summary: &NoiseSummary) -> Document {
    let (cpu, culprits) = match summary.cpus.as_slice() {
        [cpu] => (cpu.cpu.to_string(), &cpu.culprits),
        _ => ("all".to_owned(), &summary.culprits),
    };
    let listed = culprits.iter().filter(|culprit| has_edges(culprit)).take(LISTED);
    let listed: Vec<_> = listed.collect();
    let table = Table::of(&listed)
        .number("CPU", |_| cpu.as_str())
        .column(Column::words("source"), |culprit| kind_word(culprit.kind))
        .column(Column::name("", 12..=23), |culprit| named(culprit))
        .number("time", |culprit| culprit.ns)
        .number("entry", |culprit| number::known(culprit.entry_ns))
        .number("inside", |culprit| culprit.inside_ns)
        .number("exit", |culprit| number::known(culprit.exit_ns))
        .table
        .legend(LEGEND);
    let title = "Time of interrupts before, between and after their tracepoints";
    Document::section(title, table)
}

/// Whether it is an interrupt, or work that follows from one, with time outside of its
/// tracepoints. The run of a thread begins and ends with a switch, and so has no edges.
fn has_edges(culprit: &CulpritSummary) -> bool {
    is_interrupt(culprit.kind) && !culprit.edges().is_zero()
}
