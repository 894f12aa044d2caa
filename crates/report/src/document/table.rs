//! Tables. A column says how its cells are aligned, and what may be done if the table does not fit.

use std::ops::RangeInclusive;

use crate::document::text::Text;

/// The alignment of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// What a renderer may do with the cells of a column that are too wide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Nothing.
    Whole,
    /// Cut them to a width in this range, such that those of a table stay distinct.
    Cut(RangeInclusive<usize>),
    /// Fold them; in the last column only, or in the one before a margin.
    Fold,
    /// Write them at the right margin: of the row's last line, or of lines of their own below it. In
    /// the last column only.
    Margin,
    /// Write each value once, on a line of its own above the rows that have it; cut as above. In the
    /// first column only.
    Group(RangeInclusive<usize>),
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    /// A heading above `head`, of the group of columns; may be empty.
    pub(crate) above: String,
    pub(crate) head: Text,
    pub(crate) side: Side,
    pub(crate) fit: Fit,
}

impl Column {
    /// A column of numbers.
    pub(crate) fn number(head: impl Into<Text>) -> Self {
        Self {
            above: String::new(),
            head: head.into(),
            side: Side::Right,
            fit: Fit::Whole,
        }
    }

    /// A column of words.
    pub(crate) fn words(head: impl Into<Text>) -> Self {
        Self { side: Side::Left, ..Self::number(head) }
    }

    /// A column of names, which are cut to a width in this range.
    pub(crate) fn name(head: impl Into<Text>, widths: RangeInclusive<usize>) -> Self {
        Self { fit: Fit::Cut(widths), ..Self::words(head) }
    }

    /// The last column: sentences, which are folded.
    pub(crate) fn prose(head: impl Into<Text>) -> Self {
        Self { fit: Fit::Fold, ..Self::words(head) }
    }

    /// The last column, without a heading: where a row is from.
    pub(crate) fn margin() -> Self {
        Self { fit: Fit::Margin, ..Self::words("") }
    }

    /// The first column: what several rows have in common.
    pub(crate) fn group(head: impl Into<Text>, widths: RangeInclusive<usize>) -> Self {
        Self { fit: Fit::Group(widths), ..Self::words(head) }
    }

    /// Its headings, from above; without those that are empty.
    pub(crate) fn heads(&self) -> impl Iterator<Item = Text> {
        let above = Text::from(&*self.above);
        [above, self.head.clone()].into_iter().filter(|head| !head.is_empty())
    }

    /// Its headings in one line.
    pub(crate) fn heading(&self) -> Text {
        // A name that is divided has an underscore at the end of its first part.
        let between = if self.above.ends_with('_') { "" } else { " " };
        Text::join(self.heads(), between)
    }

    /// With a heading above its own.
    pub(crate) fn above(self, above: impl Into<String>) -> Self {
        Self { above: above.into(), ..self }
    }
}

/// A cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Cell {
    pub(crate) text: Text,
    /// A shorter form, if the table does not fit.
    pub(crate) short: Option<Text>,
    /// The end of a name, which is never cut: `(123)`.
    pub(crate) tail: String,
    /// How far the text is moved to the right, in steps: the rank in a tree.
    pub(crate) depth: usize,
    /// The length of a bar in its place, as a part of the longest.
    pub(crate) bar: Option<f64>,
}

impl Cell {
    /// A cell with a shorter form.
    pub(crate) fn or(text: impl Into<Text>, short: impl Into<Text>) -> Self {
        let (text, short) = (text.into(), short.into());
        Self { short: (short != text).then_some(short), text, ..Self::default() }
    }

    /// A bar of this part of the longest.
    pub(crate) fn bar(part: f64) -> Self {
        Self { bar: Some(part), ..Self::default() }
    }

    /// With an end that is never cut.
    pub(crate) fn tail(self, tail: impl Into<String>) -> Self {
        Self { tail: tail.into(), ..self }
    }

    /// Moved to the right by so many steps.
    pub(crate) fn deep(self, depth: usize) -> Self {
        Self { depth, ..self }
    }
}

impl<T: Into<Text>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// A table.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// A sentence about the rows that are left out.
    pub(crate) rest: Text,
    /// The meaning of the columns.
    pub(crate) legend: Text,
}

impl Table {
    /// A table with these columns.
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), ..Self::default() }
    }

    /// A table with a row for each item, to which columns are added.
    pub(crate) fn of<T>(items: &[T]) -> TableOf<'_, T> {
        let rows = vec![Vec::new(); items.len()];
        TableOf { items, table: Self { rows, ..Self::default() } }
    }

    /// Terms and their descriptions, without headings.
    pub(crate) fn terms<C: Into<Cell>>(rows: impl IntoIterator<Item = [C; 2]>) -> Self {
        let mut terms = Self::new([Column::words(""), Column::prose("")]);
        rows.into_iter().for_each(|row| terms.row(row));
        terms
    }

    /// Adds a row; it may have fewer cells than there are columns.
    pub(crate) fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// With the meaning of the columns.
    pub(crate) fn legend(self, legend: impl Into<Text>) -> Self {
        Self { legend: legend.into(), ..self }
    }

    /// With a sentence about the rows that are left out.
    pub(crate) fn rest(self, rest: impl Into<Text>) -> Self {
        Self { rest: rest.into(), ..self }
    }

    /// Whether there is nothing to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.rest.is_empty()
    }

    /// Whether any column has a heading.
    pub(crate) fn has_head(&self) -> bool {
        self.columns.iter().any(|column| column.heads().next().is_some())
    }

    /// Whether it consists of terms and their descriptions.
    pub(crate) fn is_terms(&self) -> bool {
        let are_words = self.columns.iter().all(|column| column.side == Side::Left);
        self.columns.len() == 2 && are_words && !self.has_head()
    }
}

/// A table with a row for each item.
#[derive(Debug)]
pub(crate) struct TableOf<'a, T> {
    items: &'a [T],
    pub(crate) table: Table,
}

impl<'a, T> TableOf<'a, T> {
    /// With another column, and its cell of each item.
    pub(crate) fn column<C: Into<Cell>>(
        mut self,
        column: Column,
        cell: impl Fn(&'a T) -> C,
    ) -> Self {
        self.table.columns.push(column);
        for (row, item) in self.table.rows.iter_mut().zip(self.items) {
            row.push(cell(item).into());
        }
        self
    }

    /// With a column of numbers below each heading.
    pub(crate) fn numbers<C: Into<Cell>, const N: usize>(
        mut self,
        heads: [&str; N],
        numbers: impl Fn(&'a T) -> [C; N],
    ) -> Self {
        self.table.columns.extend(heads.map(Column::number));
        for (row, item) in self.table.rows.iter_mut().zip(self.items) {
            row.extend(numbers(item).map(Into::into));
        }
        self
    }

    /// With another column of numbers.
    pub(crate) fn number<C: Into<Cell>>(
        self,
        head: impl Into<Text>,
        number: impl Fn(&'a T) -> C,
    ) -> Self {
        self.column(Column::number(head), number)
    }
}

/// The cells of a row of several types.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => {
        [$($crate::document::table::Cell::from($cell)),*]
    };
}
pub(crate) use cells;

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that columns are added to all rows.
    #[test]
    fn rows_of_items() {
        let table = Table::of(&[1, 20])
            .column(Column::words("name"), |number| format!("n{number}"))
            .number("count", |number| Text::number(number.to_string()));
        let mut expected = Table::new([Column::words("name"), Column::number("count")]);
        expected.row(cells!["n1", Text::number("1")]);
        expected.row(cells!["n20", Text::number("20")]);
        assert_eq!(table.table, expected);
    }
}
