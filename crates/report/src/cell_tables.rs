//! Tables of cells, one for each kind of measurement among them.

use std::ops::RangeInclusive;

use stats::{
    CallCost, CallSummary, CellSummary, CheckSummary, CpuIdleCost, CpuNoiseSummary,
    CpuTicksSummary, IdleCost, Spread, TickCost,
};
use units::Instructions;

use crate::call_tables::{Column, call_tables};
use crate::fit::fitted;
use crate::number;
use crate::paragraph::paragraph;
use crate::table::{Side, Table, cut};

/// The fewest and the most columns that the name of a kernel or a cell gets.
const NAMES: RangeInclusive<usize> = 6..=22;

/// One line: what a cell found.
#[derive(Debug)]
pub(crate) struct Row {
    /// The label of its kernel.
    pub(crate) kernel: String,
    /// Its name.
    pub(crate) name: String,
    /// Which repeats of it these are, where there are several: ` ×20`.
    pub(crate) repeats: String,
    /// What it found.
    pub(crate) summary: CellSummary,
}

impl Row {
    /// The cell, its name cut to that width.
    fn cell(&self, width: usize) -> String {
        cut(&self.name, width) + &self.repeats
    }
}

/// The tables that there are rows for, each with its title and its words.
pub(crate) fn tables(rows: &[Row]) -> String {
    let tables = [
        tick_costs(rows),
        idle_costs(rows),
        call_costs(rows),
        noise(rows),
        ticks(rows),
        calls(rows),
    ];
    tables.into_iter().flatten().collect()
}

fn section(title: &str, table: &str, words: &str) -> String {
    format!("\n{}\n{table}\n{}", paragraph("", title), paragraph("", words))
}

/// A table whose first two columns are kernel and cell; none where there is no line.
/// Names, the cells' first, are cut as far as the numbers make necessary.
fn table<const N: usize>(
    words: [&str; N],
    rows: &[Row],
    lines: impl Fn(&CellSummary) -> Vec<[String; N]>,
) -> Option<String> {
    let mut columns = vec![("kernel", Side::Left), ("cell", Side::Left)];
    columns.extend(words.map(|word| (word, Side::Right)));
    let all: Vec<(&Row, [String; N])> = rows
        .iter()
        .flat_map(|row| lines(&row.summary).into_iter().map(move |line| (row, line)))
        .collect();
    // Cells' names give way first: kernels' labels are short already.
    let text = fitted(2 * NAMES.start()..=2 * NAMES.end(), |room| {
        let name = room.saturating_sub(*NAMES.end()).max(*NAMES.start());
        let mut table = Table::new(2, &columns);
        for (row, line) in &all {
            let names = [cut(&row.kernel, room - name), row.cell(name)];
            table.row(names.into_iter().chain(line.iter().cloned()));
        }
        table.text()
    });
    (!all.is_empty()).then_some(text)
}

fn instructions(value: Option<Instructions>) -> String {
    number::any(value, |value| number::count(value.get()))
}

fn tick_costs(rows: &[Row]) -> Option<String> {
    rows.iter().find(|row| matches!(row.summary, CellSummary::TickCost(_)))?;
    let head = ["gap", "in kernel", "ticks", "distinct", "smallest", "largest"];
    let table = table(head, rows, |summary| match summary {
        CellSummary::TickCost(cost) => vec![tick_cost(cost)],
        // A tick of an idle CPU is no gap in anything, but a tick all the same.
        CellSummary::IdleCost(IdleCost { tick_kernel_instructions: spread, .. }) => {
            vec![tick_line(number::NONE.to_owned(), Some(spread), Some(spread))]
        }
        _ => Vec::new(),
    })?;
    let words = "\"gap\": the most frequent stretch in which the guest's loop did not run, \
                 a pass of the loop included. \"in kernel\": the most frequent number from the \
                 timer's interruption of a program to its return. Then, of the gaps or else \
                 of the kernel's: how many, how many different ones, and the extremes.";
    Some(section("What one tick costs, in instructions", &table, words))
}

fn tick_cost(cost: &TickCost) -> [String; 6] {
    let TickCost { gap_instructions: gap, kernel_instructions: kernel } = cost;
    let mode = |spread: Option<&Spread>| {
        number::known(spread, |spread| instructions(spread.mode))
    };
    tick_line(mode(gap.as_ref()), kernel.as_ref(), gap.as_ref().or(kernel.as_ref()))
}

fn tick_line(gap: String, kernel: Option<&Spread>, all: Option<&Spread>) -> [String; 6] {
    let of_all = |print: fn(&Spread) -> String| number::known(all, print);
    [
        gap,
        number::known(kernel, |spread| instructions(spread.mode)),
        of_all(|spread| number::count(spread.count())),
        of_all(|spread| number::count(spread.distinct())),
        of_all(|spread| instructions(spread.min())),
        of_all(|spread| instructions(spread.max())),
    ]
}

fn idle_costs(rows: &[Row]) -> Option<String> {
    let head = ["CPU", "instructions/s", "ticks/s", "counted/s", "one tick"];
    let table = table(head, rows, |summary| match summary {
        CellSummary::IdleCost(cost) => {
            cost.cpus.iter().map(|cpu| idle_cost(cost, cpu)).collect()
        }
        _ => Vec::new(),
    })?;
    let words = "\"ticks/s\": timer interrupts by /proc/interrupts; \"counted/s\": the same \
                 by the lab's counter. \"one tick\": the most frequent number of kernel \
                 instructions of one.";
    Some(section("What idle CPUs still execute", &table, words))
}

fn idle_cost(cost: &IdleCost, cpu: &CpuIdleCost) -> [String; 5] {
    [
        cpu.cpu.to_string(),
        number::known(cpu.instructions_hz, number::bare_rate),
        number::known(cpu.timer_hz, number::bare_rate),
        number::known(cpu.timer_entries_hz, number::bare_rate),
        instructions(cost.tick_kernel_instructions.mode),
    ]
}

fn call_costs(rows: &[Row]) -> Option<String> {
    let costs = |row: &Row| match &row.summary {
        CellSummary::CallCosts(costs) => costs.calls.clone(),
        _ => Vec::new(),
    };
    let varies = |call: &CallCost| call.instructions.distinct() > 1;
    let any_varies = rows.iter().any(|row| costs(row).iter().any(varies));
    let mark = |call: &CallCost| match (varies(call), any_varies) {
        (true, _) => "*",
        (false, true) => " ",
        (false, false) => "",
    };
    let cell = |call: &CallCost| {
        (call.name.clone(), instructions(call.instructions.mode) + mark(call))
    };
    let columns = columns(rows, |row| costs(row).iter().map(cell).collect());
    let words = "The most frequent number from one repeat's start to the next one's, the \
                 program's own instructions and the kernel's.";
    let asterisk = " An asterisk: not every repeat took the same number.";
    let words = format!("{words}{}", if any_varies { asterisk } else { "" });
    call_section("What requests to the kernel cost, in instructions", &columns, &words)
}

fn noise(rows: &[Row]) -> Option<String> {
    let head = ["CPU", "lost", "gaps/s", "typical", "longest"];
    let table = table(head, rows, |summary| match summary {
        CellSummary::Noise(noise) | CellSummary::Check(CheckSummary { noise, .. }) => {
            noise.cpus.iter().map(noise_line).collect()
        }
        _ => Vec::new(),
    })?;
    let words = "\"lost\": the part of its time in which the loop did not run; \"typical\": \
                 half of these gaps are not longer.";
    Some(section("What a spinning CPU lost, in time", &table, words))
}

fn noise_line(cpu: &CpuNoiseSummary) -> [String; 5] {
    [
        cpu.cpu.to_string(),
        number::known(cpu.noise_ppm, number::share),
        number::known(cpu.gaps_hz, number::bare_rate),
        number::any(cpu.gap_ns.p50, number::duration),
        number::any(cpu.gap_ns.max, number::duration),
    ]
}

fn ticks(rows: &[Row]) -> Option<String> {
    let table = table(["CPU", "ticks/s", "busy"], rows, |summary| match summary {
        CellSummary::Ticks(ticks)
        | CellSummary::Check(CheckSummary { rest: ticks, .. }) => {
            ticks.cpus.iter().map(ticks_line).collect()
        }
        _ => Vec::new(),
    })?;
    let words =
        "\"ticks/s\": timer interrupts by /proc/interrupts; \"busy\": time not idle.";
    Some(section("Timer interrupts of resting CPUs", &table, words))
}

fn ticks_line(cpu: &CpuTicksSummary) -> [String; 3] {
    [
        cpu.cpu.to_string(),
        number::known(cpu.timer_hz, number::bare_rate),
        number::known(cpu.busy_ppm, number::share),
    ]
}

fn calls(rows: &[Row]) -> Option<String> {
    let cell = |call: &CallSummary| {
        (call.name.clone(), number::any(call.step_ns.p50, number::duration))
    };
    let columns = columns(rows, |row| match &row.summary {
        CellSummary::Calls(summary) => summary.calls.iter().map(cell).collect(),
        _ => Vec::new(),
    });
    let words = "The median from one repeat's start to the next one's.";
    call_section("How long requests to the kernel took", &columns, words)
}

/// One column for each row that has any cells.
fn columns(rows: &[Row], cells: impl Fn(&Row) -> Vec<(String, String)>) -> Vec<Column> {
    let column = |row: &Row| {
        let cells = cells(row);
        let head = [row.kernel.clone(), row.cell(*NAMES.end())];
        (!cells.is_empty()).then_some(Column { head, cells })
    };
    rows.iter().filter_map(column).collect()
}

fn call_section(title: &str, columns: &[Column], words: &str) -> Option<String> {
    let is_any = !columns.is_empty();
    is_any.then(|| section(title, &call_tables(columns), words))
}
