//! The variations of cells: further runs in which inputs differ that should not matter
//! (`Request::varied`). Those that are run first show how much the numbers depend on them, and
//! whether more are needed (`experiments::Variations`).

use std::ops::RangeInclusive;

use experiments::CellPlan;
use recording::{Cell, Code, Doubt, Ending, Variation};

use crate::cells::lab::Lab;
use crate::cells::prepare::Prepared;
use crate::error::Error;
use crate::guest::request::FIRST;

/// A variation to be run: the index of its cell among all, and what is run.
pub(crate) type Planned = (usize, Prepared);

/// The numbers of the variations of a cell that are run first. A repeat of a cell has no others.
fn first(plan: &CellPlan) -> u32 {
    if plan.repeat > 1 { FIRST } else { plan.variations.first() }
}

/// The variations of each cell that are run first.
pub(crate) fn of_all(prepared: &[Prepared], lab: &Lab) -> Result<Vec<Planned>, Error> {
    let numbers = |cell: &Prepared| FIRST..=first(&cell.plan);
    planned(prepared.iter().enumerate().map(|(at, cell)| (at, cell, numbers(cell))), lab)
}

/// The further variations of each cell that has numbers from the first ones.
pub(crate) fn further(
    prepared: &[Prepared],
    cells: &[Option<Cell>],
    lab: &Lab,
) -> Result<Vec<Planned>, Error> {
    let needed =
        prepared.iter().zip(cells).enumerate().filter_map(|(at, (own, cell))| {
            let is_done = |cell: &&Cell| matches!(cell.ending, Ending::Done(_));
            let cell = cell.as_ref().filter(is_done).filter(|cell| cell.repeat == 1)?;
            Some((at, own, first(&own.plan) + 1..=own.plan.variations.all(cell)))
        });
    planned(needed, lab)
}

/// A cell, its index among all, and the numbers of variations of it.
type Numbered<'a> = (usize, &'a Prepared, RangeInclusive<u32>);

fn planned<'a>(
    cells: impl Iterator<Item = Numbered<'a>>,
    lab: &Lab,
) -> Result<Vec<Planned>, Error> {
    let each = |(at, cell, numbers): Numbered<'a>| {
        numbers.map(move |number| Ok((at, cell.varied(number, lab)?)))
    };
    cells.flat_map(each).collect()
}

/// Adds a variation of a cell to the others of it, which were run before it.
pub(crate) fn add(cell: &mut Option<Cell>, number: u32, run: Cell) {
    let Some(cell) = cell else {
        *cell = Some(run);
        return;
    };
    let varied = |number, run: Cell| Variation {
        number,
        identity: run.identity,
        cached: run.cached,
        ending: run.ending,
    };
    match (&cell.ending, &run.ending) {
        (Ending::Lost { .. }, Ending::Done(_)) => {
            let variations = std::mem::take(&mut cell.variations);
            let before = std::mem::replace(cell, Cell { variations, ..run });
            cell.variations.insert(0, varied(FIRST, before));
        }
        _ => cell.variations.push(varied(number, run)),
    }
}

/// Adds a doubt for each variation that was lost, and those that only further variations have.
pub(crate) fn doubt(cell: &mut Cell) {
    let Ending::Done(answer) = &mut cell.ending else { return };
    let all = cell.variations.len() + 1;
    for variation in &cell.variations {
        match &variation.ending {
            Ending::Lost { why, .. } => {
                let text =
                    format!("variation {} of {all} was lost: {why}", variation.number);
                answer.recording.doubts.push(Doubt::new(Code::VariationLost, text));
            }
            Ending::Done(other) => {
                let new = other.recording.doubts.iter();
                let own = &mut answer.recording.doubts;
                let new: Vec<Doubt> =
                    new.filter(|one| !own.contains(one)).cloned().collect();
                own.extend(new);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::progress::lost_cell;

    fn numbers(cell: &Cell) -> Vec<u32> {
        cell.variations.iter().map(|variation| variation.number).collect()
    }

    /// Check that the runs of a cell are its variations, in their order.
    #[test]
    fn of_one_cell() {
        let mut cell = None;
        for number in 1..=3 {
            add(&mut cell, number, lost_cell());
        }
        assert_eq!(numbers(cell.as_ref().unwrap()), [2, 3]);
    }
}
