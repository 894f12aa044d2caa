//! Tables of programs: a column for each kernel, the instructions by what executed them.

use itertools::Itertools;
use summary::{CellSummary, EntryCost, EntryKind, GroupCost, GroupRole, ProgramCost};
use units::Instructions;

use crate::cells::table::{Row, section, table};
use crate::document::Document;
use crate::document::table::{Cell, Column, Table};
use crate::document::text::{Text, text};
use crate::explanations::phase::{entry_name, kind};
use crate::number;

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

/// What is measured.
const LEGEND: &str = "From the command's start to its end. \"command\": with the processes that it \
    started. \"rest of the guest\": kernel threads, idle CPUs and the guest's agent.";
/// The same of means.
const VARIED: &str = "Means of variations: runs with another size of memory and other random numbers. \"±\": \
    the mean of as many other variations is within it in 19 of 20 cases.";
/// The metrics whose ± is shown.
const COMMAND: &str = "program_instructions";
const ALL: &str = "guest_instructions";
const RATE: &str = "units_hz";
const UNIT: &str = "unit_instructions";
const UNIT_KERNEL: &str = "unit_kernel_instructions";

/// A cell, and its program.
type CellProgram<'a> = (&'a Row<'a>, &'a ProgramCost);

/// The tables of all programs.
pub(crate) fn programs(rows: &[Row<'_>]) -> Document {
    let all: Vec<CellProgram<'_>> = rows.iter().filter_map(program).collect();
    Document::default().add_all(all.iter().map(name).unique().map(|own| {
        let same: Vec<_> = all.iter().filter(|one| name(one) == own).copied().collect();
        summary(own, &same).add(entries(&same))
    }))
}

fn program<'a>(row: &'a Row<'a>) -> Option<CellProgram<'a>> {
    let CellSummary::ProgramCost(cost) = &row.summary else { return None };
    Some((row, cost))
}

fn name<'a>((row, _): &CellProgram<'a>) -> &'a str {
    &row.named.cell.name
}

/// Instructions of the command by kind, of the services, and of the rest of the guest.
fn summary(name: &str, cells: &[CellProgram<'_>]) -> Document {
    let is_varied = cells.iter().any(|(row, _)| row.varied(COMMAND).is_some());
    let lines = cells.iter().map(|cell| lines(cell, is_varied)).collect();
    let legend = if is_varied { VARIED } else { LEGEND };
    let table = kernels_table("instructions", cells, lines).legend(legend);
    let more = "\"softirqs\", \"tick\" and \"interrupts\" are those that interrupted the command. \
                \"time\" is guest time, in which an instruction takes 1 ns.";
    section(text!("Instructions of {}", Text::name(name)), table, more)
}

/// A table of lines; the column of each kernel has the same ones.
fn kernels_table(
    first: &str,
    cells: &[CellProgram<'_>],
    lines: Vec<Vec<(Cell, Cell)>>,
) -> Table {
    let head = |(row, _): &CellProgram<'_>| {
        let kernel = format!("{}{}", row.named.kernel, row.repeats());
        Column::number(Text::name(kernel))
    };
    let names = lines.first().into_iter().flatten().map(|(name, _)| name.clone());
    let line = |(at, name): (usize, Cell)| {
        let own = cells.iter().zip(&lines);
        let own =
            own.filter_map(|(cell, own)| Some((head(cell), own.get(at)?.1.clone())));
        (vec![name], own.collect())
    };
    table([Column::name(first, 28..=36)], names.enumerate().map(line).collect())
}

/// What each line is about, and its number; with the ± of the main ones.
fn lines(cell: &CellProgram<'_>, is_varied: bool) -> Vec<(Cell, Cell)> {
    let (row, cost) = *cell;
    let within = |key: &str| {
        let share = row.varied(key).and_then(|varied| varied.within_ppm());
        is_varied.then(|| {
            (Cell::from("±").deep(1), number::any(share.map(number::share)).into())
        })
    };
    let line = |name: Text, number: Text| (Cell::from(name), Cell::from(number));
    let words = |name: &str, number: Text| line(name.into(), number);
    let part = |(name, number): (Cell, Cell)| (name.deep(1), number);
    let mut lines = Vec::new();
    if let Some(command) = cost.command() {
        lines.push(words("command", count(command.instructions)));
        lines.extend(within(COMMAND));
        let of =
            |kinds: &[EntryKind]| kinds.iter().map(|kind| command.of_kind(*kind)).sum();
        let kinds = KINDS.iter().map(|(kinds, name)| words(name, count(of(kinds))));
        lines.extend(kinds.map(part));
    }
    for group in cost.groups.iter().skip(1) {
        lines.push(line(group_name(group), count(group.instructions)));
        lines.push(part(words("user mode", count(group.user_instructions))));
        lines.push(part(words("kernel", count(group.kernel_instructions))));
    }
    lines.push(words("all", count(cost.instructions)));
    lines.extend(within(ALL));
    lines.push(words("timer interrupts", number::count(cost.timer_interrupts)));
    lines.push(words("time", number::duration(cost.run.elapsed_ns)));
    if let Some(unit) = &cost.unit {
        let name = || Text::name(&unit.name);
        let rounded = |value| number::rounded(value, number::count);
        let rate = number::any(unit.units_hz);
        lines.push(line(text!("{}s per second", name()), rate));
        lines.extend(within(RATE));
        lines.push(line(text!("all, per {}", name()), rounded(unit.instructions)));
        lines.extend(within(UNIT));
        lines.push(line(
            text!("kernel, per {}", name()),
            rounded(unit.kernel_instructions),
        ));
        lines.extend(within(UNIT_KERNEL));
    }
    lines
}

fn group_name(group: &GroupCost) -> Text {
    match group.role {
        GroupRole::Service => text!("service {}", Text::name(&group.name)),
        GroupRole::Command | GroupRole::Other => "rest of the guest".into(),
    }
}

fn count(value: Instructions) -> Text {
    number::count(value.get())
}

/// The largest entries into the kernel, of the whole guest.
fn entries(cells: &[CellProgram<'_>]) -> Table {
    let sums: Vec<Vec<EntryCost>> =
        cells.iter().map(|(_, cost)| cost.kernel_entries()).collect();
    let largest = |kind: EntryKind, name: &str| {
        sums.iter().map(|entries| sum(entries, kind, name)).max().unwrap_or_default()
    };
    let all = sums.iter().flatten().map(|entry| (entry.kind, entry.name.as_str()));
    let mut keys: Vec<_> = all.unique().collect();
    keys.sort_by_key(|&(kind, name)| std::cmp::Reverse(largest(kind, name)));
    keys.truncate(ENTRIES);
    let lines = |((_, cost), entries): (&CellProgram<'_>, &Vec<EntryCost>)| {
        let own = keys.iter().map(|&(kind, name)| sum(entries, kind, name));
        let all = cost.kernel_instructions;
        let shown: Instructions = own.clone().sum();
        let rest = Instructions::new(all.get().saturating_sub(shown.get()));
        let names = keys.iter().map(|&(kind, name)| title(kind, name));
        let names = names.chain(["others", "all"].map(Text::from)).map(Cell::from);
        names.zip(own.chain([rest, all]).map(count).map(Cell::from)).collect()
    };
    let lines = cells.iter().zip(&sums).map(lines).collect();
    kernels_table("instructions of the kernel", cells, lines)
}

fn title(of: EntryKind, name: &str) -> Text {
    match entry_name(name) {
        "" => kind(of).into(),
        name => text!("{} {}", kind(of), Text::name(name)),
    }
}

fn sum(entries: &[EntryCost], kind: EntryKind, name: &str) -> Instructions {
    let same = entries.iter().filter(|entry| entry.kind == kind && entry.name == name);
    same.map(|entry| entry.instructions).sum()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::Usage;
    use stats::VariedMean;
    use summary::{Metric, ProgramSummary, UnitCost};
    use units::{Nanos, PerSecond};

    use super::*;
    use crate::cells::labelled::LabelledCell;
    use crate::example::cell::{OLD, cell, lost};
    use crate::terminal::full_text;

    /// A group whose entries execute so many instructions.
    fn group(role: GroupRole, name: &str, all: &[(EntryKind, &str, u64)]) -> GroupCost {
        let entry = |&(kind, name, instructions): &(EntryKind, &str, u64)| EntryCost {
            kind,
            name: name.to_owned(),
            instructions: Instructions::new(instructions),
            times: 1,
        };
        let entries: Vec<EntryCost> = all.iter().map(entry).collect();
        let sum = |is_user: bool| {
            let own = |one: &&EntryCost| (one.kind == EntryKind::Program) == is_user;
            entries.iter().filter(own).map(|entry| entry.instructions).sum()
        };
        let [user, kernel]: [Instructions; 2] = [true, false].map(sum);
        GroupCost {
            role,
            name: name.to_owned(),
            instructions: user + kernel,
            user_instructions: user,
            kernel_instructions: kernel,
            entries,
            functions: Vec::new(),
        }
    }

    /// A program with a service, whose reads cost so much.
    fn cost(read: u64) -> CellSummary {
        use EntryKind::{Exception, Idle, Program, Softirq, SystemCall, Tick};
        let command = [
            (Program, "program", 91_234),
            (SystemCall, "read", read),
            (Exception, "asm_exc_page_fault", 7120),
            (Tick, "tick", 4600),
            (Softirq, "net_rx_action", 830),
        ];
        let service = [(Program, "program", 2000), (SystemCall, "accept4", 3210)];
        let groups = vec![
            group(GroupRole::Command, "command", &command),
            group(GroupRole::Service, "web", &service),
            group(GroupRole::Other, "other", &[(Idle, "do_idle", 512)]),
        ];
        let sum = |part: fn(&GroupCost) -> Instructions| groups.iter().map(part).sum();
        let kernel_instructions = sum(|group| group.kernel_instructions);
        CellSummary::ProgramCost(ProgramCost {
            run: ProgramSummary {
                command: "get 100".to_owned(),
                ended: None,
                elapsed_ns: Nanos::from_micros(1500),
                usage: Usage::default(),
                output: Default::default(),
                services: Vec::new(),
                failure: None,
            },
            instructions: sum(|group| group.instructions),
            kernel_instructions,
            timer_interrupts: 3,
            unit: Some(UnitCost {
                name: "request".to_owned(),
                count: 100,
                units_hz: Some(PerSecond::new(66_666.7)),
                instructions: 1234.5,
                kernel_instructions: 301.2,
            }),
            groups,
        })
    }

    /// Check both tables: a column for each kernel, parts below what they are parts of, and an entry
    /// that only one kernel has.
    #[test]
    fn two_kernels() {
        let cell = cell("get", OLD, lost());
        let named = |kernel: &str| LabelledCell {
            cell: &cell,
            kernel: kernel.to_owned(),
            all: &[],
            beside: None,
        };
        let kernels = ["HZ=1000", "HZ=100"].map(named);
        let rows = |metrics: &[Metric]| {
            let row = |(named, summary)| Row {
                named,
                times: 1,
                summary,
                metrics: metrics.to_vec(),
            };
            let rows = kernels.iter().zip([cost(15_040), cost(0)]);
            let rows: Vec<Row<'_>> = rows.map(row).collect();
            full_text(&programs(&rows))
        };
        assert_snapshot!(rows(&[]));
        let varied = VariedMean::of(&[124_000.0, 125_000.0, 124_500.0]);
        let metric = |key: &str| Metric {
            key: key.to_owned(),
            cpu: None,
            value: 124_500.0,
            tolerance: 0.0,
            varied,
            about: summary::definition(key).unwrap(),
        };
        assert_snapshot!("varied", rows(&[COMMAND, ALL, UNIT].map(metric)));
    }
}
