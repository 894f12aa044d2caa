//! The counts of `/proc` for each CPU between two readings.
//!
//! `/proc/interrupts`, `/proc/softirqs` and `/proc/stat` are readable by any user; the measuring
//! thread reads its own usage with `getrusage(2)` and `/proc/thread-self/schedstat` (its second
//! number: nanoseconds ready to run but not running).
//!
//! Cannot see: the duration of an interrupt, or which thread preempted the loop.

use std::cmp::Reverse;

use facts::{CpuTimes, Facts, Interrupts, Root, SchedStat, Softirqs, Unknown};
use recording::{Code, Counted, Doubt, LineCount, ProcCounts};
use units::{Cpu, Nanos};

use crate::time::counter;

/// The counters of `/proc` at one moment.
pub(crate) struct ProcCounters {
    /// `CLOCK_MONOTONIC_RAW` when they were read.
    pub(crate) at: Nanos,
    pub(crate) interrupts: Result<Interrupts, Unknown>,
    pub(crate) softirqs: Result<Softirqs, Unknown>,
    pub(crate) times: Result<CpuTimes, Unknown>,
}

impl ProcCounters {
    pub(crate) fn now() -> Self {
        let root = Root::live();
        let read = |file: &str| root.text(file);
        let at = counter::kernel(libc::CLOCK_MONOTONIC_RAW);
        Self {
            at,
            interrupts: read(Interrupts::FILE)
                .and_then(|text| Interrupts::parse(&text, Interrupts::FILE)),
            softirqs: read(Softirqs::FILE)
                .and_then(|text| Softirqs::parse(&text, Softirqs::FILE)),
            times: read(CpuTimes::FILE)
                .and_then(|text| CpuTimes::parse(&text, CpuTimes::FILE)),
        }
    }

    /// One doubt for each file that could not be read.
    pub(crate) fn doubts(&self) -> Vec<Doubt> {
        let reasons = [
            self.interrupts.as_ref().err(),
            self.softirqs.as_ref().err(),
            self.times.as_ref().err(),
        ];
        let doubt = |reason: &Unknown| Doubt::new(Code::Unreadable, reason.to_string());
        reasons.into_iter().flatten().map(doubt).collect()
    }

    /// The counts of a CPU since an earlier reading, as far as the files have them.
    pub(crate) fn since(&self, earlier: &Self, cpu: Cpu, facts: &Facts) -> ProcCounts {
        let exported = facts.virt.steal_clock.get().is_some_and(|&exported| exported);
        let time = both(&earlier.times, &self.times)
            .and_then(|(before, now)| now.since(before, cpu));
        ProcCounts {
            span_ns: self.at.saturating_sub(earlier.at),
            interrupts: both(&earlier.interrupts, &self.interrupts)
                .filter(|(before, now)| {
                    // The file has no counts of a CPU that is offline.
                    before.cpus().contains(cpu) && now.cpus().contains(cpu)
                })
                .map(|(before, now)| lines(now, before, cpu)),
            softirqs: both(&earlier.softirqs, &self.softirqs)
                .map(|(before, now)| counts(now, before, cpu)),
            steal_ns: time.map(|time| time.steal).filter(|_| exported),
            ..ProcCounts::default()
        }
    }
}

/// Both readings, if both succeeded.
pub(crate) fn both<'a, T>(
    earlier: &'a Result<T, Unknown>,
    later: &'a Result<T, Unknown>,
) -> Option<(&'a T, &'a T)> {
    earlier.as_ref().ok().zip(later.as_ref().ok())
}

fn lines(now: &Interrupts, before: &Interrupts, cpu: Cpu) -> Vec<LineCount> {
    let grown = now.since(before, cpu).filter_map(|(line, grown)| {
        let count = grown.filter(|&count| count > 0)?;
        let (name, timer) = (line.name.clone(), line.timer);
        Some(LineCount { line: line.label.clone(), name, count, timer })
    });
    let mut lines: Vec<LineCount> = grown.collect();
    lines.sort_by_key(|line| Reverse(line.count));
    lines
}

fn counts(now: &Softirqs, before: &Softirqs, cpu: Cpu) -> Vec<Counted> {
    let grown = now.since(before, cpu).filter_map(|(name, grown)| {
        let count = grown.filter(|&count| count > 0)?;
        Some(Counted { name: name.to_owned(), count })
    });
    let mut counts: Vec<Counted> = grown.collect();
    counts.sort_by_key(|counted| Reverse(counted.count));
    counts
}

/// The calling thread's preemptions and run delay so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadTime {
    preempted: u64,
    waited: Option<Nanos>,
}

impl ThreadTime {
    pub(crate) fn now() -> Self {
        Self { preempted: involuntary_switches(), waited: run_delay() }
    }

    /// Stores the difference to an earlier reading in the counts of the thread's CPU.
    pub(crate) fn add_since(self, earlier: Self, proc: &mut ProcCounts) {
        proc.preempted = self.preempted.saturating_sub(earlier.preempted);
        proc.waited_ns =
            self.waited.zip(earlier.waited).map(|(now, then)| now.saturating_sub(then));
    }
}

fn involuntary_switches() -> u64 {
    // SAFETY: an all-zero rusage is valid, and the kernel fills the whole of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid rusage for the kernel to write.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    u64::try_from(usage.ru_nivcsw).unwrap_or(0)
}

/// The second number of `schedstat`; absent without `CONFIG_SCHED_INFO`.
fn run_delay() -> Option<Nanos> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    SchedStat::parse(&text).map(|times| times.waited)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that this machine's counters are readable and never decrease.
    #[test]
    fn counters_of_this_machine() {
        let earlier = ProcCounters::now();
        assert_eq!(earlier.doubts(), []);
        let facts = Facts::read(&Root::live());
        let seen = ProcCounters::now().since(&earlier, Cpu::new(0), &facts);
        assert!(seen.interrupts.is_some() && seen.softirqs.is_some());
    }

    /// Check that counters that cannot be read are unknown, with a doubt, and never empty.
    #[test]
    fn unreadable_is_unknown() {
        let mut now = ProcCounters::now();
        let facts = Facts::read(&Root::live());
        now.interrupts = Interrupts::parse("?", Interrupts::FILE);
        now.times = CpuTimes::parse("?", CpuTimes::FILE);
        let seen = now.since(&ProcCounters::now(), Cpu::new(0), &facts);
        assert_eq!((seen.interrupts, seen.steal_ns), (None, None));
        assert_eq!(now.doubts().len(), 2);
    }
}
