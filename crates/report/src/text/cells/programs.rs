//! Tables of programs: a column for each kernel, the instructions by what executed them.

use itertools::Itertools;
use summary::{EntryCost, EntryKind, GroupRole, ProgramCost};
use units::Instructions;

use crate::number;
use crate::text::cells::grid::{Column, Grid};
use crate::text::cells::lines::{Row, section};
use crate::text::explain::phase::{entry_name, kind};
use crate::text::layout::labels::cut_labels;
use crate::text::layout::table::cut;

/// The maximum width of a kernel's name.
const KERNEL: usize = 22;
/// The maximum width of the name of a service or an entry.
const NAME: usize = 34;
/// The maximum width of the name of a unit of work.
const UNIT: usize = 16;
/// The number of entries into the kernel in the table.
const ENTRIES: usize = 16;
/// The kinds of instructions of a command.
const KINDS: [(&[EntryKind], &str); 8] = [
    (&[EntryKind::Program], "user mode"),
    (&[EntryKind::SystemCall], "system calls"),
    (&[EntryKind::Exception], "exceptions"),
    (&[EntryKind::Softirq], "softirqs"),
    (&[EntryKind::Tick], "tick"),
    (&[EntryKind::Interrupt], "interrupts, without these"),
    (&[EntryKind::NewTask], "new tasks"),
    (&[EntryKind::Thread, EntryKind::Idle], "other"),
];

/// A cell, and its program.
pub(crate) type CellProgram<'a> = (&'a Row<'a>, &'a ProgramCost);

/// The tables of all programs.
pub(crate) fn program_tables(all: &[CellProgram<'_>]) -> Option<String> {
    let names = all.iter().map(|(row, _)| row.named.cell.name.as_str()).unique();
    let tables = names.map(|name| {
        let same: Vec<_> =
            all.iter().filter(|(row, _)| row.named.cell.name == name).copied().collect();
        summary_table(name, &same) + &entry_table(&same)
    });
    (!all.is_empty()).then(|| tables.collect())
}

/// Instructions of the command by kind, of the services, and of the rest of the guest.
fn summary_table(name: &str, cells: &[CellProgram<'_>]) -> String {
    let names = cells.first().map(|(_, cost)| line_names(cost)).unwrap_or_default();
    let column = |((_, cost), head): (&CellProgram<'_>, String)| {
        Column::new([String::new(), head], lines(cost))
    };
    let grid = Grid {
        corner: [String::new(), "instructions".to_owned()],
        names,
        columns: cells.iter().zip(heads(cells)).map(column).collect(),
    };
    let words = "From the start of the command to its end. \"command\": the command and the \
                 processes that it started. \"softirqs\", \"tick\" and \"interrupts\" are those \
                 that interrupted it. \"rest of the guest\": kernel threads, idle CPUs and the \
                 guest's agent. \"time\": guest time, in which an instruction takes 1 ns.";
    section(&format!("Instructions of {name}"), &grid.text(), words)
}

fn line_names(cost: &ProgramCost) -> Vec<String> {
    let mut names = vec!["command".to_owned()];
    names.extend(KINDS.iter().map(|(_, words)| format!("  {words}")));
    let groups = cost.groups.iter().skip(1).map(|group| match group.role {
        GroupRole::Service => format!("service {}", group.name),
        GroupRole::Command | GroupRole::Other => "rest of the guest".to_owned(),
    });
    for group in cut_labels(groups, NAME) {
        names.push(group);
        names.extend(["  user mode".to_owned(), "  kernel".to_owned()]);
    }
    names.extend(["all", "timer interrupts", "time"].map(str::to_owned));
    if let Some(unit) = &cost.unit {
        names.push(format!("{}s per second", cut(&unit.name, UNIT)));
        names.push(format!("all, per {}", cut(&unit.name, UNIT)));
        names.push("  kernel".to_owned());
    }
    names
}

fn lines(cost: &ProgramCost) -> Vec<String> {
    let count = |value: Instructions| number::count(value.get());
    let mut lines = Vec::new();
    if let Some(command) = cost.command() {
        lines.push(count(command.instructions));
        let of =
            |kinds: &[EntryKind]| kinds.iter().map(|kind| command.of_kind(*kind)).sum();
        lines.extend(KINDS.iter().map(|(kinds, _)| count(of(kinds))));
    }
    for group in cost.groups.iter().skip(1) {
        lines.push(count(group.instructions));
        lines.push(count(group.user_instructions));
        lines.push(count(group.kernel_instructions));
    }
    lines.push(count(cost.instructions));
    lines.push(number::count(cost.timer_interrupts));
    lines.push(number::duration(cost.run.elapsed_ns));
    if let Some(unit) = &cost.unit {
        lines.push(number::any(unit.units_hz, number::bare_rate));
        lines.push(number::rounded(unit.instructions, number::count));
        lines.push(number::rounded(unit.kernel_instructions, number::count));
    }
    lines
}

/// The largest entries into the kernel, of the whole guest.
fn entry_table(cells: &[CellProgram<'_>]) -> String {
    let sums: Vec<Vec<EntryCost>> =
        cells.iter().map(|(_, cost)| cost.kernel_entries()).collect();
    let largest = |kind: EntryKind, name: &str| {
        sums.iter().map(|entries| sum(entries, kind, name)).max().unwrap_or_default()
    };
    let all = sums.iter().flatten().map(|entry| (entry.kind, entry.name.as_str()));
    let mut keys: Vec<_> = all.unique().collect();
    keys.sort_by_key(|&(kind, name)| std::cmp::Reverse(largest(kind, name)));
    keys.truncate(ENTRIES);
    let column =
        |(((_, cost), entries), head): ((&CellProgram<'_>, &Vec<EntryCost>), String)| {
            let own: Vec<Instructions> =
                keys.iter().map(|&(kind, name)| sum(entries, kind, name)).collect();
            let shown: Instructions = own.iter().copied().sum();
            let rest = cost.kernel_instructions.get().saturating_sub(shown.get());
            let values = own.iter().map(|value| value.get());
            let values =
                values.chain([rest, cost.kernel_instructions.get()]).map(number::count);
            Column::new([String::new(), head], values.collect())
        };
    let names = keys.iter().map(|&(of, name)| {
        format!("{} {}", kind(of), entry_name(name)).trim_end().to_owned()
    });
    let grid = Grid {
        corner: [String::new(), "instructions of the kernel".to_owned()],
        names: cut_labels(names.chain(["others".to_owned(), "all".to_owned()]), NAME),
        columns: cells.iter().zip(&sums).zip(heads(cells)).map(column).collect(),
    };
    format!("\n{}", grid.text())
}

fn sum(entries: &[EntryCost], kind: EntryKind, name: &str) -> Instructions {
    let same = entries.iter().filter(|entry| entry.kind == kind && entry.name == name);
    same.map(|entry| entry.instructions).sum()
}

/// The headings of the columns: kernels.
fn heads(cells: &[CellProgram<'_>]) -> Vec<String> {
    let name =
        |(row, _): &CellProgram<'_>| format!("{}{}", row.named.kernel, row.repeats());
    cut_labels(cells.iter().map(name), KERNEL)
}
