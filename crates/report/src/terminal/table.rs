//! A table as lines. If it does not fit, counts are abbreviated first; then what rows have in common gets
//! lines of its own, names are cut, the space between columns is halved, and at last the table is
//! divided into as few blocks of columns as possible, each with the columns that name the row.

use std::cell::LazyCell;

use units::printable;

use crate::document::table::{Cell, Column, Fit, Side, Table};
use crate::document::text::{Mark, Text};
use crate::fitting::columns::{columns as width_of, cut};
use crate::fitting::labels::cut_labels;
use crate::fitting::lines::wrapped;
use crate::terminal::paragraph::{FIXED, folded_text, in_one_line, unbroken};

/// The space before the first column.
const INDENT: usize = 1;
/// The least width of folded cells.
const FOLDED: usize = 16;
/// The greatest width of a name in a heading.
const HEAD: usize = 22;
/// The width of the longest bar.
const BAR: usize = 12;
/// Parts of a bar's last character, in eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// The excess of a table that fits in one block.
const FITS: (usize, usize) = (0, 1);

/// How a table is written.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Cells have their shorter form.
    is_short: bool,
    /// What rows have in common has lines of its own.
    is_grouped: bool,
    /// The width of names.
    name: usize,
    /// The space between columns.
    space: usize,
}

/// The cells of a table in a shape, as strings.
struct Strings {
    sides: Vec<Side>,
    heads: Vec<Vec<String>>,
    rows: Vec<Line>,
    /// The width of each column.
    widths: Vec<usize>,
    space: usize,
    /// The number of columns that name a row.
    keys: usize,
}

/// A row, what the rows below it have in common, or what stands at the right margin of a row.
enum Line {
    Group(String),
    Row(Vec<String>),
    Margin(String),
}

/// The table with what is left out, and its legend.
pub(crate) fn table(table: &Table, width: usize) -> String {
    let mut text = fitted(table, width);
    if !table.rest.is_empty() {
        text.push_str(&folded_text("  ", &table.rest));
    }
    if !table.legend.is_empty() {
        text.push('\n');
        text.push_str(&folded_text("", &table.legend));
    }
    text
}

fn fitted(table: &Table, width: usize) -> String {
    let shapes = shapes(table);
    let of = |shape: &Shape| Strings::of(table, *shape, width);
    // Most tables fit whole, and need no comparison with the narrowest shape.
    let least = LazyCell::new(|| shapes.last().map(|shape| of(shape).excess(width)));
    let mut strings = shapes.iter().map(of);
    let strings = strings.find(|strings| {
        let excess = strings.excess(width);
        excess == FITS || Some(excess) <= *least
    });
    strings.map_or_else(String::new, |strings| strings.text(width))
}

/// All shapes, the best first.
fn shapes(table: &Table) -> Vec<Shape> {
    let is_short = table.rows.iter().flatten().any(|cell| cell.short.is_some());
    let is_grouped = table.columns.iter().any(|one| matches!(one.fit, Fit::Group(_)));
    let ranges = || table.columns.iter().filter_map(|column| name_range(&column.fit));
    let most = ranges().map(|(_, most)| most).max().unwrap_or(0);
    let least = ranges().map(|(least, _)| least).min().unwrap_or(most);
    let whole = Shape { is_short: false, is_grouped: false, name: most, space: 2 };
    let mut shapes = vec![whole];
    shapes.extend(is_short.then_some(Shape { is_short, ..whole }));
    let names = (least..=most).rev();
    shapes.extend(names.map(|name| Shape { is_short, is_grouped, name, space: 2 }));
    shapes.push(Shape { is_short, is_grouped, name: least, space: 1 });
    shapes
}

fn name_range(fit: &Fit) -> Option<(usize, usize)> {
    match fit {
        Fit::Cut(range) | Fit::Group(range) => Some((*range.start(), *range.end())),
        Fit::Whole | Fit::Fold | Fit::Margin => None,
    }
}

impl Strings {
    fn of(table: &Table, shape: Shape, width: usize) -> Self {
        let mut columns: Vec<Vec<String>> =
            (0..table.columns.len()).map(|at| column(table, at, shape)).collect();
        let mut heads = heads(table);
        let mut sides: Vec<Side> = table.columns.iter().map(|one| one.side).collect();
        let groups = shape.is_grouped.then(|| {
            sides.remove(0);
            heads.iter_mut().for_each(join_first);
            columns.remove(0)
        });
        let margins = match table.columns.last() {
            Some(Column { fit: Fit::Margin, .. }) => sides.pop().and(columns.pop()),
            _ => None,
        };
        let margins = margins.unwrap_or_default();
        let lengths: Vec<usize> = table.rows.iter().map(Vec::len).collect();
        let row = |at: usize| -> Vec<String> {
            let skipped = usize::from(shape.is_grouped);
            let own = columns.iter().take(lengths[at].saturating_sub(skipped));
            own.filter_map(|column| column.get(at).cloned()).collect()
        };
        let mut rows = Vec::new();
        let mut last = None;
        for at in 0..table.rows.len() {
            let mut row = row(at);
            if let Some(groups) = &groups {
                if last.replace(&groups[at]) != Some(&groups[at]) {
                    rows.push(Line::Group(groups[at].clone()));
                }
                row.iter_mut().take(1).for_each(|name| name.insert_str(0, "  "));
            }
            rows.push(Line::Row(row));
            let margin = margins.get(at).filter(|margin| !margin.is_empty());
            rows.extend(margin.cloned().map(Line::Margin));
        }
        let keys = keys(table).saturating_sub(usize::from(shape.is_grouped)).max(1);
        let widths = Vec::new();
        let mut strings = Self { sides, heads, rows, widths, space: shape.space, keys };
        strings.measure();
        if table.columns.iter().any(|column| column.fit == Fit::Fold) {
            strings.fold_last(width);
            strings.measure();
        }
        strings
    }

    /// Finds the width of each column.
    fn measure(&mut self) {
        let rows = self.rows.iter().filter_map(|line| match line {
            Line::Row(row) => Some(row),
            Line::Group(_) | Line::Margin(_) => None,
        });
        let mut widths = vec![0; self.sides.len()];
        for row in rows.chain(&self.heads) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = width_of(cell).max(*width);
            }
        }
        self.widths = widths;
    }

    /// The width of these columns together.
    fn width_of(&self, columns: impl IntoIterator<Item = usize>) -> usize {
        let cells = columns.into_iter().map(|at| self.widths[at] + self.space);
        (INDENT + cells.sum::<usize>()).saturating_sub(self.space)
    }

    /// Breaks the cells of the last column, so that the table fits; their other lines are rows.
    fn fold_last(&mut self, width: usize) {
        let last = self.sides.len().saturating_sub(1);
        let before = self.width_of(0..last);
        let room = width.saturating_sub(before + self.space).max(FOLDED);
        let mut rows = Vec::new();
        for line in self.rows.drain(..) {
            let Line::Row(mut row) = line else {
                rows.push(line);
                continue;
            };
            if row.len() <= last {
                rows.push(Line::Row(row));
                continue;
            }
            let folded = row.pop().unwrap_or_default();
            for (at, part) in wrapped(&folded, room).into_iter().enumerate() {
                let mut own =
                    if at == 0 { row.clone() } else { vec![String::new(); last] };
                own.push(part);
                rows.push(Line::Row(own));
            }
        }
        self.rows = rows;
    }

    /// The lines, in as few blocks of columns as fit the width.
    fn text(&self, width: usize) -> String {
        let blocks = self.blocks(width);
        let blocks = blocks.iter().map(|block| self.block(block, width));
        blocks.collect::<Vec<_>>().join("\n").replace(FIXED, " ")
    }

    /// By how much the widest block exceeds the width, and the number of blocks.
    fn excess(&self, width: usize) -> (usize, usize) {
        let blocks = self.blocks(width);
        let widths = blocks.iter().map(|block| self.width_of(block.iter().copied()));
        (widths.max().unwrap_or(0).saturating_sub(width), blocks.len())
    }

    /// The columns of each block.
    fn blocks(&self, width: usize) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..self.widths.len()).collect();
        let fits = |columns: &[usize]| self.width_of(columns.iter().copied()) <= width;
        if fits(&all) {
            return vec![all];
        }
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        let (keys, others) = all.split_at(self.keys.min(all.len()));
        for &column in others {
            match blocks.last_mut() {
                Some(block) if fits(&[&block[..], &[column]].concat()) => {
                    block.push(column);
                }
                _ => blocks.push([keys, &[column]].concat()),
            }
        }
        blocks
    }

    fn block(&self, shown: &[usize], width: usize) -> String {
        let line = |cells: &[String]| {
            let mut line = " ".repeat(INDENT);
            for &at in shown {
                let Some(cell) = cells.get(at) else { continue };
                line.push_str(&aligned(cell, self.widths[at], self.sides[at]));
                line.push_str(&" ".repeat(self.space));
            }
            line.trim_end().to_owned()
        };
        let mut lines: Vec<String> = self.heads.iter().map(|head| line(head)).collect();
        for row in &self.rows {
            match row {
                Line::Row(row) => lines.push(line(row)),
                Line::Group(name) => {
                    let line = format!("{}{name}", " ".repeat(INDENT));
                    lines.push(line.trim_end().to_owned());
                }
                Line::Margin(words) => add_at_margin(&mut lines, words, width),
            }
        }
        // Columns of other blocks may have more lines of folded cells.
        let lines = lines.into_iter().filter(|line| !line.is_empty());
        lines.map(|line| line + "\n").collect()
    }
}

/// Adds words at the right margin: of the last line if they fit, else of lines of their own.
fn add_at_margin(lines: &mut Vec<String>, words: &str, width: usize) {
    match lines.last_mut() {
        Some(last) if width_of(last) + 2 + width_of(words) <= width => {
            let room = width - width_of(last);
            last.push_str(&aligned(words, room, Side::Right));
        }
        _ => {
            let parts = wrapped(words, width.saturating_sub(2));
            lines.extend(parts.iter().map(|part| aligned(part, width, Side::Right)));
        }
    }
}

/// The number of columns that name a row: the words before the first name that may be cut and this
/// name, or one.
fn keys(table: &Table) -> usize {
    let is_name = |column: &Column| matches!(column.fit, Fit::Cut(_));
    let words = table.columns.iter().take_while(|one| one.side == Side::Left);
    words
        .take(table.columns.len().saturating_sub(1))
        .position(is_name)
        .map_or(1, |at| at + 1)
}

/// The headings, in one or two lines; none if all are empty. Names are cut.
fn heads(table: &Table) -> Vec<Vec<String>> {
    let above = table.columns.iter().map(|column| printable(&column.above));
    let heads = || table.columns.iter().map(|column| &column.head);
    let is_name = |head: &&Text| head.parts().iter().any(|part| part.mark == Mark::Name);
    let mut names =
        cut_labels(heads().filter(is_name).map(in_one_line), HEAD).into_iter();
    let own = heads().map(|head| match is_name(&head) {
        true => names.next().unwrap_or_default(),
        false => in_one_line(head),
    });
    let mut lines: Vec<Vec<String>> = vec![cut_labels(above, HEAD), own.collect()];
    lines.retain(|line| line.iter().any(|head| !head.is_empty()));
    lines
}

/// Joins the first two headings: those of the group and of its members.
fn join_first(head: &mut Vec<String>) {
    if head.len() > 1 {
        let group = head.remove(0);
        let names = [&group, &head[0]].into_iter().filter(|name| !name.is_empty());
        head[0] = names.map(String::as_str).collect::<Vec<_>>().join(", ");
    }
}

/// The cells of a column, a string for each row.
fn column(table: &Table, at: usize, shape: Shape) -> Vec<String> {
    let Some(column) = table.columns.get(at) else { return Vec::new() };
    let empty = Cell::default();
    let cells: Vec<&Cell> =
        table.rows.iter().map(|row| row.get(at).unwrap_or(&empty)).collect();
    let names = match name_range(&column.fit) {
        Some((least, most))
            if shape.is_grouped || !matches!(column.fit, Fit::Group(_)) =>
        {
            // What rows have in common has a line of its own.
            let is_group = matches!(column.fit, Fit::Group(_));
            let width = if is_group { most } else { shape.name.clamp(least, most) };
            cut_names(&cells, width, shape.is_short && !is_group)
        }
        _ => cells.iter().map(|cell| words(cell, column, shape.is_short)).collect(),
    };
    let tail = match column.side {
        Side::Left => 0,
        Side::Right => cells.iter().map(|cell| width_of(&cell.tail)).max().unwrap_or(0),
    };
    let tailed = names.into_iter().zip(cells).map(|(name, cell)| {
        let space = " ".repeat(2 * cell.depth);
        let after = match name.is_empty() {
            true => cell.tail.clone(),
            false => format!("{:<tail$}", cell.tail),
        };
        format!("{space}{name}{after}")
    });
    tailed.collect()
}

fn words(cell: &Cell, column: &Column, is_short: bool) -> String {
    if let Some(part) = cell.bar {
        return bar(part);
    }
    let text = form(cell, is_short);
    if column.fit == Fit::Fold { unbroken(text) } else { in_one_line(text) }
}

/// The text, or its shorter form.
fn form(cell: &Cell, is_short: bool) -> &Text {
    cell.short.as_ref().filter(|_| is_short).unwrap_or(&cell.text)
}

/// The names, cut to the width; those of a column stay distinct.
fn cut_names(cells: &[&Cell], width: usize, is_short: bool) -> Vec<String> {
    let room = |cell: &Cell| width.saturating_sub(2 * cell.depth + width_of(&cell.tail));
    let is_plain = |cell: &Cell| cell.tail.is_empty() && cell.depth == 0;
    let name = |cell: &Cell| in_one_line(form(cell, is_short));
    let plain = cells.iter().filter(|cell| is_plain(cell));
    let mut plain = cut_labels(plain.map(|cell| name(cell)), width).into_iter();
    let cut = |cell: &&Cell| match is_plain(cell) {
        true => plain.next().unwrap_or_default(),
        false => cut(&name(cell), room(cell)),
    };
    cells.iter().map(cut).collect()
}

/// A bar of this part of the longest.
pub(crate) fn bar(part: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part is from zero to one"
    )]
    let eighths = (part.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    let eighths = if part > 0.0 { eighths.max(1) } else { 0 };
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// The cell with spaces before or after it.
fn aligned(cell: &str, width: usize, side: Side) -> String {
    let spaces = " ".repeat(width.saturating_sub(width_of(cell)));
    match side {
        Side::Left => format!("{cell}{spaces}"),
        Side::Right => format!("{spaces}{cell}"),
    }
}

#[cfg(test)]
mod tests;
