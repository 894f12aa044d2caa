//! Tables of plain text: columns as wide as their widest cell, with spaces between them.

use crate::text::layout::width::{is_narrow, width as terminal};

/// The alignment of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// A table; its first row is the head.
#[derive(Debug)]
pub(crate) struct Table {
    indent: usize,
    space: usize,
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns: head and alignment.
    pub(crate) fn new(indent: usize, columns: &[(&str, Side)]) -> Self {
        let head = columns.iter().map(|(head, _)| (*head).to_owned()).collect();
        let sides = columns.iter().map(|(_, side)| *side).collect();
        Self { indent, space: 2, sides, rows: vec![head] }
    }

    /// Sets the number of spaces between columns; two by default.
    pub(crate) fn spaced(self, space: usize) -> Self {
        Self { space, ..self }
    }

    /// Inserts a row above the head.
    pub(crate) fn above(&mut self, cells: &[&str]) {
        self.rows.insert(0, cells.iter().map(|cell| (*cell).to_owned()).collect());
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as lines, each with its newline and without trailing spaces. On a narrow terminal
    /// it is divided into blocks of columns, each with the first column.
    pub(crate) fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| columns(cell)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.sides.len()).map(width).collect();
        let blocks = self.blocks(&widths);
        let blocks = blocks.iter().map(|block| self.block(block, &widths));
        blocks.collect::<Vec<_>>().join("\n")
    }

    /// The columns of each block.
    fn blocks(&self, widths: &[usize]) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..widths.len()).collect();
        let wide = |columns: &[usize]| {
            let cells: usize = columns.iter().map(|&at| widths[at] + self.space).sum();
            (self.indent + cells).saturating_sub(self.space)
        };
        if !is_narrow() || wide(&all) <= terminal() {
            return vec![all];
        }
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        for column in all.into_iter().skip(1) {
            match blocks.last_mut() {
                Some(block) if wide(&[&block[..], &[column]].concat()) <= terminal() => {
                    block.push(column);
                }
                _ => blocks.push(vec![0, column]),
            }
        }
        blocks
    }

    fn block(&self, shown: &[usize], widths: &[usize]) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(self.indent);
            for &column in shown {
                let Some(cell) = row.get(column) else { continue };
                line.push_str(&aligned(cell, widths[column], self.sides[column]));
                line.push_str(&" ".repeat(self.space));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// The cell with spaces before or after it.
pub(crate) fn aligned(cell: &str, width: usize, side: Side) -> String {
    let spaces = " ".repeat(width.saturating_sub(columns(cell)));
    match side {
        Side::Left => format!("{cell}{spaces}"),
        Side::Right => format!("{spaces}{cell}"),
    }
}

/// The width of a text on the terminal. Every character counts as one column: names of interrupts
/// and threads are ASCII, and the reports themselves contain no wide characters.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// The text, cut to `width` columns if it is longer.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let start: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::layout::width::set_width;

    /// Check that columns are aligned, by characters and not by bytes.
    #[test]
    fn aligns() {
        let mut table = Table::new(2, &[("name", Side::Left), ("time", Side::Right)]);
        table.row(["a".to_owned(), "13.2 µs".to_owned()]);
        table.row(["long name".to_owned(), "1 ms".to_owned()]);
        let expected =
            "  name          time\n  a          13.2 µs\n  long name     1 ms\n";
        assert_eq!(table.text(), expected);
    }

    /// Check that a table is divided on a narrow terminal, each part with the first column.
    #[test]
    fn divides() {
        let wide = "x".repeat(20);
        let mut table =
            Table::new(1, &["CPU", "a", "b", "c"].map(|name| (name, Side::Right)));
        table.row(["0", "1", &wide, &wide].map(str::to_owned));
        assert_eq!(table.text().lines().count(), 2);
        set_width(40);
        let space = " ".repeat(19);
        let expected = format!(
            " CPU  a {space} b\n   0  1  {wide}\n\n CPU {space} c\n   0  {wide}\n"
        );
        assert_eq!(table.text(), expected);
    }

    /// Check that cut texts have the width and end with an ellipsis.
    #[test]
    fn cuts() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("ab cd", 4), "ab…");
    }
}
