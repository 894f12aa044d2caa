//! The table that divan 0.1 prints: a tree of names, and of each benchmark the fastest, slowest, median and mean
//! time. Its samples are not in it, and its numbers have four digits.
//!
//! Rows below a benchmark with its throughput or allocations are not read. `TreePainter` in `src/tree_painter.rs`
//! writes it.

use recording::ValueStatistics;

use crate::benchmarks::unit::{Measured, time_factor};
use crate::benchmarks::{BenchmarkFile, shown, whole_lines};
use crate::import::{Failure, corrupt, truncated};

/// The columns of the table.
const COLUMNS: [&str; 6] = ["fastest", "slowest", "median", "mean", "samples", "iters"];
/// The separator of columns.
const BAR: char = '│';
/// The width of a level of the tree.
const LEVEL: usize = 3;

/// Whether a line is the head of a table.
pub(crate) fn is_head(line: &str) -> bool {
    let words: Vec<&str> =
        line.split([BAR, ' ']).filter(|word| !word.is_empty()).collect();
    words.ends_with(&COLUMNS)
}

/// A row of the tree: its level, whether others of that level follow, its name, and its columns.
struct Row<'a> {
    level: usize,
    is_last: bool,
    name: &'a str,
    columns: Vec<&'a str>,
}

impl<'a> Row<'a> {
    /// `None` for a line of a throughput or of allocations, which has no branch.
    fn of(line: &'a str) -> Option<Self> {
        let at = line.find(['├', '╰'])?;
        let level = line[..at].chars().count() / LEVEL;
        let rest = line[at..].trim_start_matches(['├', '╰', '─', ' ']);
        // The first column is separated from the name by spaces.
        let (name, columns) = rest.split_once("  ").unwrap_or((rest, ""));
        let columns = columns.split(BAR).map(str::trim).collect();
        let is_last = line[at..].starts_with('╰');
        Some(Self { level, is_last, name: name.trim(), columns })
    }

    /// Whether rows of its own follow, and no numbers.
    fn is_group(&self) -> bool {
        self.columns.first().is_none_or(|first| first.is_empty())
    }
}

/// The path to a row: the names above it, and whether more rows of each level must follow.
#[derive(Default)]
struct Place<'a> {
    path: Vec<(&'a str, bool)>,
    is_group: bool,
}

impl<'a> Place<'a> {
    fn enter(&mut self, row: &Row<'a>) {
        self.path.truncate(row.level);
        self.path.push((row.name, row.is_last));
        self.is_group = row.is_group();
    }

    fn name(&self) -> String {
        self.path.iter().map(|(name, _)| *name).collect::<Vec<_>>().join("/")
    }

    fn is_end(&self) -> bool {
        !self.is_group && self.path.iter().all(|(_, is_last)| *is_last)
    }
}

pub(crate) fn parse(text: &str) -> Result<BenchmarkFile, Failure> {
    let mut found = BenchmarkFile::by("divan");
    let mut place = Place::default();
    let (lines, is_cut) = whole_lines(text);
    for (number, line) in lines {
        let Some(row) = Row::of(line) else { continue };
        place.enter(&row);
        if !place.is_group {
            add(&mut found, &place.name(), &row.columns)
                .map_err(|(kind, why)| (kind, format!("line {number}: {why}")))?;
        }
    }
    if is_cut || place.path.is_empty() || !place.is_end() {
        return Err(truncated("the table has no last row: truncated"));
    }
    found.doubt(
        "divan prints statistics of four digits, and no samples: one file is one value; hint: \
         compare folders with the output of several runs",
    );
    Ok(found)
}

fn add(found: &mut BenchmarkFile, name: &str, columns: &[&str]) -> Result<(), Failure> {
    let time = |at: usize| -> Result<Option<f64>, Failure> {
        let text = columns.get(at).copied().unwrap_or_default();
        let refuse = || corrupt(format!("'{}' is not a time", shown(text)));
        let (value, unit) = text.split_once(' ').ok_or_else(refuse)?;
        let value: f64 = value.parse().map_err(|_| refuse())?;
        let factor = match unit {
            "ps" => 1e-3,
            _ => time_factor(unit).ok_or_else(refuse)?,
        };
        Ok(Some(value * factor))
    };
    let count = columns.get(4).and_then(|text| text.replace(',', "").parse().ok());
    let statistics = ValueStatistics {
        count,
        min: time(0)?,
        max: time(1)?,
        median: time(2)?,
        mean: time(3)?,
        stddev: None,
    };
    let measured = Measured::nanoseconds();
    let name = found.new_name(name, &measured);
    found.set_statistics(&name, &measured, statistics)
}
