//! The report of `try --boot`: two cells, compared, and what they are not.

use recording::Cell;
use summary::CellSummary;

use crate::compared::ComparedCells;
use crate::number;
use crate::text::comparison::cells::compared_cells_text;
use crate::text::layout::paragraph::paragraph;

/// Boot parameters that were tried in guests, for the terminal.
pub fn tried_boot_text(compared: &ComparedCells<'_>) -> String {
    let mut text = compared_cells_text(compared) + "\n";
    if let [base, tried] = compared.cells {
        if let (Some(a), Some(b)) = (ticks(base), ticks(tried)) {
            let [a, b] = [a, b].map(number::count);
            let line = format!("Timer interrupts during the measurement: A {a}, B {b}.");
            text.push_str(&paragraph("", &line));
        }
        let note = format!(
            "Measured in guests of this kernel, not on this machine: the numbers contain neither its \
             devices nor its other programs. To set the parameters here, add them to the kernel \
             command line: {}",
            tried.params
        );
        text.push_str(&paragraph("", &note));
    }
    text
}

/// The number of timer interrupts that a busy loop met.
fn ticks(cell: &Cell) -> Option<u64> {
    if let Some(CellSummary::TickCost(cost)) = CellSummary::of(cell) {
        cost.ticks()
    } else {
        None
    }
}
