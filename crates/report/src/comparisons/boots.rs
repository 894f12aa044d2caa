//! `try --boot`: two cells, compared, and what they are not.

use recording::Cell;
use summary::CellSummary;

use crate::comparisons::cells::{ComparedCells, doubts, without_doubts};
use crate::document::Document;
use crate::document::list::{Item, List};
use crate::document::text::text;
use crate::number;

/// Boot parameters that were tried in guests.
pub fn tried_boot_document(compared: &ComparedCells<'_>) -> Document {
    let mut document = without_doubts(compared);
    if let [base, tried] = compared.cells {
        if let (Some(a), Some(b)) = (ticks(base), ticks(tried)) {
            let [a, b] = [a, b].map(number::count);
            document.paragraph(text!(
                "Timer interrupts during the measurement: A {}, B {}.",
                a,
                b
            ));
        }
        let note = Item::new(
            "Measured in guests of this kernel, not on this machine: the numbers contain neither \
             its devices nor its other programs. To set the parameters here, add them to the \
             kernel command line:",
        );
        document.add(List::lines(vec![note.verbatim(&tried.params)]));
    }
    document.reasons(doubts(compared));
    document
}

/// The number of timer interrupts that a busy loop met.
fn ticks(cell: &Cell) -> Option<u64> {
    if let Some(CellSummary::TickCost(cost)) = CellSummary::of(cell) {
        cost.ticks()
    } else {
        None
    }
}
