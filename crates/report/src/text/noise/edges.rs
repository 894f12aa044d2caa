//! Where interrupts' time lies in their gaps: before, between and after their tracepoints.

use recording::CulpritKind;
use stats::{CulpritSummary, NoiseSummary};

use crate::number;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::noise::culprits::{NAME, kind_word, name};

/// Culprits that are listed.
const LISTED: usize = 6;

const WORDS: &str = "\"entry\": before the first tracepoint of a gap: the way into the kernel, and in a \
                     guest what the hypervisor does to deliver the interrupt. \"inside\": between \
                     an event's tracepoints. \"exit\": after it.";

/// A table of all CPUs together; nothing where no interrupt has any time outside of its tracepoints,
/// or none is known.
pub(crate) fn edges(summary: &NoiseSummary) -> String {
    let columns = [
        ("CPU", Side::Right),
        ("taken by", Side::Left),
        ("", Side::Left),
        ("time", Side::Right),
        ("entry", Side::Right),
        ("inside", Side::Right),
        ("exit", Side::Right),
    ];
    let mut table = Table::new(1, &columns);
    let mut rows = 0;
    let mut add = |cpu: String, culprits: &[CulpritSummary]| {
        for culprit in culprits.iter().filter(|culprit| has_edges(culprit)).take(LISTED) {
            rows += 1;
            table.row([
                cpu.clone(),
                kind_word(culprit.kind).to_owned(),
                name(culprit, NAME),
                number::duration(culprit.ns),
                number::known(culprit.entry_ns, number::duration),
                number::duration(culprit.inside_ns),
                number::known(culprit.exit_ns, number::duration),
            ]);
        }
    };
    match summary.cpus.as_slice() {
        [cpu] => add(cpu.cpu.to_string(), &cpu.culprits),
        _ => add("all".to_owned(), &summary.culprits),
    }
    if rows == 0 {
        return String::new();
    }
    let title = "\nWhere interrupts take their time\n\n".to_owned();
    title + &table.text() + "\n" + &paragraph("", WORDS)
}

/// Whether it is an interrupt or what follows from one, and something of its time lies outside of
/// its tracepoints. A thread's turn begins and ends with a switch: it has no edges to speak of.
fn has_edges(culprit: &CulpritSummary) -> bool {
    let others = [CulpritKind::Thread, CulpritKind::Steal, CulpritKind::Unexplained];
    !others.contains(&culprit.kind) && !culprit.edges().is_zero()
}
