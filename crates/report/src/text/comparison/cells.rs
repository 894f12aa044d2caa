//! The report of `compare` for cells of the lab.

use recording::{Cell, Mode};
use summary::{CellDifference, CellsComparison};

use crate::cell_doubts::doubts_by_name;
use crate::compared::ComparedCells;
use crate::number;
use crate::text::comparison::letter;
use crate::text::layout::doubts::section;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};

/// The comparison for the terminal.
pub fn compared_cells_text(compared: &ComparedCells<'_>) -> String {
    let mut text: String =
        compared.cells.iter().enumerate().map(|(at, cell)| inputs(at, cell)).collect();
    for (other, comparison) in compared.comparisons.iter().enumerate() {
        text.push_str(&format!("\n{} compared with A\n\n", letter(other + 1)));
        text.push_str(&table(&letter(other + 1), comparison));
    }
    text.push('\n');
    text.push_str(&paragraph("", legend(compared.cells)));
    let named: Vec<(&Cell, String)> =
        compared.cells.iter().enumerate().map(|(at, cell)| (cell, letter(at))).collect();
    text + &section(doubts_by_name(&named).into_iter())
}

/// What a cell depends on.
fn inputs(at: usize, cell: &Cell) -> String {
    let and = |text: &str| match text.is_empty() {
        true => String::new(),
        false => format!("; {text}"),
    };
    let text = format!(
        "{} on {} ({}){}{}",
        cell.name,
        cell.kernel,
        cell.machine,
        and(&cell.params),
        and(&cell.settings.join(", "))
    );
    paragraph(&format!(" {}  ", letter(at)), &text)
}

fn legend(cells: &[Cell]) -> &'static str {
    match cells.iter().all(|cell| cell.mode == Mode::Exact) {
        true => {
            "The values are exact: the same inputs give the same value on each machine. \
             \"tolerance\": by how much a value depends on the phase of the tick, or on rare events; a \
             smaller difference is none of the kernels."
        }
        false => {
            "Values of timed mode vary from run to run, and are single values here: a difference \
             may be chance."
        }
    }
}

fn table(other: &str, comparison: &CellsComparison) -> String {
    let heads = [
        ("metric", Side::Left),
        ("A", Side::Right),
        (other, Side::Right),
        ("difference", Side::Right),
        ("", Side::Right),
        ("tolerance", Side::Right),
    ];
    let mut table = Table::new(1, &heads);
    for CellDifference {
        metric, values, difference, difference_ppm, tolerance, ..
    } in &comparison.metrics
    {
        let [base, other] = values.map(|value| number::any(value, number::metric));
        table.row([
            metric.clone(),
            base,
            other,
            number::any(*difference, number::difference),
            number::any(*difference_ppm, number::change),
            number::any(Some(*tolerance).filter(|it| *it > 0.0), number::metric),
        ]);
    }
    table.text()
}
