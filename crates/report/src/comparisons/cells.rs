//! `compare` of cells of the lab.

use recording::{Cell, Doubt, Mode};
use serde::Serialize;
use stats::Unit;
use summary::CellsComparison;

use crate::cells::doubts::{cell_doubts, doubts_by_name};
use crate::comparisons::letter;
use crate::comparisons::sets::{With, numbered};
use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::json::object;
use crate::{metric_names, number};

const LEGEND: &str = "\"tolerance\": by how much a value depends on the phase of the tick, or on rare \
    events; a smaller difference is none of the kernels.";
const VARIED: &str = "Values are means of variations. \"tolerance\": the difference of as many others is \
    within it in 19 of 20 cases. \"none > 3 %\": no difference larger than 3 %.";
const EXACT: &str =
    "The values are exact: the same inputs give the same value on each machine.";
const TIMED: &str = "Values of timed mode vary from run to run, and are single values here: a difference \
    may be chance.";

/// Cells, and how each but the first differs from the first.
#[derive(Debug, Clone, Copy)]
pub struct ComparedCells<'a> {
    /// The cells, the base first.
    pub cells: &'a [Cell],
    /// The comparisons of the other cells with the base.
    pub comparisons: &'a [CellsComparison],
}

/// The comparison.
pub fn compared_cells_document(compared: &ComparedCells<'_>) -> Document {
    without_doubts(compared).reasons(doubts(compared)).titled("noisefloor compare")
}

/// The comparison without the doubts about its cells.
pub(crate) fn without_doubts(compared: &ComparedCells<'_>) -> Document {
    let tables = compared.comparisons.iter().enumerate().map(|(at, comparison)| {
        let name = letter(at + 1);
        let is_varied = compared.cells.iter().any(|cell| !cell.variations.is_empty());
        let legend = match (at, is_varied) {
            (0, true) => VARIED,
            (0, false) => LEGEND,
            _ => "",
        };
        let table = table(&name, comparison).legend(legend);
        Document::default().heading(format!("{name} compared with A")).add(table)
    });
    let metrics = compared.comparisons.iter().flat_map(|one| &one.metrics);
    let keys = metrics.map(|one| one.metric.as_str());
    let document = Document::from(inputs(compared.cells)).add_all(tables);
    let document = match compared.cells.iter().all(|cell| cell.mode == Mode::Exact) {
        true => document.add_full(EXACT),
        false => document.add(TIMED),
    };
    document.add_full(metric_names::glossary(keys))
}

/// The doubts about the cells.
pub(crate) fn doubts(compared: &ComparedCells<'_>) -> impl Iterator<Item = Text> {
    let named = compared.cells.iter().enumerate();
    let named: Vec<(&Cell, String)> =
        named.map(|(at, cell)| (cell, letter(at))).collect();
    doubts_by_name(&named).into_iter().map(Text::from)
}

/// What the cells depend on.
fn inputs(cells: &[Cell]) -> Table {
    let inputs = |(at, cell): (usize, &Cell)| {
        let [name, kernel, machine] =
            [&cell.name, &cell.kernel, &cell.machine].map(Text::name);
        let more = [&cell.settings, &cell.services].map(|words| words.join(", "));
        let more = [cell.params.clone()].into_iter().chain(more);
        let more = more.filter(|more| !more.is_empty()).map(Text::command);
        let inputs = text!("{} on {} ({})", name, kernel, machine);
        [letter(at).into(), Text::join([inputs].into_iter().chain(more), "; ")]
    };
    Table::terms(cells.iter().enumerate().map(inputs))
}

fn table(other: &str, comparison: &CellsComparison) -> Table {
    Table::of(&comparison.metrics)
        .column(Column::name("metric", 10..=34), |one| metric_names::cell(&one.metric))
        .numbers(["A", other], |one| {
            one.values
                .map(|value| number::any(value.map(|value| exact(&one.metric, value))))
        })
        .number("difference", |one| number::any(one.difference.map(number::difference)))
        .number("", |one| match one.none_above_ppm {
            Some(most) => text!("none > {}", number::share(most)),
            None => number::any(one.difference_ppm.map(number::change)),
        })
        .number("tolerance", |one| {
            number::any(Some(one.tolerance).filter(|it| *it > 0.0).map(number::metric))
        })
        .table
}

/// All digits of a metric's value, with its unit.
fn exact(metric: &str, value: f64) -> Text {
    let unit = match summary::definition(metric).map(|about| about.unit) {
        Some(Unit::Ns) => " ns",
        Some(Unit::Ppm) => " ppm",
        Some(Unit::Hz) => "/s",
        Some(Unit::Instructions | Unit::Count) | None => "",
    };
    text!("{}{}", number::metric(value), unit)
}

#[derive(Serialize)]
struct CellsJson<'a> {
    cells: Vec<CellJson<'a>>,
    comparisons: Vec<With<'a, CellsComparison>>,
}

/// What identifies a cell, and nothing that depends on where it was run: the same comparison is the same
/// text.
#[derive(Serialize)]
struct CellJson<'a> {
    name: &'a str,
    kernel: &'a str,
    params: &'a str,
    identity: &'a str,
    doubts: Vec<Doubt>,
}

impl<'a> CellJson<'a> {
    fn of(cell: &'a Cell) -> Self {
        let Cell { name, kernel, params, identity, .. } = cell;
        Self { name, kernel, params, identity, doubts: cell_doubts(cell) }
    }
}

/// The comparison as one JSON object.
///
/// # Errors
/// None that is known: all fields can be written.
pub fn compared_cells_json(compared: &ComparedCells<'_>) -> serde_json::Result<String> {
    let cells = compared.cells.iter().map(CellJson::of);
    let comparisons = numbered(compared.comparisons);
    object("comparison", CellsJson { cells: cells.collect(), comparisons })
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::example::cell::{self, NEW, OLD};
    use crate::example::cells::timed_cells;
    use crate::terminal::full_text;

    fn report(cells: &[Cell]) -> String {
        let other = |other| CellsComparison::of(&cells[0], other);
        let comparisons: Vec<CellsComparison> = cells[1..].iter().map(other).collect();
        full_text(&compared_cells_document(&ComparedCells {
            cells,
            comparisons: &comparisons,
        }))
    }

    /// Check the report of exact cells, and that values of timed ones have units, and a caveat.
    #[test]
    fn kernels() {
        let ticks = [&[(2336, 112), (2428, 8)][..], &[(2428, 100), (2520, 20)]];
        let cells = [(OLD, 2584), (NEW, 2676)].into_iter().zip(ticks);
        let cells: Vec<Cell> = cells
            .map(|((kernel, gap), ticks)| {
                cell::cell("other", kernel, cell::tick_cost(&[gap], ticks))
            })
            .collect();
        assert_snapshot!(report(&cells));
        let timed = report(&timed_cells());
        assert!(timed.contains("Values of timed mode vary"), "{timed}");
    }
}
