//! Tables of cells: their first columns are the kernel and the cell.

use std::iter;
use std::ops::RangeInclusive;

use summary::CellSummary;

use crate::number;
use crate::text::cells::LabelledCell;
use crate::text::layout::fit::{fits, fitted};
use crate::text::layout::labels::cut_labels;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};

/// The least and the most columns for the name of a kernel or a cell if names must be cut.
const NAMES: RangeInclusive<usize> = 6..=36;

/// Formats a count, in full or abbreviated.
pub(crate) type Count = fn(u64) -> String;

/// A cell, or equal repeats of one, with its summary.
pub(crate) struct Row<'a> {
    /// The cell; of several repeats the first.
    pub(crate) named: &'a LabelledCell<'a>,
    /// The number of equal repeats.
    pub(crate) times: u64,
    pub(crate) summary: CellSummary,
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

    pub(crate) fn line<const N: usize>(&self, fields: [String; N]) -> Line<'_, N> {
        self.named.line(fields)
    }
}

/// A line of a table.
pub(crate) struct Line<'a, const N: usize> {
    /// The kernel's label.
    pub(crate) kernel: &'a str,
    /// The cell's name; empty if the line above has it.
    pub(crate) cell: &'a str,
    /// The repeats of the cell that the line is for: ` ×20`.
    pub(crate) repeats: String,
    /// The other columns.
    pub(crate) fields: [String; N],
}

/// The lines of a table of numbers, with counts in full and with abbreviated counts.
#[derive(Default)]
pub(crate) struct Lines<'a, const N: usize>([Vec<Line<'a, N>>; 2]);

impl<'a, const N: usize> Lines<'a, N> {
    pub(crate) fn push(
        &mut self,
        row: &'a Row<'_>,
        fields: impl Fn(Count) -> [String; N],
    ) {
        for (lines, count) in self.0.iter_mut().zip([number::count, number::short_count])
        {
            let fields = fields(count);
            lines.push(Line { repeats: row.repeats(), ..row.line(fields) });
        }
    }

    /// The table with its title and explanation; `None` without a line. If a line does not
    /// fit the terminal, counts are abbreviated first; then kernels get lines of their own,
    /// and names are cut.
    pub(crate) fn section(
        &self,
        title: &str,
        head: [&str; N],
        words: &str,
    ) -> Option<String> {
        let Self([full, short]) = self;
        if full.is_empty() {
            return None;
        }
        let head = head.map(|word| (word, Side::Right));
        let beside = [full, short].map(|lines| beside_kernels(head, lines));
        let table = beside
            .into_iter()
            .find(|table| fits(table))
            .unwrap_or_else(|| below_kernels(head, short));
        Some(section(title, &table, words))
    }
}

pub(crate) fn section(title: &str, table: &str, words: &str) -> String {
    format!("\n{}\n{table}\n{}", paragraph("", title), paragraph("", words))
}

/// A table in which each kernel has a line of its own, with its title and explanation;
/// `None` without a line.
pub(crate) fn section_by_kernel<const N: usize>(
    title: &str,
    head: [(&str, Side); N],
    lines: &[Line<'_, N>],
    words: &str,
) -> Option<String> {
    let is_any = !lines.is_empty();
    is_any.then(|| section(title, &below_kernels(head, lines), words))
}

fn beside_kernels<const N: usize>(
    head: [(&str, Side); N],
    lines: &[Line<'_, N>],
) -> String {
    let names = [("kernel", Side::Left), ("cell", Side::Left)];
    let mut table = Table::new(2, &[&names[..], &head[..]].concat());
    for Line { kernel, cell, repeats, fields } in lines {
        let names = [(*kernel).to_owned(), format!("{cell}{repeats}")];
        table.row(names.into_iter().chain(fields.iter().cloned()));
    }
    table.text()
}

fn below_kernels<const N: usize>(
    head: [(&str, Side); N],
    lines: &[Line<'_, N>],
) -> String {
    let columns = [&[("kernel, cell", Side::Left)], &head[..]].concat();
    fitted(NAMES, |width| {
        let mut table = Table::new(2, &columns);
        let kernels = cut_labels(lines.iter().map(|line| line.kernel), width);
        let cells = cut_labels(lines.iter().map(|line| line.cell), width);
        let mut last = None;
        for ((line, kernel), cell) in lines.iter().zip(kernels).zip(cells) {
            if last.replace(line.kernel) != Some(line.kernel) {
                table.row([kernel]);
            }
            let name = format!("  {cell}{}", line.repeats);
            table.row(iter::once(name).chain(line.fields.iter().cloned()));
        }
        table.text()
    })
}
