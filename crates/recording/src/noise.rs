//! What a spinning CPU lost: what is asked and what is seen.

use serde::{Deserialize, Serialize};
use units::{Cpu, CpuSet, Nanos, Span, TscHz};

use crate::blame::{Blamed, Source};
use crate::phases::Phases;

/// What `noise` is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseSpec {
    /// The CPUs to spin on, all at once.
    pub cpus: CpuSet,
    /// How long to spin.
    pub duration_ns: Nanos,
    /// The shortest gap that is kept; `None`: calibrated from the loop's own pass.
    pub threshold_ns: Option<Nanos>,
    /// The `SCHED_FIFO` priority of the spinning threads; `None`: an ordinary task.
    pub fifo: Option<u8>,
    /// A gap that is longer ends the run; `None`: none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_above_ns: Option<Nanos>,
    /// Parts into which the duration is divided; `None`: one, which begins at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
}

/// What was seen on all CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoiseSeries {
    /// The clock that was read: `tsc`, `cntvct` or `monotonic_raw`.
    pub clock: String,
    /// How often that clock ticks in a second, calibrated over the whole run.
    pub clock_hz: TscHz,
    /// `CLOCK_MONOTONIC_RAW` at the recording's beginning.
    pub began_raw_ns: Nanos,
    /// The clock of the kernel's events (`CLOCK_MONOTONIC`) at the spinning's beginning and
    /// end, each as `[since_beginning_ns, time_ns]`; `None` where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monotonic: Option<[(Nanos, Nanos); 2]>,
    /// Where the events are from that gaps are blamed on; `None` where none were watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The shortest gap that was kept.
    pub threshold_ns: Nanos,
    /// What was seen, CPU by CPU, in rising order.
    pub cpus: Vec<CpuNoise>,
}

/// What was seen on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuNoise {
    /// The CPU.
    pub cpu: Cpu,
    /// From the recording's beginning to the loop's first reading.
    pub began_ns: Nanos,
    /// How long the loop ran, from its first reading to its last; the sum of all phases.
    pub elapsed_ns: Nanos,
    /// When each phase ran, counted from the first one's first reading; empty where the loop
    /// ran once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Span>,
    /// The loop's own median pass, taken off each gap's length.
    pub loop_ns: Nanos,
    /// How many passes the loop made.
    pub passes: u64,
    /// The gaps in rising order of their start, counted from the loop's first reading,
    /// each as long as the pass that it made longer, less an ordinary pass.
    pub gaps: Vec<Span>,
    /// What came after the ring was full.
    pub lost: Option<Lost>,
    /// Who took them; `None` where no events were watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blamed: Option<Blamed>,
    /// How often the counter went backwards.
    pub backwards: u64,
    /// What `/proc` says happened on the CPU in the meantime.
    pub meanwhile: Meanwhile,
}

impl CpuNoise {
    /// When the loop ran, counted from its first reading.
    pub fn ran(&self) -> Vec<Span> {
        match self.phases.as_slice() {
            [] => vec![Span { start: Nanos::ZERO, length: self.elapsed_ns }],
            phases => phases.to_vec(),
        }
    }
}

/// Gaps that were seen after the ring was full: counted and summed, but not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// The first such gap's start, counted from the loop's first reading.
    pub since_ns: Nanos,
    /// How many there were.
    pub gaps: u64,
    /// Their lengths added up.
    pub ns: Nanos,
    /// The longest of them.
    pub max_ns: Nanos,
}

/// What `/proc` says happened on a CPU while the loop ran. The counters are read just
/// before and just after, so they cover a little more than the loop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meanwhile {
    /// The time between the two readings.
    pub span_ns: Nanos,
    /// Interrupts by line that came at least once, most first (`/proc/interrupts`);
    /// `None` where they could not be read.
    pub interrupts: Option<Vec<LineCount>>,
    /// Softirqs that ran at least once, most first (`/proc/softirqs`).
    pub softirqs: Option<Vec<Counted>>,
    /// How often another task took the CPU from the loop (`getrusage`).
    pub preempted: u64,
    /// How long the loop was ready to run but another task ran
    /// (`/proc/thread-self/schedstat`); `None` where the kernel does not count it.
    pub waited_ns: Option<Nanos>,
    /// What the hypervisor took (`/proc/stat`, steps of 10 ms); `None` where it is not
    /// exported or could not be read.
    pub steal_ns: Option<Nanos>,
}

impl Meanwhile {
    /// Adds what happened in a later stretch of time. What is not known of one is not known
    /// of both.
    pub fn add(&mut self, later: Self) {
        let sum = |a: Option<Nanos>, b: Option<Nanos>| Some(a? + b?);
        self.span_ns = self.span_ns + later.span_ns;
        self.preempted += later.preempted;
        self.waited_ns = sum(self.waited_ns, later.waited_ns);
        self.steal_ns = sum(self.steal_ns, later.steal_ns);
        self.interrupts = self.interrupts.take().zip(later.interrupts).map(|(a, b)| {
            let is_same =
                |a: &LineCount, b: &LineCount| (&a.line, &a.name) == (&b.line, &b.name);
            added(a, b, is_same, |line| &mut line.count)
        });
        self.softirqs = self.softirqs.take().zip(later.softirqs).map(|(a, b)| {
            let is_same = |a: &Counted, b: &Counted| a.name == b.name;
            added(a, b, is_same, |softirq| &mut softirq.count)
        });
    }
}

/// Both lists with the counts of equal entries added up, most first.
fn added<T>(
    mut all: Vec<T>,
    later: Vec<T>,
    is_same: impl Fn(&T, &T) -> bool,
    count: impl Fn(&mut T) -> &mut u64,
) -> Vec<T> {
    for mut entry in later {
        match all.iter_mut().find(|other| is_same(other, &entry)) {
            Some(other) => *count(other) += *count(&mut entry),
            None => all.push(entry),
        }
    }
    let mut counted: Vec<(u64, T)> =
        all.into_iter().map(|mut entry| (*count(&mut entry), entry)).collect();
    counted.sort_by_key(|(count, _)| u64::MAX - count);
    counted.into_iter().map(|(_, entry)| entry).collect()
}

/// How often one line of `/proc/interrupts` was counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineCount {
    /// The line's label: `LOC`, `36`.
    pub line: String,
    /// What the line says it is: `Local timer interrupts`, `virtio1-req.0`.
    pub name: String,
    /// How often it came.
    pub count: u64,
    /// Whether it is this architecture's timer interrupt.
    pub timer: bool,
}

/// How often something of a name was counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The name: `TIMER`, `NET_RX`.
    pub name: String,
    /// How often.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that stretches add up line by line, most first, and that what is unknown of one
    /// stays unknown.
    #[test]
    fn stretches_add_up() {
        let counted = |name: &str, count| Counted { name: name.to_owned(), count };
        let mut sum = Meanwhile {
            span_ns: Nanos::from_nanos(5),
            softirqs: Some(vec![counted("TIMER", 3), counted("RCU", 2)]),
            preempted: 1,
            steal_ns: Some(Nanos::from_nanos(1)),
            ..Meanwhile::default()
        };
        sum.add(Meanwhile {
            span_ns: Nanos::from_nanos(6),
            softirqs: Some(vec![counted("RCU", 4), counted("SCHED", 9)]),
            preempted: 2,
            ..Meanwhile::default()
        });
        let softirqs = [counted("SCHED", 9), counted("RCU", 6), counted("TIMER", 3)];
        assert_eq!(sum.softirqs, Some(softirqs.to_vec()));
        assert_eq!((sum.span_ns.get(), sum.preempted, sum.steal_ns), (11, 3, None));
    }
}
