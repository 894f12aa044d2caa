//! Tables in HTML. A wide one is scrolled in a region of its own; what several rows have in common is
//! a row above them.

use itertools::Itertools;
use units::Ppm;

use crate::document::table::{Cell, Column, Fit, Side, Table};
use crate::html::inline::{inline, plain, shown};
use crate::number;

/// Texts with more characters may be broken in names.
const LONG: usize = 40;
/// Names with more characters do not stay in place when a table is scrolled.
const SHORT: usize = 20;
/// Ends of numbers with more characters are aligned with them.
const MARK: usize = 2;

/// The table in a region that can be scrolled, also with the keyboard. The caption is HTML.
pub(crate) fn scrolled(table: &Table, id: &str, caption: &str) -> String {
    format!(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-labelledby=\"{id}\">\n<table{}>\n\
         <caption id=\"{id}\">{caption}</caption>\n{}{}</table>\n</div>\n",
        class(&[if has_short_names(table) { "sticky" } else { "" }]),
        head(table),
        bodies(table)
    )
}

/// Whether the first column is what several rows have in common.
fn is_grouped(table: &Table) -> bool {
    table.columns.first().is_some_and(|column| matches!(column.fit, Fit::Group(_)))
        && table.columns.len() > 1
}

/// Whether the names of all rows are short.
fn has_short_names(table: &Table) -> bool {
    let at = usize::from(is_grouped(table));
    let mut names = table.rows.iter().filter_map(|row| row.get(at));
    names.all(|name| length(name) <= SHORT)
}

fn length(cell: &Cell) -> usize {
    cell.text.to_string().chars().count() + cell.tail.chars().count()
}

fn head(table: &Table) -> String {
    if !table.has_head() {
        return String::new();
    }
    let heads = table.columns.iter().map(heading).collect::<Vec<_>>();
    let heads = match (is_grouped(table), &heads[..]) {
        (true, [group, first, others @ ..]) => {
            let both = [group, first].into_iter().filter(|head| !head.is_empty());
            let first = both.map(String::as_str).collect::<Vec<_>>().join(", ");
            std::iter::once(first).chain(others.iter().cloned()).collect()
        }
        _ => heads,
    };
    let skipped = usize::from(is_grouped(table));
    let cells = heads.iter().zip(&table.columns[skipped..]).map(|(head, column)| {
        let class = class(&[number_class(column)]);
        match head.is_empty() {
            true => format!("<td{class}></td>"),
            false => format!("<th scope=\"col\"{class}>{head}</th>"),
        }
    });
    format!("<thead>\n<tr>{}</tr>\n</thead>\n", cells.collect::<String>())
}

/// Both headings of a column.
fn heading(column: &Column) -> String {
    let heads: Vec<String> = column.heads().map(|head| inline(&head)).collect();
    heads.join("<br/>")
}

/// The rows, in a body for each group.
fn bodies(table: &Table) -> String {
    if !is_grouped(table) {
        return format!(
            "<tbody>\n{}</tbody>\n",
            rows(&table.columns, table.rows.iter().map(|row| &row[..]))
        );
    }
    let empty = Cell::default();
    let columns = &table.columns[1..];
    let groups = table.rows.iter().chunk_by(|row| row.first().unwrap_or(&empty));
    let bodies = groups.into_iter().map(|(group, own)| {
        let own = rows(columns, own.map(|row| row.get(1..).unwrap_or_default()));
        let name = match content(group) {
            name if name.is_empty() => String::new(),
            name => format!(
                "<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{}\">{name}</th></tr>\n",
                columns.len()
            ),
        };
        format!("<tbody>\n{name}{own}</tbody>\n")
    });
    bodies.collect()
}

fn rows<'a>(columns: &[Column], rows: impl Iterator<Item = &'a [Cell]>) -> String {
    let empty = Cell::default();
    let row = |row: &'a [Cell]| {
        let cells = columns
            .iter()
            .enumerate()
            .map(|(at, column)| cell(column, row.get(at).unwrap_or(&empty), at == 0));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    rows.map(row).collect()
}

fn cell(column: &Column, cell: &Cell, is_first: bool) -> String {
    let html = content(cell);
    let wide = match column.fit {
        Fit::Fold => "prose",
        Fit::Margin => "margin",
        _ if length(cell) > LONG => "long",
        Fit::Whole | Fit::Cut(_) | Fit::Group(_) => "",
    };
    let class = class(&[number_class(column), wide]);
    let deep = match cell.depth {
        0 => String::new(),
        depth => format!(" style=\"--depth:{depth}\""),
    };
    match is_first && !html.is_empty() {
        true => format!("<th scope=\"row\"{class}{deep}>{html}</th>"),
        false => format!("<td{class}{deep}>{html}</td>"),
    }
}

fn number_class(column: &Column) -> &'static str {
    if column.side == Side::Right { "n" } else { "" }
}

fn class(names: &[&str]) -> String {
    let names = names.iter().filter(|name| !name.is_empty()).join(" ");
    if names.is_empty() { names } else { format!(" class=\"{names}\"") }
}

/// What a cell shows.
pub(crate) fn content(cell: &Cell) -> String {
    let text = cell.bar.map_or_else(|| inline(&cell.text), bar);
    let tail = shown(&cell.tail);
    match cell.tail.chars().count() {
        0 => text,
        1..=MARK => format!("{text}<span class=\"mark\">{tail}</span>"),
        _ => text + &tail,
    }
}

/// A bar of this part of the longest.
fn bar(part: f64) -> String {
    let part = part.clamp(0.0, 1.0);
    let share = plain(&number::share(Ppm::new(part * 1e6)));
    format!(
        "<span class=\"bar\" role=\"img\" aria-label=\"{share} of the longest\" \
         title=\"{share} of the longest\"><i style=\"width:{:.1}%\"></i></span>",
        part * 100.0
    )
}
