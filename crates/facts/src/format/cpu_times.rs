//! `/proc/stat`: the times of each CPU.
//!
//! ```text
//! cpu0 4705 150 1120 16250 520 0 17 84 0 0
//! ```
//!
//! user, nice, system, idle, iowait, irq, softirq, steal (since 2.6.11), guest and guest_nice (the
//! last two are included in user and nice), in units of 1/100 s regardless of `CONFIG_HZ`. idle and
//! iowait can decrease slightly (`Documentation/filesystems/proc.rst`).

use units::{Cpu, CpuSet, Nanos};

use crate::fact::Unknown;

/// The unit of these counters: `USER_HZ` is 100 on every architecture that Linux still supports,
/// except Alpha.
const STEP: Nanos = Nanos::from_millis(10);

/// The times of one CPU since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTime {
    /// All times except idle and iowait; includes steal time.
    pub busy: Nanos,
    /// The idle and iowait times.
    pub idle: Nanos,
    /// The steal time; zero also if the hypervisor does not report it.
    pub steal: Nanos,
    /// The time of interrupts and softirqs.
    pub interrupts: Nanos,
}

/// The times of all online CPUs since boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuTimes {
    cpus: Vec<(Cpu, CpuTime)>,
}

impl CpuTimes {
    /// The file's path.
    pub const FILE: &'static str = "/proc/stat";

    /// Parses the file; `file` is used in messages.
    ///
    /// # Errors
    /// `Why::Garbage`, with file, line and text, if the line of a CPU is invalid, or there is no
    /// such line.
    pub fn parse(text: &str, file: &str) -> Result<Self, Unknown> {
        let mut cpus = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let Some(rest) = line.strip_prefix("cpu") else { continue };
            if rest.starts_with(' ') {
                continue;
            }
            let found = parse_cpu(rest).ok_or_else(|| {
                Unknown::garbage(file, index + 1, line, "a CPU and its times")
            })?;
            cpus.push(found);
        }
        if cpus.is_empty() {
            let first = text.lines().next().unwrap_or("");
            return Err(Unknown::garbage(file, 1, first, "the first of the CPUs' times"));
        }
        Ok(Self { cpus })
    }

    /// The times of a CPU since boot; `None` if it is offline.
    pub fn get(&self, cpu: Cpu) -> Option<CpuTime> {
        self.cpus.iter().find(|(own, _)| *own == cpu).map(|&(_, time)| time)
    }

    /// The CPUs that were online.
    pub fn cpus(&self) -> CpuSet {
        self.cpus.iter().map(|&(cpu, _)| cpu).collect()
    }

    /// The times of a CPU since an earlier reading; `None` if it was offline at one of them, or its
    /// busy or steal time decreased.
    pub fn since(&self, earlier: &Self, cpu: Cpu) -> Option<CpuTime> {
        let (before, now) = (earlier.get(cpu)?, self.get(cpu)?);
        let grown = |before: Nanos, now: Nanos| {
            now.get().checked_sub(before.get()).map(Nanos::from_nanos)
        };
        Some(CpuTime {
            busy: grown(before.busy, now.busy)?,
            // A small decrease is documented, and not a reset.
            idle: now.idle.saturating_sub(before.idle),
            steal: grown(before.steal, now.steal)?,
            interrupts: now.interrupts.saturating_sub(before.interrupts),
        })
    }
}

/// Parses the text after `cpu`: the number and the times.
fn parse_cpu(rest: &str) -> Option<(Cpu, CpuTime)> {
    let mut words = rest.split_whitespace();
    let cpu = words.next()?.parse().ok()?;
    let steps: Vec<u64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [user, nice, system, idle, more @ ..] = steps.as_slice() else { return None };
    let at = |index: usize| more.get(index).copied().unwrap_or(0);
    let (iowait, irq, softirq, steal) = (at(0), at(1), at(2), at(3));
    let sum = |steps: &[u64]| steps.iter().map(|&step| STEP.saturating_mul(step)).sum();
    let time = CpuTime {
        busy: sum(&[*user, *nice, *system, irq, softirq, steal]),
        idle: sum(&[*idle, iowait]),
        steal: sum(&[steal]),
        interrupts: sum(&[irq, softirq]),
    };
    Some((cpu, time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &str = "cpu  1 2\ncpu0 4 1 1 100 5 2 1 3 9 9\ncpu2 1 1 1 1\nintr 5\n";

    /// Check the sums: guest time is included in user time, iowait is idle.
    #[test]
    fn sums_of_times() {
        let times = CpuTimes::parse(STAT, "f").unwrap();
        let first = times.get(Cpu::new(0)).unwrap();
        assert_eq!(first.busy, Nanos::from_millis(120));
        assert_eq!(first.idle, Nanos::from_millis(1050));
        assert_eq!(first.steal, Nanos::from_millis(30));
        assert_eq!(first.interrupts, Nanos::from_millis(30));
        assert_eq!(times.get(Cpu::new(1)), None);
        assert_eq!(times.cpus().to_string(), "0,2");
    }

    /// Check that decreasing idle time counts as zero, and decreasing busy time as unknown.
    #[test]
    fn decreasing_times() {
        let read = |text: &str| CpuTimes::parse(text, "f").unwrap();
        let earlier = read("cpu0 10 0 0 100\n");
        let cpu = Cpu::new(0);
        let idle = read("cpu0 12 0 0 99\n").since(&earlier, cpu).unwrap();
        assert_eq!((idle.busy, idle.idle), (Nanos::from_millis(20), Nanos::ZERO));
        assert_eq!(read("cpu0 1 0 0 200\n").since(&earlier, cpu), None);
    }

    /// Check that invalid files are rejected with file, line and text.
    #[test]
    fn rejects_invalid_files() {
        for text in ["", "hello\n", "cpu0 1 2\n", "cpu0 a b c d\n", "cpux 1 2 3 4\n"] {
            let unknown = CpuTimes::parse(text, "/proc/stat").unwrap_err().to_string();
            assert!(unknown.starts_with("/proc/stat: line 1:"), "{text:?}: {unknown}");
        }
    }

    proptest! {
        /// Check that parsing never panics.
        #[test]
        fn never_panics(text in "(cpu[0-9]{0,2}[ 0-9]{0,30}\n){0,3}") {
            let _ = CpuTimes::parse(&text, "f");
        }
    }
}
