//! How much the numbers of cells depend on inputs that should not matter.

use stats::{VariedMean, relative};
use summary::{CellVariation, definition};
use units::Ppm;

use crate::cells::labelled::LabelledCell;
use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::{metric_names, number};

/// The ± for which the number of variations is computed, and how it is requested.
const WANTED: Ppm = Ppm::new(10_000.0);
const REQUEST: &str = "--set variations=1%";
const LEGEND: &str = "\"±\": the mean of as many other variations is within it in 19 of 20 cases. \"for 1 %\": \
    the number of variations that a ± of 1 % needs.";

/// The metric of a cell, and its variations.
struct Varied<'a> {
    named: &'a LabelledCell<'a>,
    key: String,
    mean: VariedMean,
}

/// The variations of all cells that have several; with `--full` those of each metric.
pub(crate) fn variations(cells: &[LabelledCell<'_>]) -> Document {
    let found = cells.iter().map(|named| (named, CellVariation::of(named.cell)));
    let found: Vec<(&LabelledCell<'_>, CellVariation)> =
        found.filter_map(|(named, varied)| Some((named, varied?))).collect();
    let rows: Vec<Varied<'_>> = found
        .iter()
        .flat_map(|(named, varied)| {
            let of = |(key, mean): (&String, &VariedMean)| (key.clone(), *mean);
            varied.metrics.iter().map(of).map(|(key, mean)| Varied { named, key, mean })
        })
        .collect();
    let table = Table::of(&rows)
        .column(Column::group("cell", 22..=60), |row| Text::name(row.named.full()))
        .column(Column::name("metric", 10..=34), |row| metric_names::cell(&row.key))
        .number("runs", |row| number::count(row.mean.variations as u64))
        .number("mean", |row| value(&row.key, row.mean.mean))
        .number("±", |row| number::any(share(&row.mean).map(number::share)))
        .number("for 1 %", |row| needed(&row.mean))
        .table
        .legend(LEGEND);
    let table = Document::default().heading("Variations").add_full(table);
    let table = if found.is_empty() { Document::default() } else { table };
    Document::default().add(more(&found)).add(table)
}

/// The cell that needs most variations, if one has too few.
fn more(found: &[(&LabelledCell<'_>, CellVariation)]) -> Option<Text> {
    let needed = found.iter().filter_map(|(named, varied)| {
        let needed = varied.needed(WANTED)?;
        (needed as usize > varied.variations).then_some((needed, named))
    });
    let (needed, named) = needed.max_by_key(|(needed, _)| *needed)?;
    let name = Text::name(named.full());
    let request = Text::command(REQUEST);
    let needed = number::count(u64::from(needed));
    Some(text!("For a ± of 1 %, {} needs {} variations: {}", name, needed, request))
}

/// The ± as a share of the mean.
fn share(mean: &VariedMean) -> Option<Ppm> {
    relative(mean.mean + mean.within, mean.mean)
}

fn needed(mean: &VariedMean) -> Text {
    let needed = mean.needed(mean.mean.abs() * WANTED.get() / 1e6);
    needed.map_or("> 1000".into(), |needed| number::count(needed as u64))
}

fn value(key: &str, value: f64) -> Text {
    let unit = definition(key).map(|about| about.unit);
    unit.map_or_else(
        || number::metric(value),
        |unit| number::in_unit(value.round(), unit),
    )
}
