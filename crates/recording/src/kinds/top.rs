//! What uses the CPUs of a machine, interval by interval: parameters and measured values.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};
use units::{Cpu, Nanos};

use crate::blame::{Culprit, Source};

/// The parameters of `top`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopSpec {
    /// The length of an interval.
    pub interval_ns: Nanos,
    /// The duration; `None`: until it is ended.
    pub duration_ns: Option<Nanos>,
}

/// The measured values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopSeries {
    /// `Bpf`, or `Proc` if only the counters in `/proc` could be read.
    pub source: Source,
    /// `CLOCK_MONOTONIC` at the beginning.
    pub began_ns: Nanos,
    /// The actual duration.
    pub elapsed_ns: Nanos,
    /// The intervals, in order. Of long measurements, neighbouring ones are added up.
    pub samples: Vec<TopSample>,
    /// Time of threads and interrupts for which there was no room.
    pub lost_ns: Nanos,
    /// Time in no sum, before switches of which the previous one was not traced.
    pub unseen_ns: Nanos,
}

/// An interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopSample {
    /// Its end, since the beginning of the measurement.
    pub at_ns: Nanos,
    /// Its length.
    pub elapsed_ns: Nanos,
    /// The CPUs that are online.
    pub cpus: Vec<TopCpu>,
    /// What used them, the most time first. Threads with little time are added up by program; of most
    /// CPUs, if there are many.
    pub uses: Vec<TopUse>,
    /// The CPU time of this process.
    pub own_ns: Nanos,
}

/// The sums of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopCpu {
    /// The CPU.
    pub cpu: Cpu,
    /// The number of timer interrupts.
    pub ticks: Option<u64>,
    /// The time of programs, without interrupts.
    pub programs_ns: Nanos,
    /// The same of kernel threads; `None` if they are part of programs.
    pub kernel_ns: Option<Nanos>,
    /// The time of interrupts and softirqs.
    pub interrupts_ns: Nanos,
    /// The longest time of interrupts and softirqs without a thread in between.
    pub interruption_ns_max: Option<Nanos>,
    /// The hypervisor's time, which is also part of the others.
    pub steal_ns: Option<Nanos>,
    /// The time in which the CPU quota of a cgroup was used up here, whatever had the CPU.
    pub quota_ns: Option<Nanos>,
    /// How long the threads that got the CPU had waited for it, on this CPU.
    pub wait_ns: Option<Nanos>,
    /// Their number.
    pub waits: Option<u64>,
    /// The longest of these waits.
    pub wait_ns_max: Option<Nanos>,
}

/// A thread or an interrupt that used a CPU; or several threads of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopUse {
    /// The CPU; `None`: not known, or several.
    pub cpu: Option<Cpu>,
    /// The thread, interrupt or softirq; of several threads, the name of the program and no TID (0).
    pub culprit: Culprit,
    /// Its time, without interrupts in it.
    pub ns: Nanos,
    /// The number of its runs that ended.
    pub count: Option<u64>,
    /// The longest run that ended, or that of now so far.
    pub ns_max: Option<Nanos>,
}

impl TopSample {
    /// Adds the next interval.
    pub fn add(&mut self, next: Self) {
        self.at_ns = next.at_ns;
        self.elapsed_ns = self.elapsed_ns.saturating_add(next.elapsed_ns);
        self.own_ns = self.own_ns.saturating_add(next.own_ns);
        for cpu in next.cpus {
            match self.cpus.iter_mut().find(|own| own.cpu == cpu.cpu) {
                Some(own) => own.add(&cpu),
                None => self.cpus.push(cpu),
            }
        }
        self.uses.extend(next.uses);
        self.add_up(usize::MAX);
    }

    /// Adds up uses of the same kind, by CPU only for the `by_cpu` ones with the most time.
    pub fn add_up(&mut self, by_cpu: usize) {
        let mut sums: BTreeMap<(Option<Cpu>, Culprit), TopUse> = BTreeMap::new();
        for (place, mut one) in std::mem::take(&mut self.uses).into_iter().enumerate() {
            one.cpu = one.cpu.filter(|_| place < by_cpu);
            match sums.entry((one.cpu, one.culprit.clone())) {
                Entry::Occupied(mut sum) => sum.get_mut().add(&one),
                Entry::Vacant(new) => drop(new.insert(one)),
            }
        }
        self.uses = sums.into_values().collect();
        self.uses.sort_by_key(|one| Reverse(one.ns));
    }
}

impl TopCpu {
    fn add(&mut self, next: &Self) {
        self.ticks = both(self.ticks, next.ticks, u64::saturating_add);
        self.programs_ns = self.programs_ns.saturating_add(next.programs_ns);
        self.kernel_ns = both(self.kernel_ns, next.kernel_ns, Nanos::saturating_add);
        self.interrupts_ns = self.interrupts_ns.saturating_add(next.interrupts_ns);
        self.interruption_ns_max =
            both(self.interruption_ns_max, next.interruption_ns_max, Nanos::max);
        self.steal_ns = both(self.steal_ns, next.steal_ns, Nanos::saturating_add);
        self.quota_ns = both(self.quota_ns, next.quota_ns, Nanos::saturating_add);
        self.wait_ns = both(self.wait_ns, next.wait_ns, Nanos::saturating_add);
        self.waits = both(self.waits, next.waits, u64::saturating_add);
        self.wait_ns_max = both(self.wait_ns_max, next.wait_ns_max, Nanos::max);
    }
}

impl TopUse {
    /// Adds one of another interval, or of another thread.
    pub fn add(&mut self, next: &Self) {
        self.ns = self.ns.saturating_add(next.ns);
        self.count = both(self.count, next.count, u64::saturating_add);
        self.ns_max = both(self.ns_max, next.ns_max, Nanos::max);
    }
}

fn both<T>(one: Option<T>, other: Option<T>, sum: fn(T, T) -> T) -> Option<T> {
    Some(sum(one?, other?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CulpritKind;

    fn sample(cpu: u32, name: &str, ns: u64, kernel_ns: Option<u64>) -> TopSample {
        let ns = Nanos::from_nanos(ns);
        let (kind, name) = (CulpritKind::Softirq, name.to_owned());
        TopSample {
            at_ns: ns,
            elapsed_ns: ns,
            own_ns: ns,
            cpus: vec![TopCpu {
                cpu: Cpu::new(cpu),
                ticks: Some(1),
                programs_ns: ns,
                kernel_ns: kernel_ns.map(Nanos::from_nanos),
                interrupts_ns: ns,
                interruption_ns_max: Some(ns),
                steal_ns: None,
                quota_ns: Some(ns),
                wait_ns: Some(ns),
                waits: Some(2),
                wait_ns_max: Some(ns),
            }],
            uses: vec![TopUse {
                cpu: Some(Cpu::new(cpu)),
                culprit: Culprit { kind, name, thread: None },
                ns,
                count: Some(3),
                ns_max: Some(ns),
            }],
        }
    }

    /// Check that times and counts are added up, that the longest remains, and that unknown numbers
    /// make unknown sums.
    #[test]
    fn intervals_are_added_up() {
        let mut sum = sample(0, "RCU", 5, Some(1));
        sum.add(sample(0, "RCU", 4, None));
        sum.add(sample(1, "RCU", 20, None));
        let ns = Nanos::from_nanos;
        assert_eq!((sum.at_ns, sum.elapsed_ns), (ns(20), ns(29)));
        let [first, second] = &sum.cpus[..] else { panic!("{:?}", sum.cpus) };
        assert_eq!(
            (first.programs_ns, first.kernel_ns, first.ticks),
            (ns(9), None, Some(2))
        );
        assert_eq!((first.wait_ns_max, first.waits), (Some(ns(5)), Some(4)));
        assert_eq!((second.cpu, second.programs_ns), (Cpu::new(1), ns(20)));
        let uses = sum.uses.iter().map(|one| (one.cpu, one.ns.get(), one.count));
        let expected =
            [(Some(Cpu::new(1)), 20, Some(3)), (Some(Cpu::new(0)), 9, Some(6))];
        assert_eq!(uses.collect::<Vec<_>>(), expected);
        sum.add(sample(2, "RCU", 1, None));
        sum.add_up(1);
        let uses = sum.uses.iter().map(|one| (one.cpu, one.ns.get(), one.count));
        let expected = [(Some(Cpu::new(1)), 20, Some(3)), (None, 10, Some(9))];
        assert_eq!(uses.collect::<Vec<_>>(), expected);
    }
}
