//! Tables of requests to the kernel, split into blocks of columns that fit the terminal.
//!
//! If a kernel has several cells, each kernel has a table with a line for each cell. Otherwise
//! there is one table with a line for each request and a column for each kernel.

use std::collections::BTreeSet;

use itertools::Itertools;

use crate::number;
use crate::text::cells::grid::{Column, Grid};
use crate::text::cells::is_unmodified;
use crate::text::cells::lines::Row;
use crate::text::cells::lines::section;
use crate::text::layout::labels::cut_labels;

/// The maximum width of a name at the left.
const NAME: usize = 36;
/// The maximum width of a name above a column.
const HEAD: usize = 22;

/// The calls of a cell with their costs, formatted.
pub(crate) struct CellCalls<'a> {
    pub(crate) row: &'a Row<'a>,
    pub(crate) costs: Vec<(String, String)>,
}

impl CellCalls<'_> {
    fn cost(&self, request: &str) -> String {
        let cost = self.costs.iter().find(|(name, _)| name == request);
        cost.map_or(number::NONE, |(_, cost)| cost).to_owned()
    }

    fn kernel(&self) -> &str {
        &self.row.named.kernel
    }

    fn name(&self) -> &str {
        &self.row.named.cell.name
    }

    /// The name without as many words at its end as all names have in common.
    fn short_name(&self, common: usize) -> String {
        let words: Vec<&str> = self.name().split(' ').collect();
        let name = match words.get(..words.len().saturating_sub(common)) {
            Some([]) | None if is_unmodified(self.row.named.cell) => {
                "(unmodified)".to_owned()
            }
            Some([]) | None => self.name().to_owned(),
            Some(words) => words.join(" "),
        };
        name + &self.row.repeats()
    }
}

/// The tables with their title and explanation; `None` without a call.
pub(crate) fn call_section(
    title: &str,
    cells: &[CellCalls<'_>],
    words: &str,
) -> Option<String> {
    let cells: Vec<_> = cells.iter().filter(|cell| !cell.costs.is_empty()).collect();
    let is_any = !cells.is_empty();
    is_any.then(|| section(title, &call_tables(&cells), words))
}

/// The number of words that all names have in common at their end; 0 for a single name.
fn common_end(cells: &[&CellCalls<'_>]) -> usize {
    let names: BTreeSet<&str> = cells.iter().map(|cell| cell.name()).collect();
    let common = |(a, b): (&str, &str)| {
        a.rsplit(' ').zip(b.rsplit(' ')).take_while(|(a, b)| a == b).count()
    };
    names.into_iter().tuple_windows().map(common).min().unwrap_or(0)
}

fn call_tables(all: &[&CellCalls<'_>]) -> String {
    let costs = all.iter().flat_map(|cell| &cell.costs);
    let requests: Vec<&str> = costs.map(|(name, _)| name.as_str()).unique().collect();
    if all.iter().map(|cell| cell.kernel()).all_unique() {
        return by_request(all, &requests).text();
    }
    let common = common_end(all);
    let kernels = all.iter().map(|cell| cell.kernel()).unique();
    let tables = kernels.map(|kernel| {
        let cells: Vec<&CellCalls<'_>> =
            all.iter().copied().filter(|cell| cell.kernel() == kernel).collect();
        by_cell(kernel, &cells, common, &requests).text()
    });
    tables.collect::<Vec<_>>().join("\n")
}

/// A line for each request.
fn by_request(cells: &[&CellCalls<'_>], requests: &[&str]) -> Grid {
    let names = cells.iter().map(|cell| format!("{}{}", cell.name(), cell.row.repeats()));
    let column = |(cell, name): (&&CellCalls<'_>, String)| {
        let head = [cell.kernel().to_owned(), name];
        Column::new(head, requests.iter().map(|request| cell.cost(request)).collect())
    };
    Grid {
        corner: [String::new(), "request".to_owned()],
        names: requests.iter().map(|name| (*name).to_owned()).collect(),
        columns: cells.iter().zip(cut_labels(names, HEAD)).map(column).collect(),
    }
}

/// A line for each cell of one kernel; long names of requests take two lines.
fn by_cell(
    kernel: &str,
    cells: &[&CellCalls<'_>],
    common: usize,
    requests: &[&str],
) -> Grid {
    let column = |request: &&str| {
        let (above, below) = match request.split_once('_') {
            Some((above, below)) => (format!("{above}_"), below),
            None => (String::new(), *request),
        };
        let costs = cells.iter().map(|cell| cell.cost(request)).collect();
        Column::new([above, below.to_owned()], costs)
    };
    Grid {
        corner: [kernel.to_owned(), "cell".to_owned()],
        names: cut_labels(cells.iter().map(|cell| cell.short_name(common)), NAME),
        columns: requests.iter().map(column).collect(),
    }
}
