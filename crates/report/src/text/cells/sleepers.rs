//! The cost of sleepers for the spinners of a cell, compared with the same cell without
//! sleepers.

use recording::Cell;
use summary::{SleepersCost, StepSlices};

use crate::number;
use crate::text::cells::LabelledCell;
use crate::text::cells::lines::section_by_kernel;
use crate::text::layout::table::Side;

/// The table; `None` if no cells can be compared.
pub(crate) fn sleepers_table(cells: &[LabelledCell<'_>]) -> Option<String> {
    let all: Vec<Cell> = cells.iter().map(|named| named.cell.clone()).collect();
    let head = ["wake-ups/s each", "work lost", "each wake-up"];
    let head = head.map(|word| (word, Side::Right));
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
    let words = "Compared with the same cell without sleepers. \"work lost\": share of the passes \
                 of the spinners' loops that were not made; \"each wake-up\": the same in \
                 instructions for each wake-up of a sleeper, both switches included.";
    section_by_kernel(
        "Cost of sleepers for the spinners",
        head,
        &lines.collect::<Vec<_>>(),
        words,
    )
}
