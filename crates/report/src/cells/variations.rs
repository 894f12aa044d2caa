//! How much the numbers of cells depend on inputs that should not matter.

use recording::Body;
use stats::VariedMean;
use summary::{CellVariation, answer, definition};
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

/// A cell, and its variations.
type VariedCell<'a> = (&'a LabelledCell<'a>, CellVariation);

/// The variations of all cells that have several. The tables of programs have those of the main metrics,
/// which are shown of other cells; with `--full` those of all.
pub(crate) fn variations<'a>(cells: &'a [LabelledCell<'a>]) -> Document {
    let found = cells.iter().map(|named| (named, CellVariation::of(named.cell)));
    let found: Vec<VariedCell<'_>> =
        found.filter_map(|(named, varied)| Some((named, varied?))).collect();
    let [main, all] = [false, true].map(|is_full| table(&found, is_full));
    let titled = |table: Table| Document::section("Variations", table.legend(LEGEND));
    Document::default().add(more(&found)).add_or(titled(all), titled(main))
}

/// The metrics of cells: all, or the main ones that other tables do not have, and that vary.
fn table(cells: &[VariedCell<'_>], is_full: bool) -> Table {
    let rows: Vec<Varied<'_>> = cells
        .iter()
        .flat_map(|(named, varied)| {
            let is_program = matches!(answer(named.cell), Some(answer)
                if matches!(answer.recording.body, Body::Program { .. }));
            let is_shown = move |(key, mean): &(&String, &VariedMean)| {
                is_full || !is_program && mean.stddev > 0.0 && varied.main.contains(key)
            };
            let of = |(key, mean): (&String, &VariedMean)| (key.clone(), *mean);
            let shown = varied.metrics.iter().filter(is_shown).map(of);
            shown.map(|(key, mean)| Varied { named, key, mean })
        })
        .collect();
    Table::of(&rows)
        .column(Column::group("cell", 22..=60), |row| Text::name(row.named.full()))
        .column(Column::name("metric", 10..=34), |row| metric_names::cell(&row.key))
        .number("runs", |row| number::count(row.mean.variations as u64))
        .number("mean", |row| value(&row.key, row.mean.mean))
        .number("±", |row| number::any(row.mean.within_ppm().map(number::share)))
        .number("for 1 %", |row| needed(&row.mean))
        .table
}

/// The cell that needs most variations, if one has too few.
fn more(found: &[VariedCell<'_>]) -> Option<Text> {
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

fn needed(mean: &VariedMean) -> Text {
    mean.needed_for(WANTED).map_or("> 1000".into(), |needed| number::count(needed as u64))
}

fn value(key: &str, value: f64) -> Text {
    let unit = definition(key).map(|about| about.unit);
    unit.map_or_else(
        || number::metric(value),
        |unit| number::in_unit(value.round(), unit),
    )
}
