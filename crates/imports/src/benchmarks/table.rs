//! Comma-separated values with a head (RFC 4180; also with semicolons or tabs): each row is a run.
//!
//! A column of numbers is a quantity, whose unit is at the end of its name: `time_ms`, `time (ms)`, `rate [MB/s]`.
//! Columns of text name the benchmark of a row. A missing value is none.

use std::mem;

use recording::BetterValues;

use crate::benchmarks::unit::{Measured, time_factor};
use crate::benchmarks::{BenchmarkFile, VALUES_MAX, shown, too_many_values};
use crate::import::{Failure, corrupt, foreign, truncated};

/// Separators of columns, the first of which the head has.
const SEPARATORS: [char; 3] = [',', ';', '\t'];
/// The unit of a column without one.
const UNIT: &str = "number";
/// Columns of numbers that count rows.
const INDICES: [&str; 6] = ["", "#", "id", "index", "run", "iteration"];
/// Texts that stand for a missing value.
const MISSING: [&str; 3] = ["", "-", "NA"];
/// The most columns.
const COLUMNS_MAX: usize = 1_000;

/// Tables that are no runs, by a part of their heads, and what to use instead.
const OTHERS: [(&str, &str); 5] = [
    (
        "command,mean,stddev,median",
        "statistics of hyperfine: save its runs with --export-json",
    ),
    (
        "name,iterations,real_time,cpu_time",
        "the CSV of Google Benchmark: save its runs with --benchmark_out=FILE.json",
    ),
    ("\"Benchmark\",\"Mode\"", "statistics of JMH: save its iterations with -rf json"),
    (
        "file,taken,metric,cpu",
        "the export of noisefloor: compare the recordings that it was made of",
    ),
    (
        "group,function,value,throughput_num",
        "the CSV of Criterion: name the folder target/criterion",
    ),
];

/// A column: its name, and its numbers.
struct Column {
    name: String,
    is_number: bool,
}

/// What a table is that contains no runs.
pub(crate) fn other(head: &str) -> Option<&'static str> {
    OTHERS.iter().find(|(start, _)| head.starts_with(start)).map(|(_, what)| *what)
}

/// The separator of a head; a head of one column has none.
fn separator(head: &str) -> char {
    SEPARATORS.into_iter().find(|one| head.contains(*one)).unwrap_or(',')
}

/// Whether a text begins with a head and a row that fits it.
pub(crate) fn is_table(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    let head = text.lines().next().unwrap_or_default();
    let Ok(rows) = rows(text, separator(head), 2) else { return false };
    let [head, row] = &rows[..] else { return false };
    let is_number = |field: &String| field.trim().parse::<f64>().is_ok();
    head.len() == row.len() && !head.iter().any(is_number) && row.iter().any(is_number)
}

/// The rows of a table with their fields, at most so many.
fn rows(text: &str, separator: char, most: usize) -> Result<Vec<Vec<String>>, Failure> {
    let mut rows = Vec::new();
    let (mut row, mut field) = (Vec::new(), String::new());
    let (mut is_quoted, mut letters) = (false, text.chars().peekable());
    let mut fields = 0;
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' if is_quoted || field.trim().is_empty() => {
                field.clear_if(!is_quoted);
                is_quoted = !is_quoted;
            }
            '\n' if !is_quoted => {
                end(&mut rows, &mut row, &mut field);
                if rows.len() == most {
                    return Ok(rows);
                }
            }
            '\r' if !is_quoted => {}
            _ if letter == separator && !is_quoted => {
                fields += 1;
                if fields > VALUES_MAX {
                    return Err(too_many_values());
                }
                row.push(mem::take(&mut field));
            }
            _ => field.push(letter),
        }
    }
    if is_quoted {
        return Err(truncated("a quoted field does not end: truncated"));
    }
    end(&mut rows, &mut row, &mut field);
    Ok(rows)
}

/// Ends a row; an empty line is none.
fn end(rows: &mut Vec<Vec<String>>, row: &mut Vec<String>, field: &mut String) {
    if row.is_empty() && field.trim().is_empty() {
        field.clear();
        return;
    }
    row.push(mem::take(field));
    rows.push(mem::take(row));
}

trait ClearIf {
    fn clear_if(&mut self, condition: bool);
}

impl ClearIf for String {
    /// Spaces before a quote are not part of a field.
    fn clear_if(&mut self, condition: bool) {
        if condition {
            self.clear();
        }
    }
}

pub(crate) fn parse(text: &str) -> Result<BenchmarkFile, Failure> {
    let text = text.trim_start_matches('\u{feff}');
    let separator = separator(text.lines().next().unwrap_or_default());
    let mut rows = rows(text, separator, usize::MAX)?.into_iter();
    let head = rows.next().ok_or_else(|| foreign("the table is empty"))?;
    let rows: Vec<Vec<String>> = rows.collect();
    if head.len() > COLUMNS_MAX {
        return Err(corrupt(format!("more than {COLUMNS_MAX} columns")));
    }
    for (row, at) in rows.iter().zip(2..) {
        if row.len() != head.len() {
            let (fields, columns) = (row.len(), head.len());
            return Err(corrupt(format!(
                "row {at} has {fields} fields, and the head {columns}"
            )));
        }
    }
    let columns: Vec<Column> =
        head.iter().enumerate().map(|(at, name)| column(at, name, &rows)).collect();
    let mut found = BenchmarkFile::by("a table");
    for row in &rows {
        add(&mut found, &columns, row)?;
    }
    Ok(found)
}

/// A column is one of numbers if each of its values is.
fn column(at: usize, name: &str, rows: &[Vec<String>]) -> Column {
    let values = || rows.iter().filter_map(|row| row.get(at)).map(|value| value.trim());
    let present = || values().filter(|value| !MISSING.contains(value));
    let is_number = present().all(|value| value.parse::<f64>().is_ok());
    Column {
        name: name.trim().to_owned(),
        is_number: is_number && present().next().is_some(),
    }
}

/// Adds the values of a row.
fn add(
    found: &mut BenchmarkFile,
    columns: &[Column],
    row: &[String],
) -> Result<(), Failure> {
    let fields = || columns.iter().zip(row).map(|(column, value)| (column, value.trim()));
    let texts = fields().filter(|(column, value)| !column.is_number && !value.is_empty());
    let of_row = texts.map(|(_, value)| value).collect::<Vec<_>>().join(" ");
    let is_measured = |column: &Column| {
        column.is_number && !INDICES.contains(&column.name.to_lowercase().as_str())
    };
    for (column, value) in fields().filter(|(column, _)| is_measured(column)) {
        if MISSING.contains(&value) {
            continue;
        }
        let (name, measured) = quantity(&column.name);
        let name = format!("{of_row} {name}");
        let refuse = || corrupt(format!("'{}' is not a number", shown(value)));
        let value: f64 = value.parse().map_err(|_| refuse())?;
        found.add(name.trim(), &measured, &[value])?;
    }
    Ok(())
}

/// The name and the unit in `time (ms)`, `rate [MB/s]`, `time_ms`.
fn quantity(column: &str) -> (&str, Measured) {
    for (open, close) in [('(', ')'), ('[', ']')] {
        let inside = column.strip_suffix(close).and_then(|rest| rest.rsplit_once(open));
        if let Some((name, unit)) = inside.filter(|(_, unit)| !unit.trim().is_empty()) {
            return (name.trim(), Measured::named(unit.trim()));
        }
    }
    let last = column.rsplit_once(['_', ' ']);
    let is_rate = |name: &str| name.ends_with("per") || name.ends_with("Per");
    if last.is_some_and(|(name, unit)| is_rate(name) && time_factor(unit).is_some()) {
        return (column, Measured::other(UNIT, BetterValues::More));
    }
    match last.filter(|(name, unit)| !name.is_empty() && time_factor(unit).is_some()) {
        Some((name, unit)) => (name, Measured::named(unit)),
        None => (column, Measured::other(UNIT, BetterValues::Unknown)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check quoted fields, with separators, quotes and line feeds in them, and an empty line.
    #[test]
    fn quotes() {
        let text = "\"a\",\"b \"\"c\"\"\"\r\n1, \"x,\ny\"\n\n,2";
        let found = rows(text, ',', usize::MAX).unwrap();
        assert_eq!(found, [["a", "b \"c\""], ["1", "x,\ny"], ["", "2"]]);
        assert!(rows("\"a", ',', 9).is_err());
    }

    /// Check the units in names of columns.
    #[test]
    fn units_of_columns() {
        for (column, name, unit) in [
            ("time (ms)", "time", "ns"),
            ("rate [MB/s]", "rate", "MB/s"),
            ("real_time_us", "real_time", "ns"),
            ("requests per second", "requests per second", "number"),
            ("size_kb", "size_kb", "number"),
            ("s", "s", "number"),
            ("f()", "f()", "number"),
        ] {
            let (found, measured) = quantity(column);
            assert_eq!((found, measured.unit.name()), (name, unit));
        }
    }
}
