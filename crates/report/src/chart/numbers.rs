//! The numbers of a chart as tables: a row for each label, a column for each series.

use itertools::Itertools;

use crate::chart::plot::is_banded;
use crate::document::Document;
use crate::document::chart::{Chart, Mark, Panel, Series, Shape};
use crate::document::table::{Cell, Column, Table};
use crate::document::text::{Text, text};
use crate::number;

/// The most rows of a panel.
const ROWS: usize = 500;

/// The numbers of all marks that have one.
pub(crate) fn numbers(chart: &Chart) -> Document {
    let section = |panel: &Panel| Document::section(panel.title.clone(), table(panel));
    Document::default().add_all(chart.panels.iter().map(section))
}

/// A row for each mark of a single series; of several, one for each label. There is one column of numbers
/// if no two series have a label in common.
fn table(panel: &Panel) -> Table {
    let has_number = |mark: &&Mark| !mark.value.is_empty();
    let is_shown = |one: &&Series| one.marks.iter().any(|mark| has_number(&mark));
    let series: Vec<&Series> = panel.series.iter().filter(is_shown).collect();
    let marks = series.iter().flat_map(|one| &one.marks);
    let mut rows: Vec<&Mark> = marks.filter(has_number).collect();
    let all = rows.len();
    // Frames are in the order of calls.
    if is_banded(&panel.y) && !panel.has(Shape::Frame) {
        rows.sort_by(|a, b| a.y[0].floor().total_cmp(&b.y[0].floor()));
    }
    if series.len() > 1 {
        rows = rows.into_iter().unique_by(|mark| mark.label.to_string()).collect();
    }
    let is_one = rows.len() == all;
    let [x, y] = [&panel.x, &panel.y].map(|axis| axis.title.clone());
    let (first, rest) = if is_banded(&panel.y) { (y, x) } else { (x, y) };
    let names = series.iter().map(|one| one.name.clone()).collect();
    let heads: Vec<Text> = if is_one { vec![rest] } else { names };
    let columns = std::iter::once(Column::name(first, 24..=40));
    let mut table = Table::new(columns.chain(heads.into_iter().map(Column::number)));
    for row in rows.iter().take(ROWS) {
        let of = |one: &&Series| {
            let mut found = one.marks.iter().filter(|mark| mark.label == row.label);
            found.find(has_number).map(|mark| mark.value.clone()).unwrap_or_default()
        };
        let cells = match is_one {
            true => vec![row.value.clone()],
            false => series.iter().map(of).collect(),
        };
        table.row(std::iter::once(row.label.clone()).chain(cells).map(Cell::from));
    }
    match u64::try_from(rows.len().saturating_sub(ROWS)) {
        Ok(more @ 1..) => {
            table.rest(text!("{} more are in the picture only.", number::count(more)))
        }
        _ => table,
    }
}
