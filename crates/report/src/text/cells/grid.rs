//! Tables with a column for each kernel or request, split into blocks that fit the terminal.

use crate::text::layout::table::{Side, Table, columns};
use crate::text::layout::width::width as terminal;

/// The space before the first column.
const INDENT: usize = 2;
/// Marks a number that fewer than 90 % of the repeats have.
pub(crate) const MARK: char = '*';

/// Lines with names, and columns of numbers.
pub(crate) struct Grid {
    pub(crate) corner: [String; 2],
    pub(crate) names: Vec<String>,
    pub(crate) columns: Vec<Column>,
}

/// A heading of two lines, and the numbers below it.
pub(crate) struct Column {
    head: [String; 2],
    cells: Vec<String>,
}

impl Column {
    /// If some numbers are marked, the others are padded by the width of the mark.
    pub(crate) fn new(head: [String; 2], mut cells: Vec<String>) -> Self {
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
    /// In one block if it fits, with less space between columns if necessary.
    pub(crate) fn text(&self) -> String {
        let names = self.corner.iter().chain(&self.names);
        let names = names.map(|name| columns(name)).max().unwrap_or(0);
        let width = terminal().saturating_sub(INDENT + names);
        let all = |space| self.columns.iter().map(|c| c.width() + space).sum::<usize>();
        let space = if all(2) > width && all(1) <= width { 1 } else { 2 };
        let blocks = self.blocks(width, space);
        blocks.iter().map(|block| self.table(block, space)).collect::<Vec<_>>().join("\n")
    }

    /// The columns in blocks that fit the width.
    fn blocks(&self, width: usize, space: usize) -> Vec<Vec<&Column>> {
        let mut blocks: Vec<Vec<&Column>> = Vec::new();
        let mut left = 0;
        for column in &self.columns {
            let needs = space + column.width();
            match blocks.last_mut() {
                Some(block) if needs <= left => block.push(column),
                _ => {
                    blocks.push(vec![column]);
                    left = width;
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
        if line.iter().any(|name| !name.is_empty()) {
            table.above(&line);
        }
        for (at, name) in self.names.iter().enumerate() {
            let cells = block.iter().filter_map(|column| column.cells.get(at).cloned());
            table.row(std::iter::once(name.clone()).chain(cells));
        }
        table.text()
    }
}
