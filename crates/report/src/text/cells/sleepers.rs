//! What sleepers cost the spinners of a cell, by the cell that differs from it in nothing but
//! that it has none.

use recording::Cell;
use stats::{SleepersCost, StepSlices};

use crate::number;
use crate::text::cells::Named;
use crate::text::cells::tables::section;
use crate::text::layout::fit::fitted;
use crate::text::layout::table::{Side, Table, cut};

/// The table of what sleepers cost; none where nothing can be compared.
pub(crate) fn sleepers_table(cells: &[Named<'_>]) -> Option<String> {
    let all: Vec<Cell> = cells.iter().map(|named| named.cell.clone()).collect();
    let cost = |named| {
        let Named { cell, .. }: &Named<'_> = named;
        let found = StepSlices::of_cell(cell)?;
        Some((named, SleepersCost::of_cell(cell, &all)?, found))
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
