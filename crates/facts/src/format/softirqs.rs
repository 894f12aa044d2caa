//! `/proc/softirqs`: the counts of softirqs on each CPU (since 2.6.31).
//!
//! The columns are all possible CPUs, including offline ones.

use units::Cpu;

use crate::fact::Unknown;
use crate::format::per_cpu;

/// The counts of all softirqs since boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Softirqs {
    cpus: Vec<Cpu>,
    rows: Vec<(String, Vec<u64>)>,
}

impl Softirqs {
    /// The file's path.
    pub const FILE: &'static str = "/proc/softirqs";

    /// The names by number, as in the file (`include/linux/interrupt.h`).
    pub const NAMES: [&'static str; 10] = [
        "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED",
        "HRTIMER", "RCU",
    ];

    /// The name of a softirq.
    pub fn name(number: u64) -> String {
        let known = usize::try_from(number).ok().and_then(|at| Self::NAMES.get(at));
        known.map_or_else(|| format!("softirq {number}"), |name| (*name).to_owned())
    }

    /// Parses the file; `file` is used in messages.
    ///
    /// # Errors
    /// `Why::Garbage`, with file, line and text, if the table is invalid.
    pub fn parse(text: &str, file: &str) -> Result<Self, Unknown> {
        let (cpus, rows) = per_cpu::parse(text, file)?;
        let rows = rows.into_iter().map(|row| (row.label.to_owned(), row.counts));
        Ok(Self { cpus, rows: rows.collect() })
    }

    /// The increase of each softirq's count on a CPU since an earlier reading; `None` if it was
    /// reset.
    pub fn since<'a>(
        &'a self,
        earlier: &'a Self,
        cpu: Cpu,
    ) -> impl Iterator<Item = (&'a str, Option<u64>)> + 'a {
        self.rows.iter().filter_map(move |(name, _)| {
            let now = self.count(name, cpu)?;
            let before = earlier.count(name, cpu).unwrap_or(0);
            Some((name.as_str(), per_cpu::growth(before, now)))
        })
    }

    fn count(&self, name: &str, cpu: Cpu) -> Option<u64> {
        let column = self.cpus.binary_search(&cpu).ok()?;
        let (_, counts) = self.rows.iter().find(|(own, _)| own == name)?;
        counts.get(column).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: &str = "        CPU0    CPU1\n  HI:   0   1\n  TIMER:   10   20\n";
    const LATER: &str = "        CPU0    CPU1\n  HI:   0   1\n  TIMER:   15   20\n";

    /// Check increases by softirq and CPU.
    #[test]
    fn growth_by_softirq() {
        let earlier = Softirqs::parse(EARLIER, "f").unwrap();
        let later = Softirqs::parse(LATER, "f").unwrap();
        let grown: Vec<_> = later.since(&earlier, Cpu::new(0)).collect();
        assert_eq!(grown, [("HI", Some(0)), ("TIMER", Some(5))]);
        assert_eq!(later.since(&earlier, Cpu::new(7)).count(), 0);
    }
}
