//! Tables of cells, one for each kind of measurement among them.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use stats::{
    CallCost, CallSummary, CellSummary, CheckSummary, CpuIdleCost, CpuNoiseSummary,
    CpuTicksSummary, IdleCost, Spread, Summary, TickCost,
};
use units::Instructions;

use crate::number;
use crate::text::cells::calls::{Found, MARK, call_tables};
use crate::text::cells::nohz::nohz_tables;
use crate::text::cells::slices::slices_tables;
use crate::text::cells::tick_kinds::kinds_table;
use crate::text::layout::fit::{fits, fitted};
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table, cut};

/// The fewest and the most columns that the name of a kernel or a cell gets where names
/// must be cut.
const NAMES: RangeInclusive<usize> = 6..=36;

/// One line: what a cell found.
#[derive(Debug)]
pub(crate) struct Row {
    /// The label of its kernel.
    pub(crate) kernel: String,
    /// Its name.
    pub(crate) name: String,
    /// Which repeats of it these are, where there are several: ` ×20`.
    pub(crate) repeats: String,
    /// Whether nothing was changed in how its kernel boots and is set.
    pub(crate) as_it_comes: bool,
    /// Whether the kernel's events were watched.
    pub(crate) is_watched: bool,
    /// What it found.
    pub(crate) summary: CellSummary,
}

impl Row {
    /// The cell, its name cut to that width.
    fn cell(&self, width: usize) -> String {
        cut(&self.name, width) + &self.repeats
    }
}

/// How a count is printed: in full, or shorter.
pub(crate) type Count = fn(u64) -> String;

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
    let others = nohz_tables(rows).into_iter().chain(slices_tables(rows));
    tables.into_iter().chain(others).flatten().collect()
}

pub(crate) fn section(title: &str, table: &str, words: &str) -> String {
    format!("\n{}\n{table}\n{}", paragraph("", title), paragraph("", words))
}

/// A line's cell, and its numbers.
type Line<'a, const N: usize> = (&'a Row, [String; N]);

/// A table whose first columns are kernel and cell; none where there is no line. Where
/// room is short, large numbers are shortened, then kernels get lines of their own; and
/// only then are names cut.
pub(crate) fn table<'r, const N: usize>(
    words: [&str; N],
    rows: &'r [Row],
    lines: impl Fn(&CellSummary, Count) -> Vec<[String; N]>,
) -> Option<String> {
    let lines = |count: Count| {
        let of_row = |row: &'r Row| {
            lines(&row.summary, count).into_iter().map(move |line| (row, line))
        };
        rows.iter().flat_map(of_row).collect::<Vec<Line<'r, N>>>()
    };
    let (full, short) = (lines(number::count), lines(number::short_count));
    if full.is_empty() {
        return None;
    }
    let beside = [&full, &short].map(|lines| beside_kernels(words, lines));
    let text = beside.into_iter().find(|text| fits(text));
    Some(text.unwrap_or_else(|| fitted(NAMES, |name| below_kernels(words, &short, name))))
}

fn beside_kernels<const N: usize>(words: [&str; N], lines: &[Line<'_, N>]) -> String {
    let mut columns = vec![("kernel", Side::Left), ("cell", Side::Left)];
    columns.extend(words.map(|word| (word, Side::Right)));
    let mut table = Table::new(2, &columns);
    for (row, numbers) in lines {
        let names = [row.kernel.clone(), row.cell(usize::MAX)];
        table.row(names.into_iter().chain(numbers.iter().cloned()));
    }
    table.text()
}

fn below_kernels<const N: usize>(
    words: [&str; N],
    lines: &[Line<'_, N>],
    name: usize,
) -> String {
    let mut columns = vec![("kernel, cell", Side::Left)];
    columns.extend(words.map(|word| (word, Side::Right)));
    let mut table = Table::new(2, &columns);
    let mut kernel = None;
    for (row, numbers) in lines {
        if kernel != Some(&row.kernel) {
            kernel = Some(&row.kernel);
            table.row([cut(&row.kernel, name)]);
        }
        let name = format!("  {}", row.cell(name));
        table.row(std::iter::once(name).chain(numbers.iter().cloned()));
    }
    table.text()
}

fn instructions(value: Option<Instructions>, count: Count) -> String {
    number::any(value, |value| count(value.get()))
}

fn tick_costs(rows: &[Row]) -> Option<String> {
    rows.iter().find(|row| matches!(row.summary, CellSummary::TickCost(_)))?;
    let head = ["gap", "in kernel", "mean", "±", "ticks", "most"];
    let table = table(head, rows, |summary, count| match summary {
        CellSummary::TickCost(cost) => vec![tick_cost(cost, count)],
        // A tick of an idle CPU is no gap in anything, but a tick all the same.
        CellSummary::IdleCost(IdleCost { tick_kernel_instructions: spread, .. }) => {
            let none = number::NONE.to_owned();
            vec![tick_line(none, None, Some(spread), count)]
        }
        _ => Vec::new(),
    })?;
    let words = "\"gap\": the median stretch in which the guest's loop did not run, a pass of \
                 the loop included. \"in kernel\": the median number of kernel instructions \
                 from the timer's interruption to its return. \"mean\": of the same; \"±\": by \
                 how much a single phase of the measurement is off the mean at most; \"most\": \
                 the longest gap, or else the most expensive tick.";
    let costs = section("What one tick costs, in instructions", &table, words);
    Some(costs + &kinds_table(rows).unwrap_or_default())
}

fn tick_cost(cost: &TickCost, count: Count) -> [String; 6] {
    let (gap, kernel) =
        (cost.gap_instructions.as_ref(), cost.kernel_instructions.as_ref());
    tick_line(median(gap, count), gap, kernel, count)
}

fn tick_line(
    median_gap: String,
    gap: Option<&Spread>,
    kernel: Option<&Spread>,
    count: Count,
) -> [String; 6] {
    let (first, all) = (kernel.or(gap), gap.or(kernel));
    let rounded = |value: f64| number::rounded(value, count);
    [
        median_gap,
        median(kernel, count),
        number::known(first, |spread| number::any(spread.mean, rounded)),
        number::known(first, |spread| number::any(spread.mean_deviation, rounded)),
        number::known(all, |spread| count(spread.count())),
        number::known(all, |spread| instructions(spread.max(), count)),
    ]
}

fn median(spread: Option<&Spread>, count: Count) -> String {
    number::known(spread, |spread| instructions(spread.p50, count))
}

fn idle_costs(rows: &[Row]) -> Option<String> {
    let head = ["CPU", "instructions/s", "ticks/s", "counted/s", "one tick"];
    let table = table(head, rows, |summary, count| match summary {
        CellSummary::IdleCost(cost) => {
            cost.cpus.iter().map(|cpu| idle_cost(cost, cpu, count)).collect()
        }
        _ => Vec::new(),
    })?;
    let words = "\"ticks/s\": timer interrupts by /proc/interrupts; \"counted/s\": the same \
                 by the lab's counter. \"one tick\": the median number of kernel instructions \
                 of one.";
    Some(section("What idle CPUs still execute", &table, words))
}

fn idle_cost(cost: &IdleCost, cpu: &CpuIdleCost, count: Count) -> [String; 5] {
    [
        cpu.cpu.to_string(),
        number::known(cpu.instructions_hz, number::bare_rate),
        number::known(cpu.timer_hz, number::bare_rate),
        number::known(cpu.timer_entries_hz, number::bare_rate),
        instructions(cost.tick_kernel_instructions.p50, count),
    ]
}

fn call_costs(rows: &[Row]) -> Option<String> {
    let cost = |call: &CallCost| {
        let number = instructions(call.instructions.p50, number::count);
        let mark = call.instructions.agreed.is_none().then_some(MARK);
        (call.name.clone(), number.chars().chain(mark).collect())
    };
    let found = found(rows, |summary| match summary {
        CellSummary::CallCosts(costs) => costs.calls.iter().map(cost).collect(),
        _ => Vec::new(),
    });
    let any_varies =
        found.iter().flat_map(|cell| &cell.costs).any(|(_, cost)| cost.ends_with(MARK));
    let words = "The median number from one repeat's start to the next one's, the program's \
                 own instructions and the kernel's.";
    let asterisk = " An asterisk: fewer than 90 % of the repeats took just that number.";
    let words = format!("{words}{}", if any_varies { asterisk } else { "" });
    call_section("What requests to the kernel cost, in instructions", &found, &words)
}

fn noise(rows: &[Row]) -> Option<String> {
    let head = ["CPU", "lost", "gaps/s", "typical", "longest"];
    let table = table(head, rows, |summary, _| match summary {
        CellSummary::Measured(Summary::Noise(noise))
        | CellSummary::Measured(Summary::Check(CheckSummary { noise, .. })) => {
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
    let table = table(["CPU", "ticks/s", "busy"], rows, |summary, _| match summary {
        CellSummary::Measured(Summary::Ticks(ticks))
        | CellSummary::Measured(Summary::Check(CheckSummary { rest: ticks, .. })) => {
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
    let found = found(rows, |summary| match summary {
        CellSummary::Measured(Summary::Calls(summary)) => {
            summary.calls.iter().map(cell).collect()
        }
        _ => Vec::new(),
    });
    let words = "The median from one repeat's start to the next one's.";
    call_section("How long requests to the kernel took", &found, words)
}

/// The rows that found anything about requests, and what.
fn found<'r>(
    rows: &'r [Row],
    costs: impl Fn(&CellSummary) -> Vec<(String, String)>,
) -> Vec<Found> {
    let costs = |row: &'r Row| {
        Some((row, costs(&row.summary))).filter(|(_, costs)| !costs.is_empty())
    };
    let rows: Vec<(&Row, Vec<(String, String)>)> =
        rows.iter().filter_map(costs).collect();
    let common = common_end(rows.iter().map(|(row, _)| row.name.as_str()));
    let found = |(row, costs): (&Row, Vec<(String, String)>)| Found {
        kernel: row.kernel.clone(),
        name: row.cell(usize::MAX),
        short: short_name(row, common) + &row.repeats,
        costs,
    };
    rows.into_iter().map(found).collect()
}

/// How many words at their end all names have in common; none where there is one name.
fn common_end<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    let names: BTreeSet<&str> = names.collect();
    let words = |name: &'a str| name.split(' ').rev();
    let common = |a: &'a str, b: &'a str| {
        words(a).zip(words(b)).take_while(|(a, b)| a == b).count()
    };
    let pairs = names.iter().zip(names.iter().skip(1));
    pairs.map(|(a, b)| common(a, b)).min().unwrap_or(0)
}

/// A row's name without the words at its end that all rows have in common.
fn short_name(row: &Row, common: usize) -> String {
    let words: Vec<&str> = row.name.split(' ').collect();
    match words.get(..words.len().saturating_sub(common)).unwrap_or_default() {
        [] if row.as_it_comes => "(as it comes)".to_owned(),
        [] => row.name.clone(),
        words => words.join(" "),
    }
}

fn call_section(title: &str, found: &[Found], words: &str) -> Option<String> {
    let is_any = !found.is_empty();
    is_any.then(|| section(title, &call_tables(found), words))
}
