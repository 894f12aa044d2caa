//! Requests to the kernel side by side, as wide as the terminal and in as many blocks as
//! that makes necessary.
//!
//! Where kernels have several cells, a table for each kernel with a line for each cell;
//! else one table with a line for each request, so that kernels stand side by side.

use itertools::Itertools;

use crate::number;
use crate::text::layout::paragraph::WIDTH;
use crate::text::layout::table::{Side, Table, columns, cut};

/// The space before the first column.
const INDENT: usize = 2;
/// The widest name of a line.
const NAME: usize = 36;
/// The widest name above a column.
const HEAD: usize = 22;
/// What marks a number that does not stand for all.
pub(crate) const MARK: char = '*';

/// What one cell found.
#[derive(Debug)]
pub(crate) struct Found {
    /// The label of its kernel.
    pub(crate) kernel: String,
    /// Its name, and the same without what all have in common.
    pub(crate) name: String,
    pub(crate) short: String,
    /// Each request's name, and what it cost.
    pub(crate) costs: Vec<(String, String)>,
}

impl Found {
    fn cost(&self, request: &str) -> String {
        let cost = self.costs.iter().find(|(name, _)| name == request);
        cost.map_or(number::NONE, |(_, cost)| cost).to_owned()
    }
}

/// The tables.
pub(crate) fn call_tables(found: &[Found]) -> String {
    let mut kernels: Vec<(&str, Vec<&Found>)> = Vec::new();
    for cell in found {
        match kernels.iter_mut().find(|(label, _)| *label == cell.kernel) {
            Some((_, cells)) => cells.push(cell),
            None => kernels.push((&cell.kernel, vec![cell])),
        }
    }
    let requests = requests(found);
    if kernels.iter().all(|(_, cells)| cells.len() == 1) {
        return by_request(found, &requests).text();
    }
    let tables = kernels.iter().map(|(label, cells)| by_cell(label, cells, &requests));
    tables.map(|grid| grid.text()).collect::<Vec<_>>().join("\n")
}

/// Every request that any cell made, in the order in which they were first made.
fn requests(found: &[Found]) -> Vec<&str> {
    let costs = found.iter().flat_map(|cell| &cell.costs);
    costs.map(|(name, _)| name.as_str()).unique().collect()
}

/// A line for each request.
fn by_request(found: &[Found], requests: &[&str]) -> Grid {
    let column = |cell: &Found| {
        let head = [cell.kernel.clone(), cut(&cell.name, HEAD)];
        Column::new(head, requests.iter().map(|request| cell.cost(request)).collect())
    };
    Grid {
        corner: [String::new(), "request".to_owned()],
        names: requests.iter().map(|name| (*name).to_owned()).collect(),
        columns: found.iter().map(column).collect(),
    }
}

/// A line for each cell of one kernel; long names of requests take two lines.
fn by_cell(kernel: &str, cells: &[&Found], requests: &[&str]) -> Grid {
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
        names: cells.iter().map(|cell| cut(&cell.short, NAME)).collect(),
        columns: requests.iter().map(column).collect(),
    }
}

/// Named lines, and columns of numbers.
struct Grid {
    corner: [String; 2],
    names: Vec<String>,
    columns: Vec<Column>,
}

/// A head of two lines, and the numbers below it.
struct Column {
    head: [String; 2],
    cells: Vec<String>,
}

impl Column {
    /// Where some numbers are marked, the others are as wide.
    fn new(head: [String; 2], mut cells: Vec<String>) -> Self {
        if cells.iter().any(|cell| cell.ends_with(MARK)) {
            cells.iter_mut().filter(|cell| !cell.ends_with(MARK)).for_each(|cell| {
                cell.push(' ');
            });
        }
        Self { head, cells }
    }

    fn width(&self) -> usize {
        self.head.iter().chain(&self.cells).map(|text| columns(text)).max().unwrap_or(0)
    }
}

impl Grid {
    /// In one block, if it need be with less space between columns; or else in several.
    fn text(&self) -> String {
        let names = self.corner.iter().chain(&self.names);
        let room = WIDTH - INDENT - names.map(|name| columns(name)).max().unwrap_or(0);
        let all = |space| self.columns.iter().map(|c| c.width() + space).sum::<usize>();
        let space = if all(2) > room && all(1) <= room { 1 } else { 2 };
        let blocks = self.blocks(room, space);
        blocks.iter().map(|block| self.table(block, space)).collect::<Vec<_>>().join("\n")
    }

    /// As many columns side by side as there is room for.
    fn blocks(&self, room: usize, space: usize) -> Vec<Vec<&Column>> {
        let mut blocks: Vec<Vec<&Column>> = Vec::new();
        let mut left = 0;
        for column in &self.columns {
            let needs = space + column.width();
            match blocks.last_mut() {
                Some(block) if needs <= left => block.push(column),
                _ => {
                    blocks.push(vec![column]);
                    left = room;
                }
            }
            left = left.saturating_sub(needs);
        }
        blocks
    }

    fn table(&self, block: &[&Column], space: usize) -> String {
        let [above, corner] = &self.corner;
        let mut head = vec![(corner.as_str(), Side::Left)];
        head.extend(block.iter().map(|column| (column.head[1].as_str(), Side::Right)));
        let mut table = Table::new(INDENT, &head).spaced(space);
        let mut line = vec![above.as_str()];
        line.extend(block.iter().map(|column| column.head[0].as_str()));
        table.above(&line);
        for (at, name) in self.names.iter().enumerate() {
            let cells = block.iter().filter_map(|column| column.cells.get(at).cloned());
            table.row(std::iter::once(name.clone()).chain(cells));
        }
        table.text()
    }
}
