//! The numbers of a chart as tables: a row for each label, a column for each series.

use itertools::Itertools;

use crate::chart::plot::is_banded;
use crate::document::Document;
use crate::document::chart::{Chart, Mark, Panel, Series};
use crate::document::table::{Cell, Column, Table};
use crate::document::text::{Text, text};
use crate::number;

/// The most rows of a panel.
const ROWS: usize = 500;

/// The numbers of all marks that have one.
pub(crate) fn numbers(chart: &Chart) -> Document {
    let section =
        |panel: &Panel| Some(Document::section(panel.title.clone(), table(panel)?));
    Document::default().add_all(chart.panels.iter().filter_map(section))
}

/// Each label once, with a number for each series; with one column if no two series have a label in
/// common.
fn table(panel: &Panel) -> Option<Table> {
    let with_number = |series: &'_ Series| -> Vec<Mark> {
        series.marks.iter().filter(|mark| !mark.value.is_empty()).cloned().collect()
    };
    let series: Vec<(&Series, Vec<Mark>)> =
        panel.series.iter().map(|one| (one, with_number(one))).collect();
    let series: Vec<&(&Series, Vec<Mark>)> =
        series.iter().filter(|(_, marks)| !marks.is_empty()).collect();
    let mut all: Vec<&Mark> = series.iter().flat_map(|(_, marks)| marks).collect();
    let is_single = series.len() == 1;
    if is_banded(&panel.y) && !is_single {
        all.sort_by(|a, b| a.y[0].floor().total_cmp(&b.y[0].floor()));
    }
    let labels: Vec<&Mark> = match is_single {
        true => all.clone(),
        false => all.iter().copied().unique_by(|mark| mark.label.to_string()).collect(),
    };
    let [x, y] = [&panel.x, &panel.y].map(|axis| axis.title.clone());
    let (first, rest) = if is_banded(&panel.y) { (y, x) } else { (x, y) };
    let is_one = labels.len() == all.len();
    let heads: Vec<Text> = match is_one {
        true => vec![rest],
        false => series.iter().map(|(one, _)| one.name.clone()).collect(),
    };
    let numbers = heads.into_iter().map(Column::number);
    let first = Column::name(first, 24..=40);
    let mut table = Table::new(std::iter::once(first).chain(numbers));
    for row in labels.iter().take(ROWS) {
        let of = |marks: &Vec<Mark>| {
            let found = marks.iter().find(|mark| mark.label == row.label);
            Cell::from(found.map(|mark| mark.value.clone()).unwrap_or_default())
        };
        let cells = match is_one {
            true => vec![row.value.clone().into()],
            false => series.iter().map(|(_, marks)| of(marks)).collect(),
        };
        table.row(std::iter::once(Cell::from(row.label.clone())).chain(cells));
    }
    if labels.len() > ROWS {
        let more = u64::try_from(labels.len() - ROWS).unwrap_or(u64::MAX);
        let more = text!("{} more are in the picture only.", number::count(more));
        table = table.rest(more);
    }
    (!labels.is_empty()).then_some(table)
}
