//! The time of interrupts before, between and after their tracepoints.

use summary::{CulpritSummary, NoiseSummary};

use crate::number;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::noise::culprits::{NAME, is_interrupt, kind_word, names};

/// The number of listed culprits.
const LISTED: usize = 6;
/// The explanation below the table.
const LEGEND: &str = "\"entry\": before the first tracepoint of a gap: kernel entry and, in a guest, \
    delivery of the interrupt by the hypervisor. \"inside\": between an event's tracepoints. \
    \"exit\": after the event.";

/// A table of all CPUs together; empty if no interrupt has time outside of its tracepoints, or
/// events were not traced.
pub(crate) fn edges(summary: &NoiseSummary) -> String {
    let columns = [
        ("CPU", Side::Right),
        ("source", Side::Left),
        ("", Side::Left),
        ("time", Side::Right),
        ("entry", Side::Right),
        ("inside", Side::Right),
        ("exit", Side::Right),
    ];
    let (cpu, culprits) = match summary.cpus.as_slice() {
        [cpu] => (cpu.cpu.to_string(), &cpu.culprits),
        _ => ("all".to_owned(), &summary.culprits),
    };
    let listed = culprits.iter().filter(|culprit| has_edges(culprit)).take(LISTED);
    let names = names(listed.clone(), NAME);
    if names.is_empty() {
        return String::new();
    }
    let mut table = Table::new(1, &columns);
    for (culprit, name) in listed.zip(names) {
        table.row([
            cpu.clone(),
            kind_word(culprit.kind).to_owned(),
            name,
            number::duration(culprit.ns),
            number::known(culprit.entry_ns, number::duration),
            number::duration(culprit.inside_ns),
            number::known(culprit.exit_ns, number::duration),
        ]);
    }
    let title = "Time of interrupts before, between and after their tracepoints";
    format!("\n{title}\n\n{}\n{}", table.text(), paragraph("", LEGEND))
}

/// Whether it is an interrupt, or work that follows from one, with time outside of its
/// tracepoints. The run of a thread begins and ends with a switch, and so has no edges.
fn has_edges(culprit: &CulpritSummary) -> bool {
    is_interrupt(culprit.kind) && !culprit.edges().is_zero()
}
