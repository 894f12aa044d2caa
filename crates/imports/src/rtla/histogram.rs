//! Histograms of `rtla timerlat hist` and `rtla osnoise hist`: a row for each length, a column for
//! each CPU and kind.
//!
//! Written by `timerlat_hist.c` and `osnoise_hist.c` below `tools/tracing/rtla/src` of the kernel. An
//! index is the shortest length of its row.

use recording::{Bin, ImportedLengths, Kind, LengthKind};
use units::{Cpu, Nanos};

use crate::import::{Failure, Import, corrupt, truncated};
use crate::rtla::{number, refuse_cut};

/// Fewer indices may have a common divisor by chance.
const ROWS_MIN: usize = 5;
/// The first words of the lines below the rows.
const SUMMARY: [&str; 5] = ["over:", "count:", "min:", "avg:", "max:"];

pub(crate) fn parse(text: &str) -> Result<Import, Failure> {
    refuse_cut(text)?;
    let is_timerlat = text.lines().any(|line| line.starts_with("# RTLA timerlat"));
    let name = if is_timerlat { "rtla timerlat hist" } else { "rtla osnoise hist" };
    let unit = match text.contains("(ns)") {
        true => Nanos::from_nanos(1),
        false => Nanos::from_micros(1),
    };
    let mut lines = text.lines();
    let head = lines.find(|line| line.starts_with("Index"));
    let head = head.ok_or_else(|| truncated("has no line 'Index' (rtla --no-index)"))?;
    let columns = head.split_whitespace().skip(1).map(column);
    let mut table =
        Table { unit, columns: columns.collect::<Result<_, _>>()?, rows: Vec::new() };
    // The summary of all CPUs together follows.
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("ALL")).collect();
    if !lines.iter().any(|line| line.starts_with("max:")) {
        return Err(truncated("has no line 'max:' (cut off, or rtla --no-summary)"));
    }
    if table.columns.is_empty() {
        let text = "has no column of a CPU: nothing was recorded, as no value reached the threshold";
        return Err((Kind::Foreign, text.to_owned()));
    }
    if is_without_rows(&lines) {
        return Ok(without_rows(name, table));
    }
    for line in lines {
        table.add(line)?;
    }
    let width = table.width();
    let beyond: u64 = table.columns.iter().map(|column| column.beyond).sum();
    let lengths = table.lengths(width);
    let mut import = Import::by(name, lengths);
    import.resolution_ns = Some(unit.saturating_mul(width));
    if beyond > 0 {
        import.doubt(format!(
            "values beyond the histogram: {beyond}; hint: more entries (-E)"
        ));
    }
    Ok(import)
}

/// Whether there are no rows, and each line of the summary has a single 0. rtla prints this if no row has a
/// value, whatever is beyond the last one and however many columns there are.
fn is_without_rows(lines: &[&str]) -> bool {
    lines.iter().all(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        match cells.as_slice() {
            [name, cells @ ..] if SUMMARY.contains(name) => cells == ["0"],
            [name, ..] => name.parse::<u64>().is_err(),
            [] => true,
        }
    })
}

/// The columns of a table that has no values: a CPU without any has no column, so that all of them are
/// beyond the last row.
fn without_rows(name: &str, table: Table) -> Import {
    let lengths = table.columns.into_iter().map(|column| column.lengths).collect();
    let mut import = Import::by(name, lengths);
    import.doubt("all values are beyond the histogram; hint: more entries (-E)");
    import
}

/// A column of the table.
struct Column {
    lengths: ImportedLengths,
    /// How many values are beyond the last row.
    beyond: u64,
    mean: Option<f64>,
}

/// `IRQ-000`: a kind and a CPU.
fn column(head: &str) -> Result<Column, Failure> {
    let unknown = || corrupt(format!("a column '{head}'"));
    let (kind, cpu) = head.split_once('-').ok_or_else(unknown)?;
    let kind = match kind {
        "IRQ" => LengthKind::TimerInterruptLatency,
        "Thr" => LengthKind::WakeupLatency,
        "Usr" => LengthKind::UserLatency,
        "CPU" => LengthKind::Gap,
        _ => return Err(unknown()),
    };
    let cpu = cpu.parse().map_err(|_| unknown())?;
    let lengths = ImportedLengths::new(kind, Some(Cpu::new(cpu)));
    Ok(Column { lengths, beyond: 0, mean: None })
}

struct Table {
    unit: Nanos,
    columns: Vec<Column>,
    /// The index of each row, and its counts.
    rows: Vec<(u64, Vec<u64>)>,
}

impl Table {
    fn add(&mut self, line: &str) -> Result<(), Failure> {
        let mut cells = line.split_whitespace();
        let Some(name) = cells.next() else { return Ok(()) };
        let cells: Vec<&str> = cells.collect();
        let index = name.parse::<u64>().ok();
        let is_summary = SUMMARY.contains(&name);
        if index.is_none() && !is_summary {
            return Ok(()); // a message of rtla
        }
        if cells.len() != self.columns.len() {
            let (found, count) = (cells.len(), self.columns.len());
            return Err(truncated(format!(
                "'{name}': {found} values in {count} columns"
            )));
        }
        if let Some(index) = index {
            let counts = cells.iter().map(|cell| Ok(number(cell)?.unwrap_or(0)));
            self.rows.push((index, counts.collect::<Result<_, Failure>>()?));
            return Ok(());
        }
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            let lengths = &mut column.lengths;
            let length =
                |cell| Ok(number(cell)?.map(|count| self.unit.saturating_mul(count)));
            match name {
                "over:" => column.beyond = number(cell)?.unwrap_or(0),
                "count:" => lengths.count = number(cell)?,
                "min:" => lengths.min_ns = length(cell)?,
                "avg:" => column.mean = number(cell)?,
                _ => lengths.max_ns = length(cell)?,
            }
        }
        Ok(())
    }

    /// How many units a row is wide: the greatest common divisor of the indices, because rows without
    /// values are left out. Of a few rows it may be one by chance.
    fn width(&self) -> u64 {
        let divisor = self.rows.iter().map(|(index, _)| *index).fold(0, common_divisor);
        let is_wide = self.columns.iter().enumerate().any(|(at, column)| {
            let first = self.rows.iter().find(|(_, counts)| counts[at] > 0);
            let end =
                first.map(|(index, _)| self.unit.saturating_mul(index.saturating_add(1)));
            column.lengths.min_ns.zip(end).is_some_and(|(min, end)| min >= end)
        });
        if is_wide || self.rows.len() >= ROWS_MIN { divisor.max(1) } else { 1 }
    }

    fn lengths(self, width: u64) -> Vec<ImportedLengths> {
        let unit = self.unit;
        let bin = |(index, counts): &(u64, Vec<u64>), at: usize| Bin {
            from_ns: unit.saturating_mul(*index),
            until_ns: unit.saturating_mul(index.saturating_add(width)),
            count: counts[at],
        };
        let rows = &self.rows;
        let finished = self.columns.into_iter().enumerate().map(|(at, column)| {
            let bins = rows.iter().map(|row| bin(row, at)).filter(|bin| bin.count > 0);
            let Column { lengths, mean, beyond } = column;
            let bins: Vec<Bin> = bins.collect();
            let sum_ns = sum(&lengths, &bins, beyond, mean, unit);
            ImportedLengths { bins, sum_ns, ..lengths }
        });
        finished.collect()
    }
}

/// The middle of what the rows, the mean and the extremes allow for the sum of lengths. rtla rounds each
/// length down to the unit, and then the mean of these; rows may be wider than that. `None` if these
/// contradict each other, and without a mean of lengths of which some are beyond the last row.
fn sum(
    lengths: &ImportedLengths,
    bins: &[Bin],
    beyond: u64,
    mean: Option<f64>,
    unit: Nanos,
) -> Option<Nanos> {
    let count = lengths.count.filter(|count| *count > 0)?;
    if beyond > 0 && mean.is_none() {
        return None;
    }
    let of_all = |length: Nanos| length.saturating_mul(count);
    let of_bins = |length: fn(&Bin) -> Nanos| -> Nanos {
        bins.iter().map(|bin| length(bin).saturating_mul(bin.count)).sum()
    };
    let longest = lengths.max_ns.map(|max| max + unit);
    let end = bins.last().map_or(Nanos::ZERO, |bin| bin.until_ns);
    let beyond_rows = (
        end.saturating_mul(beyond),
        longest.or((beyond == 0).then_some(end)).map(|it| it.saturating_mul(beyond)),
    );
    let rounded = mean.and_then(|mean| rounded_sum(mean, count, unit));
    let low = [
        Some(of_bins(|bin| bin.from_ns) + beyond_rows.0),
        lengths.min_ns.map(of_all),
        rounded,
    ];
    let high = [
        beyond_rows.1.map(|beyond| of_bins(|bin| bin.until_ns) + beyond),
        longest.map(of_all),
        rounded.map(|sum| sum + of_all(unit) + of_all(unit)),
    ];
    let low = low.into_iter().flatten().max()?;
    let high = high.into_iter().flatten().min()?;
    (low <= high).then(|| low + Nanos::from_nanos(high.saturating_sub(low).get() / 2))
}

/// The sum of so many lengths with this mean, in units.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sum of lengths; as casts of finite numbers saturate"
)]
fn rounded_sum(mean: f64, count: u64, unit: Nanos) -> Option<Nanos> {
    let is_known = mean.is_finite() && mean >= 0.0;
    is_known.then(|| Nanos::from_nanos((mean * count as f64 * unit.get() as f64) as u64))
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
