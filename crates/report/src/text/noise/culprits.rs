//! The sources of noise (culprits), of each CPU and of all together.

use recording::{CulpritKind, Source};
use summary::{CulpritSummary, NoiseSummary, OwnCost};

use crate::number;
use crate::text::layout::labels::cut_labels;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table, cut};

/// The number of listed culprits if one CPU was measured; the others are one line.
const LISTED: usize = 12;
/// The same for each of several CPUs, and for all together.
const LISTED_OF_EACH: usize = 6;
/// Of more CPUs than this, only the total is reported.
pub(crate) const CPUS: usize = 4;
/// The threads of the measuring process.
const OWN: &str = "noisefloor itself";
/// The widest name.
pub(crate) const NAME: usize = 23;
/// The explanation below the table.
const LEGEND: &str = "\"device\" and \"IPI\": interrupts of devices and between CPUs. \"time\": the \
    part of the gaps' time that is attributed to the source; \"share\": its share of all gaps' time. \
    A gap may have several sources.";
/// Replaces the table if single events were not traced.
const TOTALS_ONLY: &str =
    "\nSources of noise unknown: /proc has totals only (see below).\n";

/// The table of all CPUs together, and of each if they are few, with title and legend; empty
/// if events were not traced.
pub(crate) fn culprits(source: Option<Source>, summary: &NoiseSummary) -> String {
    let source = match source {
        None => return String::new(),
        Some(Source::Proc) => return TOTALS_ONLY.to_owned(),
        Some(source) => source,
    };
    let columns = [
        ("CPU", Side::Right),
        ("source", Side::Left),
        ("", Side::Left),
        ("gaps", Side::Right),
        ("time", Side::Right),
        ("share", Side::Right),
        ("longest", Side::Right),
    ];
    let mut table = Table::new(1, &columns);
    let listed = if summary.cpus.len() > 1 { LISTED_OF_EACH } else { LISTED };
    if summary.cpus.len() > 1 {
        add(&mut table, "all", &summary.culprits, summary.own, listed);
    }
    if summary.cpus.len() <= CPUS {
        for cpu in &summary.cpus {
            add(&mut table, &cpu.cpu.to_string(), &cpu.culprits, cpu.own, listed);
        }
    }
    format!(
        "\nSources of noise, traced with {}\n\n{}\n",
        source_words(source),
        table.text()
    ) + &paragraph("", LEGEND)
}

fn add(
    table: &mut Table,
    cpu: &str,
    culprits: &[CulpritSummary],
    own: Option<OwnCost>,
    listed: usize,
) {
    for row in rows(culprits, own, listed) {
        table.row(std::iter::once(cpu.to_owned()).chain(row));
    }
}

/// The rows of that many culprits, of the number of the others, and of noisefloor itself: its
/// threads are one line, after all others.
pub(crate) fn rows(
    culprits: &[CulpritSummary],
    own: Option<OwnCost>,
    listed: usize,
) -> Vec<Vec<String>> {
    let others = || culprits.iter().filter(|culprit| !culprit.is_own());
    let named = others().take(listed);
    let mut rows: Vec<Vec<String>> = named
        .clone()
        .zip(names(named, NAME))
        .map(|(culprit, name)| cells(culprit, name).to_vec())
        .collect();
    if let count @ 1.. = others().count().saturating_sub(listed) {
        rows.push(vec![String::new(), format!("{count} more: see --json")]);
    }
    if let Some(own) = own.filter(|own| own.threads > 0) {
        rows.push(vec![
            String::new(),
            OWN.to_owned(),
            number::count(own.gaps),
            number::duration(own.ns),
            number::known(own.noise_ppm, number::share),
            number::duration(own.max_ns),
        ]);
    }
    rows
}

/// The cells of a culprit: kind, name, number of gaps, time, share of the noise, longest.
fn cells(culprit: &CulpritSummary, name: String) -> [String; 6] {
    [
        kind_word(culprit.kind).to_owned(),
        name,
        number::count(culprit.gaps),
        number::duration(culprit.ns),
        part(culprit),
        number::duration(culprit.max_ns),
    ]
}

pub(crate) fn part(culprit: &CulpritSummary) -> String {
    number::known(culprit.noise_ppm, number::share)
}

/// A culprit's name; that of a thread with its TID and priority.
pub(crate) fn name(culprit: &CulpritSummary) -> String {
    culprit.name.clone() + &thread(culprit)
}

/// The names of culprits, cut to `width` columns; the TID and priority of a thread, which
/// distinguish it, are never cut.
pub(crate) fn names<'a>(
    culprits: impl Iterator<Item = &'a CulpritSummary> + Clone,
    width: usize,
) -> Vec<String> {
    let others = culprits.clone().filter(|culprit| culprit.thread.is_none());
    let mut others = cut_labels(others.map(|culprit| &culprit.name), width).into_iter();
    let name = |culprit: &CulpritSummary| match thread(culprit) {
        thread if thread.is_empty() => others.next().unwrap_or_default(),
        thread => cut(&culprit.name, width.saturating_sub(thread.len())) + &thread,
    };
    culprits.map(name).collect()
}

/// The TID and priority of a thread; empty of other culprits.
fn thread(culprit: &CulpritSummary) -> String {
    let thread = culprit.thread.as_ref();
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
    use CulpritKind::{Ipi, Irq, Nmi, Softirq, Steal, Thread, Timer, Unexplained};
    match kind {
        Timer | Ipi | Irq | Softirq | Nmi => true,
        Thread | Steal | Unexplained => false,
    }
}

pub(crate) fn kind_word(kind: CulpritKind) -> &'static str {
    match kind {
        CulpritKind::Timer => "timer",
        CulpritKind::Ipi => "IPI",
        CulpritKind::Irq => "device",
        CulpritKind::Softirq => "softirq",
        CulpritKind::Nmi => "NMI",
        CulpritKind::Thread => "thread",
        CulpritKind::Steal => "steal",
        CulpritKind::Unexplained => "", // its name is the same word
    }
}

pub(crate) fn source_words(source: Source) -> &'static str {
    match source {
        Source::Bpf => "eBPF at kernel tracepoints",
        Source::BpfClassic => "eBPF at classic kernel tracepoints",
        Source::Tracefs => "kernel trace events (tracefs)",
        Source::Proc => "/proc counters",
        Source::Other => "an unknown event source",
    }
}
