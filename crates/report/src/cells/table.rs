//! Tables of cells: a row for each cell or equal repeats of one, with its kernel and name.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use itertools::Itertools;
use recording::Mode;
use stats::VariedMean;
use summary::{CellSummary, Metric, metrics_of};

use crate::cells::labelled::{LabelledCell, is_unmodified};
use crate::document::Document;
use crate::document::table::{Cell, Column, Table};
use crate::document::text::Text;
use crate::number;

/// The least and the most columns for the name of a kernel; labels are not longer than the least.
const KERNEL: RangeInclusive<usize> = 22..=36;
/// The same for the name of a cell.
const CELL: RangeInclusive<usize> = 16..=36;

/// A cell, or equal repeats of one, with its summary.
pub(crate) struct Row<'a> {
    /// The cell; of several repeats the first.
    pub(crate) named: &'a LabelledCell<'a>,
    /// The number of equal repeats.
    pub(crate) times: u64,
    pub(crate) summary: CellSummary,
    /// Its metrics, with their variations.
    pub(crate) metrics: Vec<Metric>,
}

impl Row<'_> {
    /// The repeats of the cell that the row is for: ` ×20`, ` #3`; empty for the only one.
    pub(crate) fn repeats(&self) -> String {
        match (self.times, self.named.cell.repeat) {
            (1, 0 | 1) => String::new(),
            (1, repeat) => format!(" #{repeat}"),
            (times, _) => format!(" ×{times}"),
        }
    }

    /// The variations of a metric, if the cell has several.
    pub(crate) fn varied(&self, key: &str) -> Option<VariedMean> {
        self.metrics.iter().find(|metric| metric.key == key)?.varied
    }

    /// The kernel, and the cell's name without as many words at its end as all have in common.
    fn names(&self, common: usize) -> Vec<Cell> {
        let name = &self.named.cell.name;
        let words: Vec<&str> = name.split(' ').collect();
        let name = match words.get(..words.len().saturating_sub(common)) {
            Some(words @ [_, ..]) => words.join(" "),
            _ if is_unmodified(self.named.cell) => "(unmodified)".to_owned(),
            _ => name.clone(),
        };
        let name = Cell::from(Text::name(name)).tail(self.repeats());
        vec![Text::name(&self.named.kernel).into(), name]
    }
}

/// The rows of the tables: equal repeats of an exact cell are one.
pub(crate) fn rows<'a>(cells: &'a [LabelledCell<'a>]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for named in cells {
        let Some(summary) = CellSummary::of(named.cell) else { continue };
        let is_same = |row: &&mut Row<'_>| {
            let [a, b] = [named.cell, row.named.cell];
            (&a.name, &a.kernel, &a.identity) == (&b.name, &b.kernel, &b.identity)
                && [a.mode, b.mode] == [Mode::Exact; 2]
                && row.summary == summary
        };
        match rows.iter_mut().find(is_same) {
            Some(row) => row.times += 1,
            None => {
                let metrics = metrics_of(named.cell);
                rows.push(Row { named, times: 1, summary, metrics });
            }
        }
    }
    rows
}

/// A line of a table: each cell with its column.
pub(crate) type Line = Vec<(Column, Cell)>;

/// A number below its heading.
pub(crate) fn value(head: &str, value: impl Into<Cell>) -> (Column, Cell) {
    (Column::number(head), value.into())
}

/// Words below their heading.
pub(crate) fn words(head: &str, words: impl Into<Cell>) -> (Column, Cell) {
    (Column::words(head), words.into())
}

/// Leaves the first `most` lines, and one with the number of the others in column `at`.
pub(crate) fn cut(lines: &mut Vec<Line>, most: usize, at: usize) {
    let more = lines.len().saturating_sub(most);
    lines.truncate(if more > 0 { most + 1 } else { most });
    for (place, (_, cell)) in lines.iter_mut().skip(most).flatten().enumerate() {
        *cell = match place == at {
            true => format!("{more} more, in --json").into(),
            false => Cell::default(),
        };
    }
}

/// A table of lines with names at the left, and a column for each heading of a line; no row without
/// one.
pub(crate) fn table(
    names: impl IntoIterator<Item = Column>,
    lines: Vec<(Vec<Cell>, Line)>,
) -> Table {
    let mut columns: Vec<Column> = Vec::new();
    for (column, _) in lines.iter().flat_map(|(_, line)| line) {
        if !columns.contains(column) {
            columns.push(column.clone());
        }
    }
    let mut table = Table::new(names.into_iter().chain(columns.clone()));
    for (names, line) in lines.into_iter().filter(|_| !columns.is_empty()) {
        let cell = |column: &Column| {
            let found = line.iter().find(|(own, _)| own == column);
            found.map_or_else(|| number::NONE.into(), |(_, cell)| cell.clone())
        };
        table.row(names.into_iter().chain(columns.iter().map(cell)));
    }
    table
}

/// A table of the lines of each row; words that all names have in common at their end are left out if
/// `is_short`.
pub(crate) fn table_of<'a>(
    rows: &'a [Row<'a>],
    is_short: bool,
    lines: impl Fn(&'a Row<'a>) -> Vec<Line>,
) -> Table {
    let rows = rows.iter().map(|row| (row, lines(row)));
    let rows: Vec<(&Row<'_>, Vec<Line>)> =
        rows.filter(|(_, lines)| !lines.is_empty()).collect();
    let common = match is_short {
        true => common_end(rows.iter().map(|(row, _)| row.named.cell.name.as_str())),
        false => 0,
    };
    let lines = rows.into_iter().flat_map(|(row, lines)| {
        lines.into_iter().map(move |line| (row.names(common), line))
    });
    let names = [Column::group("kernel", KERNEL), Column::name("cell", CELL)];
    table(names, lines.collect())
}

/// The number of words that all names have in common at their end; 0 for a single name.
fn common_end<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    let names: BTreeSet<&str> = names.collect();
    let common = |(a, b): (&str, &str)| {
        a.rsplit(' ').zip(b.rsplit(' ')).take_while(|(a, b)| a == b).count()
    };
    names.into_iter().tuple_windows().map(common).min().unwrap_or(0)
}

/// A table with its title, and more about it with `--full`; nothing without a row.
pub(crate) fn section(
    title: impl Into<Text>,
    table: Table,
    more: impl Into<Text>,
) -> Document {
    match table.is_empty() {
        true => Document::default(),
        false => Document::section(title, table).add_full(more.into()),
    }
}

/// A count, abbreviated if the table does not fit.
pub(crate) fn count(count: u64) -> Cell {
    Cell::or(count, number::short_count(count))
}

/// The same for a mean.
pub(crate) fn rounded(value: f64) -> Cell {
    let whole = number::rounded(value, number::count);
    Cell::or(whole, number::rounded(value, number::short_count))
}

/// A cell of a value, or `-` if there is none.
pub(crate) fn any<T>(value: Option<T>, print: impl Fn(T) -> Cell) -> Cell {
    value.map_or_else(|| number::NONE.into(), print)
}

/// The same, or `?` if it is unknown.
pub(crate) fn known<T>(value: Option<T>, print: impl Fn(T) -> Cell) -> Cell {
    value.map_or_else(|| number::UNKNOWN.into(), print)
}

/// The column of a request to the kernel; a long name takes two lines.
pub(crate) fn call_column(name: &str) -> Column {
    match name.split_once('_') {
        Some((above, name)) => Column::number(name).above(format!("{above}_")),
        None => Column::number(name),
    }
}
