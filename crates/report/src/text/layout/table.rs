//! Tables of plain text: columns as wide as their widest cell, spaces between them.

/// On which side a column's cells stand.
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
    /// A table with these columns: the head's words, and the side cells stand on.
    pub(crate) fn new(indent: usize, columns: &[(&str, Side)]) -> Self {
        let head = columns.iter().map(|(word, _)| (*word).to_owned()).collect();
        let sides = columns.iter().map(|(_, side)| *side).collect();
        Self { indent, space: 2, sides, rows: vec![head] }
    }

    /// With so many spaces between columns instead of two.
    pub(crate) fn spaced(self, space: usize) -> Self {
        Self { space, ..self }
    }

    /// Puts a line of words above the head.
    pub(crate) fn above(&mut self, words: &[&str]) {
        self.rows.insert(0, words.iter().map(|word| (*word).to_owned()).collect());
    }

    /// Adds a line.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as lines, each with its newline and without trailing spaces.
    pub(crate) fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| columns(cell)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.sides.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(self.indent);
            for ((cell, width), side) in row.iter().zip(&widths).zip(&self.sides) {
                line.push_str(&aligned(cell, *width, *side));
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

/// How many columns of the terminal a text takes. Every character counts as one: names
/// of interrupts and threads are ASCII, and of our own only `µ` and `…` are not.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// The text, cut to that many columns where it is longer.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that columns line up on their side, counted in characters, not bytes.
    #[test]
    fn lines_up() {
        let mut table = Table::new(2, &[("name", Side::Left), ("time", Side::Right)]);
        table.row(["a".to_owned(), "13.2 µs".to_owned()]);
        table.row(["long name".to_owned(), "1 ms".to_owned()]);
        let expected =
            "  name          time\n  a          13.2 µs\n  long name     1 ms\n";
        assert_eq!(table.text(), expected);
    }

    /// Check that cut texts keep to the width and say that they are cut.
    #[test]
    fn cuts() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("ab cd", 4), "ab…");
    }
}
