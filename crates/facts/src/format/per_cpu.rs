//! Tables with one column per CPU: `/proc/interrupts` and `/proc/softirqs`.
//!
//! ```text
//!            CPU0       CPU2
//!  24:          1          0  IO-APIC   5-edge      ACPI:Ged
//! LOC:       5032       5716   Local timer interrupts
//! ERR:          0
//! ```
//!
//! The first line has the CPUs, in `/proc/interrupts` only online ones. A row is a label, a colon,
//! and one number per column, or a single number for the whole machine. Labels are left-aligned
//! until 7.1 and right-aligned since; both are accepted. The kernel's counters have 32 bits: they
//! wrap after 49 days at 1000 per second.

use units::{Cpu, CpuSet};

use crate::fact::Unknown;

/// A larger increase between two readings is considered a reset and not a wrap-around: at a million
/// interrupts per second, it would take four minutes.
const WRAP_MAX: u64 = 1 << 28;

/// The increase of a counter between two readings, with a wrap-around at 32 bits; `None` if it was
/// reset.
pub(crate) fn growth(earlier: u64, later: u64) -> Option<u64> {
    let wrapped = || {
        let grown = later.checked_add(1 << 32)?.checked_sub(earlier)?;
        (grown <= WRAP_MAX).then_some(grown)
    };
    later.checked_sub(earlier).or_else(wrapped)
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    /// The text before the colon.
    pub(crate) label: &'a str,
    /// One number per column; empty if the row has one number for the whole machine.
    pub(crate) counts: Vec<u64>,
    /// The text after the numbers.
    pub(crate) text: &'a str,
}

/// Parses a table into the CPUs of its columns and its rows.
pub(crate) fn parse<'a>(
    text: &'a str,
    file: &str,
) -> Result<(Vec<Cpu>, Vec<Row<'a>>), Unknown> {
    let mut lines = text.lines().enumerate();
    let (_, header) = lines.next().unwrap_or((0, ""));
    let cpus = columns(header)
        .ok_or_else(|| Unknown::garbage(file, 1, header, "a row of CPU names"))?;
    let rows = lines.filter(|(_, line)| !line.trim().is_empty()).map(|(index, line)| {
        row(line, cpus.len()).ok_or_else(|| {
            Unknown::garbage(file, index + 1, line, "a label, a colon and counts")
        })
    });
    let rows = rows.collect::<Result<_, _>>()?;
    Ok((cpus, rows))
}

/// The CPUs of the columns as a set.
pub(crate) fn set(cpus: &[Cpu]) -> CpuSet {
    cpus.iter().copied().collect()
}

fn columns(header: &str) -> Option<Vec<Cpu>> {
    let name = |word: &str| word.strip_prefix("CPU")?.parse::<Cpu>().ok();
    let cpus: Vec<Cpu> = header.split_whitespace().map(name).collect::<Option<_>>()?;
    let rising = cpus.windows(2).all(|pair| pair[0] < pair[1]);
    (!cpus.is_empty() && rising).then_some(cpus)
}

fn row(line: &str, columns: usize) -> Option<Row<'_>> {
    let (label, mut rest) = line.split_once(':')?;
    let mut counts = Vec::with_capacity(columns);
    while counts.len() < columns {
        // The kernel writes spaces, and a large machine has 100,000 counts.
        let word = rest.trim_ascii_start();
        let end = word.find(' ').unwrap_or(word.len());
        let Ok(count) = word[..end].parse() else { break };
        counts.push(count);
        rest = &word[end..];
    }
    if label.trim().is_empty() || counts.is_empty() {
        return None;
    }
    // `ERR:` and `MIS:` have one number for all CPUs.
    if counts.len() < columns {
        counts.clear();
    }
    Some(Row { label: label.trim(), counts, text: rest.trim() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that wrapped counters have increased, and that the increase after a reset is unknown.
    #[test]
    fn growth_of_counters() {
        assert_eq!(growth(10, 25), Some(15));
        assert_eq!(growth(10, 10), Some(0));
        assert_eq!(growth(u64::from(u32::MAX), 4), Some(5));
        assert_eq!(growth(3_000_000_000, 5), None);
        assert_eq!(growth(1_000, 5), None);
        assert_eq!(growth(u64::MAX, 0), None);
        assert_eq!(growth(u64::MAX, u64::MAX - 1), None);
    }

    /// Check both label alignments, missing CPUs and short rows.
    #[test]
    fn rows_of_all_shapes() {
        let text = "       CPU0   CPU2\n LOC:  5  6  Local timer\nERR:  0\n  9:  1  2\n";
        let (cpus, rows) = parse(text, "f").unwrap();
        assert_eq!(cpus, [Cpu::new(0), Cpu::new(2)]);
        let first = Row { label: "LOC", counts: vec![5, 6], text: "Local timer" };
        assert_eq!(rows[0], first);
        assert_eq!(rows[1], Row { label: "ERR", counts: vec![], text: "" });
        assert_eq!(rows[2], Row { label: "9", counts: vec![1, 2], text: "" });
    }

    /// Check that invalid tables are rejected with file, line and text.
    #[test]
    fn rejects_invalid_tables() {
        for (text, line) in [
            ("", 1),
            ("hello\n", 1),
            ("CPU0 CPUx\n", 1),
            ("CPU1 CPU0\n", 1),
            ("CPU94967\n", 1),
            ("CPU0\nLOC 5\n", 2),
            ("CPU0\nLOC: x\n", 2),
            ("CPU0\n: 5\n", 2),
        ] {
            let unknown = parse(text, "/proc/interrupts").unwrap_err().to_string();
            let place = format!("/proc/interrupts: line {line}:");
            assert!(unknown.starts_with(&place), "{text:?}: {unknown}");
        }
    }
}
