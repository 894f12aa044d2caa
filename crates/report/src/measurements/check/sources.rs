//! The sources of lost time, summed up by program and by event: the largest, and all.

use summary::{Group, Groups, LossCategory, NoiseSummary, Split, TimePart, Verdict};
use units::{Nanos, Ppm};

use crate::document::Document;
use crate::document::table::{Cell, Column, Table, cells};
use crate::document::text::{Text, text};
use crate::measurements::noise::culprits::{OWN, kind_word};
use crate::measurements::noise::firmware::firmware;
use crate::measurements::noise::periods::periods;
use crate::measurements::noise::steal::steal;
use crate::number;

/// The table of all sources lists this many groups of each part.
const LISTED: usize = 6;
const LEGEND: &str = "\"share\": of the time of all CPUs. A gap may have several sources. Threads of one \
    program, and kernel threads of one kind, are one line.";

/// The largest sources of all CPUs together, with bars.
pub(crate) fn top_sources(groups: &[Group], listed: usize) -> Table {
    let mut groups: Vec<&Group> = groups.iter().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.part.ns));
    let lost = Group::sum(&groups);
    let most = groups.first().map_or(0.0, |group| group.part.ns.as_secs_f64());
    groups.truncate(listed);
    let bar = |group: &Group| group.part.ns.as_secs_f64() / most.max(f64::MIN_POSITIVE);
    Table::of(&groups)
        .column(Column::name("lost to", 12..=36), |group| source(group))
        .column(Column::words(""), |group| Cell::bar(bar(group)))
        .number("share", |one| number::known(Ppm::of(one.part.ns, lost)))
        .number("time", |group| group.part.ns)
        .number("longest", |group| group.max_ns)
        .table
}

/// The name of a group, and if there is room the number of its threads.
fn source(group: &Group) -> Cell {
    let name = Text::name(group.name.as_str());
    let name = match group.category {
        LossCategory::Own => OWN.into(),
        LossCategory::Hypervisor => "hypervisor (steal)".into(),
        LossCategory::Firmware => "firmware (SMI)".into(),
        LossCategory::Programs | LossCategory::Unexplained => name,
        LossCategory::Kernel => text!("{} {}", kind_word(group.kind), name),
    };
    let threads = group.threads;
    let threads = (threads > 1).then(|| format!(" ({threads} threads)"));
    Cell::or(text!("{}{}", name.clone(), threads), name)
}

/// The table of all sources of lost time; empty if events were not traced.
pub(crate) fn sources(verdict: &Verdict, noise: &NoiseSummary) -> Document {
    let Some(split) = &verdict.split else { return Document::default() };
    let [json, command] = ["--json", "noisefloor noise"].map(Text::command);
    Document::section("Sources of lost time", table(split).legend(LEGEND))
        .add(text!("{} and {} list each thread.", json, command))
        .lines(steal(noise))
        .lines(firmware(noise))
        .lines(periods(noise))
}

fn table(split: &Split) -> Table {
    let mut table = Table::new([
        Column::words("source"),
        Column::name("", 12..=19),
        Column::number("threads"),
        Column::number("gaps"),
        Column::number("time"),
        Column::number("share"),
        Column::number("longest"),
    ]);
    let parts = [
        (LossCategory::Programs, "programs", split.programs),
        (LossCategory::Kernel, "kernel", split.kernel),
        (LossCategory::Hypervisor, "hypervisor", split.hypervisor),
        (LossCategory::Firmware, "firmware", split.firmware),
        (LossCategory::Unexplained, "unexplained", split.unexplained),
        (LossCategory::Own, OWN, split.own),
    ];
    for (category, name, part) in parts {
        let Groups { groups, threads, gaps, longest } = split.groups_of(category);
        let is_rare = matches!(category, LossCategory::Own | LossCategory::Firmware);
        if is_rare && groups.is_empty() {
            continue;
        }
        table.row(row(cells![name, ""], threads, gaps, part, longest));
        if matches!(category, LossCategory::Programs | LossCategory::Kernel) {
            list(&mut table, &groups);
        }
    }
    table
}

/// Adds the largest groups of a part.
fn list(table: &mut Table, groups: &[&Group]) {
    for group in groups.iter().take(LISTED) {
        let is_kernel = group.category == LossCategory::Kernel;
        let kind = if is_kernel { kind_word(group.kind) } else { "" };
        let kind = Cell::from(kind).deep(usize::from(!kind.is_empty()));
        let head = cells![kind, Text::name(group.name.as_str())];
        table.row(row(head, group.threads, group.gaps, group.part, Some(group.max_ns)));
    }
    let others = Group::sum(groups.get(LISTED..).unwrap_or_default());
    if let count @ 1.. = groups.len().saturating_sub(LISTED) {
        let rest = format!("{count} more");
        table.row(cells!["", rest, "", "", others]);
    }
}

fn row(
    head: [Cell; 2],
    threads: usize,
    gaps: u64,
    part: TimePart,
    longest: Option<Nanos>,
) -> impl Iterator<Item = Cell> {
    let numbers = cells![
        nonzero(threads),
        gaps,
        part.ns,
        number::known(part.ppm),
        number::any(longest),
    ];
    head.into_iter().chain(numbers)
}

fn nonzero(count: usize) -> String {
    if count == 0 { String::new() } else { count.to_string() }
}

#[cfg(test)]
mod tests {
    use recording::CulpritKind;

    use super::*;
    use crate::terminal::table;

    /// Check that little room leaves the names of programs, not the numbers of their threads.
    #[test]
    fn names_are_kept() {
        let group = |name: &str| Group {
            category: LossCategory::Programs,
            kind: CulpritKind::Thread,
            name: name.to_owned(),
            processes: 1,
            threads: 73,
            gaps: 9,
            part: TimePart { ns: Nanos::from_secs(2), ppm: None },
            max_ns: Nanos::from_millis(12),
        };
        let sources = top_sources(&["chromium-browser", "rustc"].map(group), 6);
        assert!(table::table(&sources, 80).contains("chromium-browser (73 threads)"));
        let narrow = table::table(&sources, 50);
        assert!(narrow.contains(" chromium-b") && narrow.contains(" rustc "), "{narrow}");
    }
}
