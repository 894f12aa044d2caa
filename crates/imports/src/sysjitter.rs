//! The summary that sysjitter 1.4 prints: a line for each statistic, with a column for each core.
//!
//! Written by `write_summary` in `sysjitter.c`.

use std::collections::HashMap;

use recording::{ImportedLengths, LengthKind};
use units::{Cpu, Nanos};

use crate::import::{Failure, Import, corrupt, truncated};

/// Lines with quantiles, and the millionths of the gaps that do not exceed them.
const QUANTILES: [(&str, u32); 6] = [
    ("int_median(ns)", 500_000),
    ("int_90(ns)", 900_000),
    ("int_99(ns)", 990_000),
    ("int_999(ns)", 999_000),
    ("int_9999(ns)", 999_900),
    ("int_99999(ns)", 999_990),
];

/// The lines by name.
struct Lines<'a> {
    values: HashMap<&'a str, Vec<&'a str>>,
    cores: usize,
}

impl<'a> Lines<'a> {
    fn read(text: &'a str) -> Self {
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let values: HashMap<&str, Vec<&str>> = lines
            .map(|(name, values)| (name.trim(), values.split_whitespace().collect()))
            .collect();
        let cores = values.get("core_i").map_or(0, Vec::len);
        Self { values, cores }
    }

    /// The values of a line, one for each core.
    fn cells(&self, name: &str) -> Result<&[&'a str], Failure> {
        let line = self.values.get(name);
        let line = line.ok_or_else(|| truncated(format!("has no line '{name}'")))?;
        match line.len() == self.cores {
            true => Ok(line),
            false => {
                let (found, cores) = (line.len(), self.cores);
                Err(truncated(format!("{name}: {found} values for {cores} cores")))
            }
        }
    }

    /// The number of a core in a line.
    fn number(&self, name: &str, core: usize) -> Result<u64, Failure> {
        let text = self.cells(name)?[core];
        text.parse().map_err(|_| corrupt(format!("{name}: '{text}' is not a number")))
    }
}

pub(crate) fn parse(text: &str) -> Result<Import, Failure> {
    let lines = Lines::read(text);
    if lines.cores == 0 {
        return Err(truncated("core_i: no cores"));
    }
    // The last line: a number in those before it may be cut off otherwise.
    lines.cells("int_total(%)")?;
    let mut import = Import::by("sysjitter", Vec::new());
    for core in 0..lines.cores {
        let cpu = lines.number("core_i", core)?;
        let cpu = u32::try_from(cpu).map_err(|_| corrupt(format!("no core {cpu}")))?;
        let ns = |name| lines.number(name, core).map(Nanos::from_nanos);
        let count = lines.number("int_n", core)?;
        let mut lengths = ImportedLengths {
            elapsed_ns: Some(ns("runtime(ns)")?),
            count: Some(count),
            sum_ns: Some(ns("int_total(ns)")?),
            ..ImportedLengths::new(LengthKind::Gap, Some(Cpu::new(cpu)))
        };
        if count > 0 {
            lengths.min_ns = Some(ns("int_min(ns)")?);
            lengths.max_ns = Some(ns("int_max(ns)")?);
            for (name, millionths) in QUANTILES {
                lengths.quantiles.push((millionths, ns(name)?));
            }
        }
        if !is_rising(&lengths) {
            import.doubt(format!(
                "the statistics of core {cpu} contradict each other: sysjitter compares gaps as \
                 32-bit numbers, and one of more than 0.8 s is too long for that"
            ));
        }
        import.threshold_ns = Some(ns("threshold(ns)")?);
        import.lengths.push(lengths);
    }
    Ok(import)
}

/// Whether minimum, quantiles and maximum are in order.
fn is_rising(lengths: &ImportedLengths) -> bool {
    let quantiles = lengths.quantiles.iter().map(|(_, length)| *length);
    let all: Vec<Nanos> =
        lengths.min_ns.into_iter().chain(quantiles).chain(lengths.max_ns).collect();
    all.is_sorted()
}
