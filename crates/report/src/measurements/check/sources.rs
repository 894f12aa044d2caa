//! The sources of lost time, summed up by program and by event: the largest, and all.

use summary::{
    Group, Groups, LossCategory, NoiseSummary, Split, TimePart, UnitGroup, Verdict,
};
use units::{Nanos, Ppm};

use crate::document::Document;
use crate::document::table::{Cell, Column, Table, cells};
use crate::document::text::{Text, text};
use crate::measurements::noise::culprits::{OWN, kind_word};
use crate::measurements::noise::firmware::firmware;
use crate::measurements::noise::periods::periods;
use crate::measurements::noise::steal::steal;
use crate::number;

/// The number of programs of a unit that are named on one screen.
const PROGRAMS: usize = 2;
/// The table of all sources lists this many groups of each part.
const LISTED: usize = 6;
const LEGEND: &str = "\"share\": of the time of all CPUs. A gap may have several sources. Threads of one \
    program, and kernel threads of one kind, are one line.";

/// The largest sources of all CPUs together, with bars.
pub(crate) fn top_sources(groups: &[Group], listed: usize) -> Table {
    let lost = groups.iter().map(|group| group.part.ns).sum();
    let mut groups = Group::by_unit(groups);
    let most = groups.first().map_or(0.0, |group| group.part.ns.as_secs_f64());
    groups.truncate(listed);
    let bar =
        |group: &UnitGroup| group.part.ns.as_secs_f64() / most.max(f64::MIN_POSITIVE);
    Table::of(&groups)
        .column(Column::name("lost to", 12..=36), |group| source(group))
        .column(Column::words(""), |group| Cell::bar(bar(group)))
        .number("share", |one| number::known(Ppm::of(one.part.ns, lost)))
        .number("time", |group| group.part.ns)
        .number("longest", |group| group.max_ns)
        .table
}

/// The name of a unit with its largest programs, or of a group, and if there is room the number of its
/// threads.
fn source(group: &UnitGroup) -> Cell {
    let names = group.groups.iter().map(|group| source_name(group)).collect();
    let names = Text::first(PROGRAMS, names, ", ");
    let unit = group.groups.first().and_then(|group| group.unit.as_ref());
    let name = match unit {
        Some(unit) => text!("{}: {}", Text::name(unit.to_string()), names),
        None => names,
    };
    let threads = group.threads;
    let threads = (threads > 1).then(|| format!(" ({threads} threads)"));
    Cell::or(text!("{}{}", name.clone(), threads), name)
}

fn source_name(group: &Group) -> Text {
    let name = Text::name(group.name.as_str());
    match group.category {
        LossCategory::Own => OWN.into(),
        LossCategory::Hypervisor => "hypervisor (steal)".into(),
        LossCategory::Firmware => "firmware (SMI)".into(),
        LossCategory::Programs | LossCategory::Quota | LossCategory::Unexplained => name,
        LossCategory::Kernel => text!("{} {}", kind_word(group.kind), name),
    }
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

/// The table of all sources without rows.
fn empty_table() -> Table {
    Table::new([
        Column::words("source"),
        Column::name("", 12..=19),
        Column::number("threads"),
        Column::number("gaps"),
        Column::number("time"),
        Column::number("share"),
        Column::number("longest"),
    ])
}

fn table(split: &Split) -> Table {
    let mut table = empty_table();
    let parts = [
        (LossCategory::Programs, "programs", split.programs),
        (LossCategory::Kernel, "kernel", split.kernel),
        (LossCategory::Quota, "CPU quota", split.quota),
        (LossCategory::Hypervisor, "hypervisor", split.hypervisor),
        (LossCategory::Firmware, "firmware", split.firmware),
        (LossCategory::Unexplained, "unexplained", split.unexplained),
        (LossCategory::Own, OWN, split.own),
    ];
    for (category, name, part) in parts {
        let Groups { groups, threads, gaps, longest } = split.groups_of(category);
        let is_rare = matches!(
            category,
            LossCategory::Quota | LossCategory::Own | LossCategory::Firmware
        );
        if is_rare && groups.is_empty() {
            continue;
        }
        table.row(row(cells![name, ""], threads, gaps, part, longest));
        if category == LossCategory::Programs {
            list_units(&mut table, &split.groups);
        } else if category == LossCategory::Kernel {
            list(&mut table, &groups);
        }
    }
    table
}

/// Adds the largest units, and the largest programs of each.
fn list_units(table: &mut Table, groups: &[Group]) {
    let programs = groups.iter().filter(|one| one.category == LossCategory::Programs);
    let programs: Vec<Group> = programs.cloned().collect();
    let units = Group::by_unit(&programs);
    for one in units.iter().take(LISTED) {
        let UnitGroup { groups, threads, gaps, part, max_ns } = one;
        let unit = groups.first().and_then(|group| group.unit.as_ref());
        let Some(unit) = unit else {
            list(table, groups);
            continue;
        };
        let head = cells!["", Text::name(unit.to_string())];
        table.row(row(head, *threads, *gaps, *part, Some(*max_ns)));
        list(table, groups);
    }
    let rest = units.get(LISTED..).unwrap_or_default();
    add_rest(table, rest.len(), rest.iter().map(|unit| unit.part.ns).sum());
}

/// Adds the largest groups of a part.
fn list(table: &mut Table, groups: &[&Group]) {
    for group in groups.iter().take(LISTED) {
        let is_kernel = group.category == LossCategory::Kernel;
        let kind = if is_kernel { kind_word(group.kind) } else { "" };
        let kind = Cell::from(kind).deep(usize::from(!kind.is_empty()));
        let name = Cell::from(Text::name(group.name.as_str()));
        let head = [kind, name.deep(usize::from(group.unit.is_some()))];
        table.row(row(head, group.threads, group.gaps, group.part, Some(group.max_ns)));
    }
    let others = groups.get(LISTED..).unwrap_or_default();
    add_rest(table, others.len(), Group::sum(others));
}

/// Adds the number and the time of groups that are not listed.
fn add_rest(table: &mut Table, count: usize, ns: Nanos) {
    if count > 0 {
        table.row(cells!["", format!("{count} more"), "", "", ns]);
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
    use facts::Unit;
    use recording::CulpritKind;

    use super::*;
    use crate::terminal::table;

    fn group(name: &str) -> Group {
        Group {
            category: LossCategory::Programs,
            kind: CulpritKind::Thread,
            name: name.to_owned(),
            unit: None,
            processes: 1,
            threads: 73,
            gaps: 9,
            part: TimePart { ns: Nanos::from_secs(2), ppm: None },
            max_ns: Nanos::from_millis(12),
        }
    }

    /// Check that programs of one unit are one line with the names of two, and that each is listed below it
    /// in the table of all sources; names of units may contain anything.
    #[test]
    fn units_are_one_line() {
        let id = "4f2a".repeat(16);
        let docker = Unit::of_path(&format!("/docker/{id}"));
        let hostile = Unit::of_path("/\u{1b}[2J\u{202e}.service");
        let in_unit =
            |name: &str, unit: &Option<Unit>| Group { unit: unit.clone(), ..group(name) };
        let groups = [
            in_unit("nginx", &docker),
            in_unit("sh", &docker),
            in_unit("curl", &docker),
            in_unit("evil", &hostile),
            group("rustc"),
        ];
        let lines = table::table(&top_sources(&groups, 6), 90);
        let expected = "docker 4f2a4f2a4f2a: nginx, sh, 1 m";
        assert!(lines.contains(expected), "{lines}");
        assert!(lines.contains(" rustc (73 threads)"), "{lines}");
        assert!(!lines.contains(['\u{1b}', '\u{202e}']), "{lines}");
        let mut all = empty_table();
        list_units(&mut all, &groups);
        let lines = table::table(&all, 90);
        let row = lines.lines().find(|line| line.contains("docker 4f2a4f2a4f2a"));
        let numbers = ["219", "27", "6 s", "12 ms"];
        assert!(numbers.iter().all(|number| row.unwrap().contains(number)), "{lines}");
        assert!(lines.contains("   curl ") && lines.contains(" rustc "), "{lines}");
    }

    /// Check that little room leaves the names of programs, not the numbers of their threads.
    #[test]
    fn names_are_kept() {
        let sources = top_sources(&["chromium-browser", "rustc"].map(group), 6);
        assert!(table::table(&sources, 80).contains("chromium-browser (73 threads)"));
        let narrow = table::table(&sources, 50);
        assert!(narrow.contains(" chromium-b") && narrow.contains(" rustc "), "{narrow}");
    }
}
