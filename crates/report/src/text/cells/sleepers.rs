//! What sleepers cost the spinners of a cell, by the cell that differs from it in nothing but
//! that it has none.

use recording::Cell;
use stats::{SleepersCost, StepSlices};

use crate::number;
use crate::text::cells::LabelledCell;
use crate::text::cells::lines::section_by_kernel;
use crate::text::layout::table::Side;

/// The table; `None` if no cells can be compared.
pub(crate) fn sleepers_table(cells: &[LabelledCell<'_>]) -> Option<String> {
    let all: Vec<Cell> = cells.iter().map(|named| named.cell.clone()).collect();
    let head = ["wakes/s each", "work lost", "each wake-up"];
    let line = |named: &LabelledCell<'_>| {
        let slices = StepSlices::of_cell(named.cell)?;
        let cost = SleepersCost::of_cell(named.cell, &all)?;
        Some([
            number::any(slices.wakeups_hz, number::bare_rate),
            number::share(cost.work_ppm),
            number::any(cost.each_wakeup_ns, |each| number::count(each.get())),
        ])
    };
    let once = cells.iter().filter(|named| named.cell.repeat <= 1);
    let lines = once.filter_map(|named| Some(named.line(line(named)?)));
    let words = "By the cell that is the same but for the sleepers: how many passes of the \
                 spinners' loops were not made, and how many instructions that is for each time \
                 that a sleeper woke up, the switches there and back included.";
    let (title, head) = (
        "What sleepers cost the spinners, exactly",
        head.map(|word| (word, Side::Right)),
    );
    section_by_kernel(title, head, &lines.collect::<Vec<_>>(), words)
}
