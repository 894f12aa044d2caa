//! What sleepers cost the spinners of a cell, by the cell that differs from it in nothing but
//! that it has none.

use recording::{Body, Cell, SlicesSpec};
use stats::{CellSummary, SleepersCost, StepSlices};

use crate::cell_summary::{answer, cell_summary};
use crate::cell_tables::section;
use crate::cells_text::Named;
use crate::fit::fitted;
use crate::number;
use crate::table::{Side, Table, cut};

/// What the sleepers of a cell cost; `None` where there are none, or no cell of `all` is the
/// same but for them.
pub(crate) fn sleepers_cost(cell: &Cell, all: &[Cell]) -> Option<SleepersCost> {
    let spec = spec(cell).filter(|spec| spec.sleepers > 0)?;
    let without = all.iter().find(|other| is_same_without(other, cell, spec))?;
    SleepersCost::of(&found(cell)?, &found(without)?)
}

fn spec(cell: &Cell) -> Option<&SlicesSpec> {
    match &answer(cell)?.recording.body {
        Body::Slices { spec, .. } => Some(spec),
        _ => None,
    }
}

fn found(cell: &Cell) -> Option<StepSlices> {
    match cell_summary(cell)? {
        CellSummary::SlicesCost(cost) => Some(cost.found.found),
        CellSummary::Slices(summary) => Some(summary.found),
        _ => None,
    }
}

fn is_same_without(other: &Cell, cell: &Cell, asked: &SlicesSpec) -> bool {
    let what = |cell: &Cell| {
        let Cell { asked, kernel, machine, params, settings, mode, .. } = cell.clone();
        (asked, kernel, machine, params, settings, mode)
    };
    let without = SlicesSpec { sleepers: 0, ..asked.clone() };
    spec(other) == Some(&without) && what(other) == what(cell)
}

/// The table of what sleepers cost; none where nothing can be compared.
pub(crate) fn sleepers_table(cells: &[Named<'_>]) -> Option<String> {
    let all: Vec<Cell> = cells.iter().map(|named| named.cell.clone()).collect();
    let cost = |named| {
        let Named { cell, .. }: &Named<'_> = named;
        let found = found(cell)?;
        Some((named, sleepers_cost(cell, &all)?, found))
    };
    let once = cells.iter().filter(|named| named.cell.repeat <= 1);
    let lines: Vec<Line<'_>> = once.filter_map(cost).collect();
    if lines.is_empty() {
        return None;
    }
    let table = fitted(6..=36, |width| table(&lines, width));
    let words = "By the cell that is the same but for the sleepers: how many passes of the \
                 spinners' loops were not made, and how many instructions that is for each time \
                 that a sleeper woke up, the switches there and back included.";
    Some(section("What sleepers cost the spinners, exactly", &table, words))
}

type Line<'a> = (&'a Named<'a>, SleepersCost, StepSlices);

fn table(lines: &[Line<'_>], width: usize) -> String {
    let columns = [
        ("kernel, cell", Side::Left),
        ("wakes/s each", Side::Right),
        ("work lost", Side::Right),
        ("each wake-up", Side::Right),
    ];
    let mut table = Table::new(2, &columns);
    for of_kernel in lines.chunk_by(|(a, ..), (b, ..)| a.kernel == b.kernel) {
        let kernel = of_kernel.first().map(|(named, ..)| cut(&named.kernel, width));
        table.row(kernel);
        for (named, cost, found) in of_kernel {
            table.row([
                format!("  {}", cut(&named.cell.name, width)),
                number::any(found.wakeups_hz, number::bare_rate),
                number::share(cost.work_ppm),
                number::any(cost.each_wakeup_ns, |each| number::count(each.get())),
            ]);
        }
    }
    table.text()
}
