//! The last table of `rtla osnoise top`.
//!
//! Written by `osnoise_top_print` in `tools/tracing/rtla/src/osnoise_top.c` of the kernel. Run time and
//! noise are sums over all periods of a CPU.

use recording::{ImportedLengths, LengthKind};
use units::{Cpu, Nanos};

use crate::import::{Failure, Import, corrupt, truncated};
use crate::rtla::{number, refuse_cut};

/// The title of each table.
const TITLE: &str = "Operating System Noise";
/// The cells of a row up to the longest single noise: CPU, periods, run time, noise, available share,
/// largest noise of a period, largest single noise.
const CELLS: usize = 7;

pub(crate) fn parse(text: &str) -> Result<Import, Failure> {
    refuse_cut(text)?;
    let text = without_escapes(text);
    let (_, table) = text.rsplit_once(TITLE).ok_or_else(|| truncated("has no table"))?;
    let is_ns = table.contains("time is in ns");
    let unit = if is_ns { Nanos::from_nanos(1) } else { Nanos::from_micros(1) };
    let mut lines = table.lines();
    let head = lines.find(|line| line.trim_start().starts_with("CPU"));
    let head = head.ok_or_else(|| truncated("ends before the head of the table"))?;
    if !head.contains("Max Single") {
        return Err(corrupt("a table without the column 'Max Single'"));
    }
    let mut lengths = Vec::new();
    for line in lines {
        let cells: Vec<&str> = line.split_whitespace().collect();
        if cells.get(1).is_none_or(|periods| !periods.starts_with('#')) {
            continue; // a message of rtla
        }
        lengths.extend(row(&cells, unit)?);
    }
    if lengths.is_empty() {
        return Err(truncated("a table without a CPU"));
    }
    let mut import = Import::by("rtla osnoise top", lengths);
    import
        .doubt("rtla osnoise top prints no lengths of single gaps: medians are unknown");
    Ok(import)
}

/// The noise of a CPU; `None` if it was not measured.
fn row(cells: &[&str], unit: Nanos) -> Result<Option<ImportedLengths>, Failure> {
    if cells.len() < CELLS {
        return Err(truncated(format!("a row of {} cells", cells.len())));
    }
    let value = |at: usize| Ok(number::<u64>(cells[at])?.unwrap_or(0));
    let (cpu, run_time): (u64, u64) = (value(0)?, value(2)?);
    let cpu = u32::try_from(cpu).map_err(|_| corrupt(format!("no CPU {cpu}")))?;
    Ok((run_time > 0).then_some(ImportedLengths {
        elapsed_ns: Some(unit.saturating_mul(run_time)),
        sum_ns: Some(unit.saturating_mul(value(3)?)),
        max_ns: Some(unit.saturating_mul(value(6)?)),
        ..ImportedLengths::new(LengthKind::Gap, Some(Cpu::new(cpu)))
    }))
}

/// The text without the sequences that set colours and clear the terminal.
fn without_escapes(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic());
        plain.push_str(end.map_or("", |end| &part[end + 1..]));
    }
    plain
}
