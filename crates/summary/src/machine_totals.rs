//! What used the CPUs of a machine since the beginning of a watch, as counters that only grow: for monitoring
//! that reads them repeatedly.
//!
//! Memory is bounded by the number of CPUs, and sources by [`source_totals`].

pub(crate) mod last_minute;
pub(crate) mod source_totals;

use std::collections::BTreeMap;

use recording::{CulpritKind, LengthCounts, TopCounts, TopCpu, TopSample, TopUse};
use units::{Cpu, Nanos};

use crate::machine_totals::last_minute::{LastMinute, LongestTimes};
use crate::machine_totals::source_totals::{SourceTotal, SourceTotals};
use crate::noise::sources::kind_label;

/// The counters of a machine.
#[derive(Debug)]
pub struct MachineTotals {
    cpus: BTreeMap<Cpu, CpuTotals>,
    online: Vec<Cpu>,
    sources: SourceTotals,
    longest: LastMinute,
}

/// The counters of a CPU. Those that are not known are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuTotals {
    /// The time of programs, without interrupts.
    pub programs_ns: Nanos,
    /// That of kernel threads; `None` if they count as programs.
    pub kernel_ns: Option<Nanos>,
    /// That of interrupts and softirqs,
    pub interrupts_ns: Nanos,
    /// and of each kind of them, without those that interrupted it; empty if it is not known.
    pub interrupt_kinds: BTreeMap<&'static str, Nanos>,
    /// The number of timer interrupts.
    pub ticks: Option<u64>,
    /// The time that the hypervisor took, which is part of the others.
    pub steal_ns: Option<Nanos>,
    /// The time in which the CPU quota of a cgroup was used up here.
    pub quota_ns: Option<Nanos>,
    /// The time that threads waited for this CPU,
    pub wait_ns: Option<Nanos>,
    /// and their number.
    pub waits: Option<u64>,
}

impl MachineTotals {
    /// Nothing so far. At most `most` sources are listed at a time.
    pub fn new(most: usize) -> Self {
        Self {
            cpus: BTreeMap::new(),
            online: Vec::new(),
            sources: SourceTotals::new(most),
            longest: LastMinute::default(),
        }
    }

    /// Adds the next interval.
    pub fn add(&mut self, sample: &TopSample) {
        self.online = sample.cpus.iter().map(|cpu| cpu.cpu).collect();
        for cpu in &sample.cpus {
            self.cpus.entry(cpu.cpu).or_default().add(cpu);
        }
        for used in &sample.uses {
            self.add_interrupt(used);
        }
        self.sources.add(&sample.uses, sample.elapsed_ns);
        self.longest.add(sample);
    }

    /// The CPUs that are online, with their counters.
    pub fn cpus(&self) -> impl Iterator<Item = (Cpu, &CpuTotals)> {
        self.online.iter().filter_map(|cpu| Some((*cpu, self.cpus.get(cpu)?)))
    }

    /// The longest times in the last minute, or in the last interval if that was longer.
    pub fn longest(&self) -> BTreeMap<Cpu, LongestTimes> {
        self.longest.of_cpus(&self.online)
    }

    /// The listed sources, and the sum of all others.
    pub fn sources(&self) -> Vec<SourceTotal> {
        self.sources.all()
    }

    fn add_interrupt(&mut self, used: &TopUse) {
        let kind = used.culprit.kind;
        if kind == CulpritKind::Thread {
            return;
        }
        let Some(totals) = used.cpu.and_then(|cpu| self.cpus.get_mut(&cpu)) else {
            return;
        };
        let sum = totals.interrupt_kinds.entry(kind_label(kind)).or_default();
        *sum = sum.saturating_add(used.ns);
    }
}

impl CpuTotals {
    fn add(&mut self, next: &TopCpu) {
        self.programs_ns = self.programs_ns.saturating_add(next.programs_ns);
        self.interrupts_ns = self.interrupts_ns.saturating_add(next.interrupts_ns);
        grow(&mut self.kernel_ns, next.kernel_ns, Nanos::saturating_add);
        grow(&mut self.steal_ns, next.steal_ns, Nanos::saturating_add);
        grow(&mut self.quota_ns, next.quota_ns, Nanos::saturating_add);
        grow(&mut self.wait_ns, next.wait_ns, Nanos::saturating_add);
        grow(&mut self.waits, next.waits, u64::saturating_add);
        grow(&mut self.ticks, next.ticks, u64::saturating_add);
    }
}

/// An interval of which a number is not known adds nothing to it.
fn grow<T: Copy>(sum: &mut Option<T>, next: Option<T>, add: fn(T, T) -> T) {
    *sum = match (*sum, next) {
        (Some(sum), Some(next)) => Some(add(sum, next)),
        (known, None) | (None, known) => known,
    };
}

/// The number of each length on all CPUs, as shares of a histogram: how many were at most as long as each
/// bound, how many there were, and their sum. `None` if no CPU has counts.
pub fn cumulative_lengths<'a>(
    cpus: &'a [TopCounts],
    of: impl Fn(&'a TopCounts) -> Option<&'a LengthCounts>,
) -> Option<CumulativeLengths> {
    let mut all = cpus.iter().filter_map(of);
    let mut sum = all.next()?.clone();
    for one in all {
        for ((_, count), (_, more)) in sum.up_to.iter_mut().zip(&one.up_to) {
            *count = count.saturating_add(*more);
        }
        sum.above = sum.above.saturating_add(one.above);
        sum.ns = sum.ns.saturating_add(one.ns);
    }
    let mut count = 0_u64;
    let mut up_to = sum.up_to;
    for (_, of_bound) in &mut up_to {
        count = count.saturating_add(*of_bound);
        *of_bound = count;
    }
    Some(CumulativeLengths { up_to, count: count.saturating_add(sum.above), ns: sum.ns })
}

/// A histogram whose counts include those of shorter lengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CumulativeLengths {
    /// The number of those up to each bound.
    pub up_to: Vec<(Nanos, u64)>,
    /// The number of all.
    pub count: u64,
    /// Their sum.
    pub ns: Nanos,
}

#[cfg(test)]
mod tests {
    use recording::Culprit;

    use super::*;

    fn cpu(number: u32, ns: u64) -> TopCpu {
        let ns = Nanos::from_nanos(ns);
        TopCpu {
            cpu: Cpu::new(number),
            ticks: Some(3),
            programs_ns: ns,
            kernel_ns: Some(ns),
            interrupts_ns: ns,
            interruption_ns_max: Some(ns),
            steal_ns: None,
            quota_ns: Some(ns),
            wait_ns: Some(ns),
            waits: Some(2),
            wait_ns_max: Some(ns),
        }
    }

    fn sample(cpus: Vec<TopCpu>, uses: Vec<TopUse>) -> TopSample {
        let elapsed_ns = Nanos::from_secs(15);
        TopSample { at_ns: elapsed_ns, elapsed_ns, cpus, uses, own_ns: Nanos::ZERO }
    }

    fn softirq(number: u32, ns: u64) -> TopUse {
        let name = "NET_RX".to_owned();
        TopUse {
            cpu: Some(Cpu::new(number)),
            culprit: Culprit { kind: CulpritKind::Softirq, name, thread: None },
            ns: Nanos::from_nanos(ns),
            count: Some(1),
            ns_max: None,
        }
    }

    /// Check that counters grow, that an unknown number of one interval does not change them, and that a
    /// CPU that was offline continues where it was.
    #[test]
    fn counters_grow() {
        let mut totals = MachineTotals::new(4);
        totals.add(&sample(vec![cpu(0, 5), cpu(1, 7)], vec![softirq(1, 3)]));
        let unknown = TopCpu { ticks: None, kernel_ns: None, ..cpu(0, 10) };
        totals.add(&sample(vec![unknown], vec![softirq(0, 4)]));
        let online: Vec<Cpu> = totals.cpus().map(|(cpu, _)| cpu).collect();
        assert_eq!(online, [Cpu::new(0)]);
        totals.add(&sample(vec![cpu(0, 1), cpu(1, 1)], vec![softirq(1, 2)]));
        let all: Vec<&CpuTotals> = totals.cpus().map(|(_, totals)| totals).collect();
        let ns = Nanos::from_nanos;
        assert_eq!((all[0].programs_ns, all[1].programs_ns), (ns(16), ns(8)));
        assert_eq!((all[0].kernel_ns, all[0].ticks), (Some(ns(6)), Some(6)));
        assert_eq!((all[0].steal_ns, all[1].ticks), (None, Some(6)));
        let kinds = all.iter().map(|cpu| cpu.interrupt_kinds["softirq"]);
        assert_eq!(kinds.collect::<Vec<_>>(), [ns(4), ns(5)]);
    }

    /// Check the sum of two CPUs' histograms, whose counts include shorter lengths.
    #[test]
    fn histograms() {
        let counts = |number, lengths: [u64; 3]| {
            let [one, two, above] = lengths;
            let ns = Nanos::from_nanos;
            let interruptions = LengthCounts {
                up_to: vec![(ns(10), one), (ns(20), two)],
                above,
                ns: ns(100),
            };
            let cpu = Cpu::new(number);
            TopCounts { cpu, slept: 0, preempted: 0, idle: 0, interruptions, waits: None }
        };
        let cpus = [counts(0, [1, 2, 4]), counts(1, [8, 0, 1])];
        let found = cumulative_lengths(&cpus, |cpu| Some(&cpu.interruptions)).unwrap();
        let counts: Vec<u64> = found.up_to.iter().map(|(_, count)| *count).collect();
        assert_eq!((counts, found.count, found.ns.get()), (vec![9, 11], 16, 200));
        assert_eq!(cumulative_lengths(&cpus, |cpu| cpu.waits.as_ref()), None);
    }
}
