//! `try --boot`: two cells, compared, and what they are not.

use recording::Cell;
use summary::CellSummary;

use crate::comparisons::cells::{
    ComparedCells, compared_cells_document, doubts, without_doubts,
};
use crate::document::Document;
use crate::document::list::{Item, List};
use crate::document::text::text;

const NOTE: &str = "Measured in guests of this kernel, not on this machine: the numbers contain neither \
    its devices nor its other programs. To set the parameters here, add them to the kernel command \
    line:";

/// Boot parameters that were tried in guests.
pub fn tried_boot_document(compared: &ComparedCells<'_>) -> Document {
    let [base, tried] = compared.cells else {
        return compared_cells_document(compared);
    };
    let ticks = ticks(base).zip(ticks(tried)).map(|(a, b)| {
        text!("Timer interrupts during the measurement: A {}, B {}.", a, b)
    });
    without_doubts(compared)
        .add(ticks)
        .add(List::lines([Item::new(NOTE).verbatim(&tried.params)]))
        .reasons(doubts(compared))
}

/// The number of timer interrupts that a busy loop met.
fn ticks(cell: &Cell) -> Option<u64> {
    if let Some(CellSummary::TickCost(cost)) = CellSummary::of(cell) {
        cost.ticks()
    } else {
        None
    }
}
