//! The metrics of cells for a document: a table for each name of a cell, with a row for each
//! kernel and a column for each metric, named as in limits.
//!
//! Repeats are omitted; if their results differ, the cell has a doubt.

use itertools::Itertools;
use recording::{Cell, Ending};
use summary::{Metric, metrics_of};

use crate::cells::labelled::Cells;
use crate::cells::table::{table, value};
use crate::cells::{end, idle_by_hz, trim};
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::document::{Content, Document};
use crate::number;

/// The metrics of an experiment.
pub fn cell_metrics_document(cells: &Cells<'_>) -> Document {
    let all: Vec<&Cell> = cells.cells.iter().filter(|cell| cell.repeat == 1).collect();
    let name = |cell: &&'_ Cell| format!("{} on {}", cell.name, cell.asked);
    let names: Vec<_> = all.iter().map(|cell| (*cell, name(cell))).collect();
    let of_name = |name: &String| {
        let same = all.iter().copied().filter(|cell| cell.name == *name);
        let same: Vec<&Cell> = same.collect();
        Document::default()
            .heading(Text::name(name))
            .add(same.first().map(|cell| about(cell)))
            .add(metrics(&same))
    };
    Document::from(Content::Title(Text::from(cells.experiment)))
        .add(cells.about)
        .add(kernels(&all))
        .add_all(all.iter().map(|cell| &cell.name).unique().map(of_name))
        .add(idle_by_hz::tables(cells))
        .add(trim::sections(cells))
        .add(end(cells, &names, false))
}

/// The image of each kernel.
fn kernels(cells: &[&Cell]) -> Table {
    let found = cells.iter().filter(|cell| !cell.identity.is_empty());
    let mut table = Table::new(["kernel", "image"].map(Column::words));
    for image in found.map(|cell| [&cell.asked, &cell.kernel]).unique() {
        table.row(image.map(Text::name));
    }
    table
}

/// The metrics of the cells of one name; without a row if all are lost.
fn metrics(cells: &[&Cell]) -> Table {
    let numbers = |cell: &Cell| {
        let metrics = metrics_of(cell).into_iter();
        metrics.map(|metric| value(&metric.key, with_tolerance(&metric))).collect()
    };
    let lines =
        cells.iter().map(|cell| (vec![Text::name(&cell.asked).into()], numbers(cell)));
    let mut table = table([Column::words("kernel")], lines.collect());
    let rows = cells.iter().zip(&mut table.rows);
    for (_, row) in rows.filter(|(cell, _)| matches!(cell.ending, Ending::Lost { .. })) {
        row.iter_mut().skip(1).for_each(|cell| *cell = "lost".into());
    }
    table
}

/// The value of a metric; a mean of variations with its ±.
fn with_tolerance(metric: &Metric) -> Text {
    match metric.varied {
        None => number::metric(metric.value),
        Some(varied) => {
            let value = number::metric(metric.value);
            text!("{} ± {}", value, number::any(varied.within_ppm().map(number::share)))
        }
    }
}

/// Workload, machine, boot parameters, settings and services of a cell.
fn about(cell: &Cell) -> Text {
    let more = std::iter::once(&cell.params).chain(&cell.settings).chain(&cell.services);
    let more = more.filter(|more| !more.is_empty()).map(Text::command);
    let words = [cell.workload.as_str(), &cell.machine].map(Text::from);
    Text::join(words.into_iter().chain(more), "; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::cell::{NEW, OLD, cell, lost, tick_cost};
    use crate::example::cells::page;
    use crate::markdown::markdown_text;
    use insta::assert_snapshot;

    /// Check that the cells of one name are a table with a row for each kernel, that a lost
    /// one is marked there and explained, and that a kernel without an image is not listed
    /// as one.
    #[test]
    fn metrics_by_kernel() {
        let tick = || tick_cost(&[2584, 2584, 10_911], &[(2571, 248), (10_898, 1)]);
        let requested =
            |asked: &str, cell: Cell| Cell { asked: asked.to_owned(), ..cell };
        let missing = cell("fifo", "debian:9.9", lost());
        let cells = [
            requested("debian:6.1-cloud", cell("other", OLD, tick())),
            requested("debian:6.1-cloud", cell("fifo", OLD, tick())),
            requested("debian:6.12-cloud", cell("fifo", NEW, tick())),
            requested("debian:9.9", Cell { identity: String::new(), ..missing }),
        ];
        let about = "what a tick costs";
        assert_snapshot!(markdown_text(&cell_metrics_document(&Cells {
            about,
            ..page("atlas", &cells)
        })));
    }
}
