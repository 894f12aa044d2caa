//! The longest times in the last minute, however often they are read: several readers do not hide a maximum
//! from each other.

use std::collections::{BTreeMap, VecDeque};

use recording::TopSample;
use units::{Cpu, Nanos};

/// How long a maximum is shown, at least.
const SHOWN: Nanos = Nanos::from_secs(60);
/// Intervals are stored in parts of this length.
const PART: Nanos = Nanos::from_secs(10);

/// The longest times of a CPU in the last minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LongestTimes {
    /// Of interrupts and softirqs without a thread in between.
    pub interruption_ns: Option<Nanos>,
    /// That a thread waited for the CPU.
    pub wait_ns: Option<Nanos>,
}

/// The maxima of parts of the last minute, the latest last.
#[derive(Debug, Default)]
pub(crate) struct LastMinute {
    parts: VecDeque<Part>,
}

#[derive(Debug, Default)]
struct Part {
    elapsed: Nanos,
    cpus: BTreeMap<Cpu, LongestTimes>,
}

impl LastMinute {
    /// Adds the next interval, and forgets parts that ended more than a minute ago.
    pub(crate) fn add(&mut self, sample: &TopSample) {
        if self.parts.back().is_none_or(|part| part.elapsed >= PART) {
            self.parts.push_back(Part::default());
        }
        let Some(part) = self.parts.back_mut() else { return };
        part.elapsed = part.elapsed.saturating_add(sample.elapsed_ns);
        for cpu in &sample.cpus {
            let longest = part.cpus.entry(cpu.cpu).or_default();
            longest.interruption_ns =
                longest.interruption_ns.max(cpu.interruption_ns_max);
            longest.wait_ns = longest.wait_ns.max(cpu.wait_ns_max);
        }
        let elapsed = |parts: &VecDeque<Part>| -> Nanos {
            parts.iter().skip(1).map(|part| part.elapsed).sum()
        };
        while self.parts.len() > 1 && elapsed(&self.parts) >= SHOWN {
            self.parts.pop_front();
        }
    }

    /// The maxima of these CPUs.
    pub(crate) fn of_cpus(&self, cpus: &[Cpu]) -> BTreeMap<Cpu, LongestTimes> {
        let of = |cpu: &Cpu| {
            let parts = self.parts.iter().filter_map(|part| part.cpus.get(cpu));
            let longest = parts.fold(LongestTimes::default(), |sum, one| LongestTimes {
                interruption_ns: sum.interruption_ns.max(one.interruption_ns),
                wait_ns: sum.wait_ns.max(one.wait_ns),
            });
            (*cpu, longest)
        };
        cpus.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use recording::TopCpu;

    use super::*;

    fn sample(seconds: u64, longest: u64) -> TopSample {
        let elapsed_ns = Nanos::from_secs(seconds);
        let longest = Some(Nanos::from_nanos(longest));
        let cpu = TopCpu {
            cpu: Cpu::new(0),
            ticks: None,
            programs_ns: Nanos::ZERO,
            kernel_ns: None,
            interrupts_ns: Nanos::ZERO,
            interruption_ns_max: longest,
            steal_ns: None,
            quota_ns: None,
            wait_ns: None,
            waits: None,
            wait_ns_max: longest,
        };
        let (cpus, uses, own_ns) = (vec![cpu], Vec::new(), Nanos::ZERO);
        TopSample { at_ns: elapsed_ns, elapsed_ns, cpus, uses, own_ns }
    }

    fn longest(minute: &LastMinute) -> u64 {
        let all = minute.of_cpus(&[Cpu::new(0)]);
        let times = all[&Cpu::new(0)];
        assert_eq!(times.interruption_ns, times.wait_ns);
        times.wait_ns.unwrap().get()
    }

    /// Check that a maximum is shown for a minute, at any interval, in constant memory; and that one of an
    /// interval longer than that is shown until the next one.
    #[test]
    fn for_a_minute() {
        for seconds in [1, 7, 15, 30] {
            let mut minute = LastMinute::default();
            minute.add(&sample(seconds, 900));
            let mut passed = 0;
            while passed < 60 {
                assert_eq!(longest(&minute), 900, "{seconds}: {passed}");
                minute.add(&sample(seconds, 5));
                passed += seconds;
                assert!(minute.parts.len() <= 8);
            }
            for _ in 0..20 {
                minute.add(&sample(seconds, 5));
            }
            assert_eq!(longest(&minute), 5, "{seconds}");
        }
        let mut minute = LastMinute::default();
        minute.add(&sample(300, 900));
        assert_eq!(longest(&minute), 900);
        minute.add(&sample(300, 5));
        assert_eq!(longest(&minute), 5);
        assert!(minute.of_cpus(&[]).is_empty());
    }
}
