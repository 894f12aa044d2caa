//! Who took it: a table of the culprits, CPU by CPU and of all together.

use recording::{CulpritKind, NoiseSeries, Source};
use stats::{CulpritSummary, NoiseSummary};

use crate::number;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table, cut};
use crate::text::noise::periods::periods;
use crate::text::noise::steal::steal;

/// Culprits that are listed of one CPU; the others are one line.
const LISTED: usize = 12;
/// The same of each of several, and of all together.
const LISTED_OF_EACH: usize = 6;
/// CPUs that are told one by one; of more, only all together.
pub(crate) const CPUS: usize = 4;
/// The widest name.
pub(crate) const NAME: usize = 23;

/// What is said instead of a table where no single event was seen.
const COUNTED_ONLY: &str =
    "\nWho took it, nobody saw: /proc only counts, and what it counted is below.\n";

/// The table of all CPUs together, and of each where they are few, with its title and what
/// its words mean; nothing where nobody watched.
pub(crate) fn culprits(series: &NoiseSeries, summary: &NoiseSummary) -> String {
    let source = match series.source {
        None => return String::new(),
        Some(Source::Proc) => return COUNTED_ONLY.to_owned(),
        Some(source) => source,
    };
    let columns = [
        ("CPU", Side::Right),
        ("taken by", Side::Left),
        ("", Side::Left),
        ("gaps", Side::Right),
        ("time", Side::Right),
        ("noise", Side::Right),
        ("longest", Side::Right),
    ];
    let mut table = Table::new(1, &columns);
    let listed = if summary.cpus.len() > 1 { LISTED_OF_EACH } else { LISTED };
    if summary.cpus.len() > 1 {
        add(&mut table, "all", &summary.culprits, listed);
    }
    if summary.cpus.len() <= CPUS {
        for cpu in &summary.cpus {
            add(&mut table, &cpu.cpu.to_string(), &cpu.culprits, listed);
        }
    }
    let title = format!("\nWho took it, as {} saw it\n\n", source_words(source));
    let words = "\"device\" and \"IPI\": interrupts of devices and between CPUs. \"time\": the gaps' time that was theirs; \"noise\": the part of all gaps' \
                 time that this is. A gap may have several culprits.";
    title
        + &table.text()
        + "\n"
        + &paragraph("", words)
        + &steal(summary)
        + &periods(summary)
}

fn add(table: &mut Table, cpu: &str, culprits: &[CulpritSummary], listed: usize) {
    let (listed, others) = culprits.split_at(culprits.len().min(listed));
    for culprit in listed {
        table.row(std::iter::once(cpu.to_owned()).chain(cells(culprit)));
    }
    if !others.is_empty() {
        let rest = format!("{} more, in --json", others.len());
        table.row([cpu.to_owned(), String::new(), rest]);
    }
}

/// A culprit's line: what it is, its name, how often, how long, which part, its longest.
pub(crate) fn cells(culprit: &CulpritSummary) -> [String; 6] {
    [
        kind_word(culprit.kind).to_owned(),
        name(culprit, NAME),
        number::count(culprit.gaps),
        number::duration(culprit.ns),
        part(culprit),
        number::duration(culprit.max_ns),
    ]
}

pub(crate) fn part(culprit: &CulpritSummary) -> String {
    number::known(culprit.noise_ppm, number::share)
}

/// A culprit's name in so many columns; of a thread its number and priority are never cut.
pub(crate) fn name(culprit: &CulpritSummary, width: usize) -> String {
    let Some(thread) = &culprit.thread else { return cut(&culprit.name, width) };
    let who = format!(" ({}{})", thread.tid, class(thread.prio));
    cut(&culprit.name, width.saturating_sub(who.len())) + &who
}

/// What is out of the ordinary in a thread's priority, as `chrt` counts it.
fn class(prio: i32) -> String {
    match prio {
        ..0 => " deadline".to_owned(),
        0..=98 => format!(" rt {}", 99 - prio),
        _ => String::new(),
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
        _ => "",
    }
}

pub(crate) fn source_words(source: Source) -> &'static str {
    match source {
        Source::Bpf => "the kernel's tracepoints (eBPF)",
        Source::BpfClassic => "the kernel's tracepoints (eBPF, attached as classic ones)",
        Source::Tracefs => "the kernel's trace events (tracefs)",
        _ => "a later version of this tool",
    }
}
