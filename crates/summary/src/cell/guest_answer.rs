//! The answer of a guest.

use recording::{Answer, Cell, Ending};

/// The answer of the guest; `None` for a lost cell.
pub fn answer(cell: &Cell) -> Option<&Answer> {
    match &cell.ending {
        Ending::Done(answer) => Some(answer),
        Ending::Lost { .. } => None,
    }
}
