//! Tables of quantities: metrics, of CPUs or not, or sources of noise.

use summary::Quantity;

use crate::document::Document;
use crate::document::table::{Cell, Column, Table, cells};
use crate::document::text::Text;
use crate::measurements::noise::culprits::kind_word;
use crate::{metric_names, number};

/// The number of listed sources of noise.
pub(crate) const CULPRITS: usize = 8;

/// A table of quantities of one type with these columns and cells. Metrics are in the order of their
/// first rows, each with all of its CPUs.
pub(crate) fn table<'a, const N: usize>(
    columns: [Column; N],
    rows: impl Iterator<Item = (&'a Quantity, [Text; N])>,
) -> Table {
    let mut rows: Vec<(&Quantity, [Text; N])> = rows.collect();
    let metrics: Vec<&str> = rows.iter().filter_map(|(of, _)| of.metric()).collect();
    rows.sort_by_key(|(of, _)| metrics.iter().position(|one| Some(*one) == of.metric()));
    let has_cpus = rows.iter().any(|(of, _)| of.cpu().is_some());
    let metric = if has_cpus { Column::group } else { Column::name };
    let mut first = match metrics.is_empty() {
        true => vec![Column::name("source", 8..=28), Column::words("")],
        false => vec![metric("metric", 10..=34)],
    };
    first.extend(has_cpus.then(|| Column::number("CPU")));
    let mut table = Table::new(first.into_iter().chain(columns));
    for (of, cells) in rows {
        let mut row = match of {
            Quantity::Metric { metric, .. } => vec![metric_names::cell(metric)],
            Quantity::Culprit { kind, name } => {
                cells![Text::name(name), kind_word(*kind)].to_vec()
            }
        };
        row.extend(has_cpus.then(|| number::any(of.cpu().map(Text::from)).into()));
        table.row(row.into_iter().chain(cells.map(Cell::from)));
    }
    table
}

/// The section of a table of sources of noise, of all of which so many are left out.
pub(crate) fn culprits(table: Table, left_out: usize) -> Document {
    let table = table.rest(number::more(left_out, "more"));
    Document::section("Time lost to each source of noise", table)
}
