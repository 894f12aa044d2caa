//! OS noise of busy CPUs: parameters and measured values.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use units::{Cpu, CpuSet, Nanos, Span, TscHz};

use crate::AtScaleSpec;
use crate::blame::{Blamed, Culprit, Share, Source};
use crate::moment::Trigger;
use crate::moments_found::{Value, Values, monotonic};
use crate::phases::Phases;

/// The parameters of `noise`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseSpec {
    /// The CPUs, which are measured at the same time.
    pub cpus: CpuSet,
    /// The duration.
    pub duration_ns: Nanos,
    /// The shortest gap that is stored; `None`: calibrated from the loop's own iteration time.
    pub threshold_ns: Option<Nanos>,
    /// The `SCHED_FIFO` priority of the measuring threads; `None`: ordinary tasks.
    pub fifo: Option<u8>,
    /// The limit above which a gap is a moment.
    #[serde(flatten)]
    pub trigger: Trigger,
    /// Parts into which the duration is divided; `None`: one part, which begins at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// The ranks for which the effect of the noise is reported; `None`: the default ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_scale: Option<AtScaleSpec>,
}

/// The measured values of all CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoiseSeries {
    /// The clock that was read: `tsc`, `cntvct` or `monotonic_raw`.
    pub clock: String,
    /// The clock's frequency, calibrated over the whole run.
    pub clock_hz: TscHz,
    /// `CLOCK_MONOTONIC_RAW` at the recording's beginning.
    pub began_raw_ns: Nanos,
    /// The clock of the kernel's events (`CLOCK_MONOTONIC`) at the beginning and the end of the
    /// loops, each as `[since_beginning_ns, time_ns]`; `None` if it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monotonic: Option<[(Nanos, Nanos); 2]>,
    /// The source of the events that gaps are attributed to; `None` if events were not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The shortest gap that was stored.
    pub threshold_ns: Nanos,
    /// The measured values of each CPU, in rising order.
    pub cpus: Vec<CpuNoise>,
}

/// The measured values of one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuNoise {
    /// The CPU.
    pub cpu: Cpu,
    /// From the recording's beginning to the loop's first reading.
    pub began_ns: Nanos,
    /// The time from the loop's first reading to its last; the sum of all phases.
    pub elapsed_ns: Nanos,
    /// When each phase ran, from the first one's first reading; empty if there was one phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Span>,
    /// The median time of one loop iteration, which is subtracted from each gap's length.
    pub loop_ns: Nanos,
    /// The number of loop iterations.
    pub passes: u64,
    /// The gaps in order of their start, from the loop's first reading, each as long as the
    /// iteration that it made longer, less an ordinary iteration.
    pub gaps: Vec<Span>,
    /// The gaps that were not stored.
    pub lost: Option<Lost>,
    /// Their causes; `None` if events were not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blamed: Option<Blamed>,
    /// How often the counter went backwards.
    pub backwards: u64,
    /// The `/proc` counters of the CPU during the measurement.
    pub proc: ProcCounts,
}

impl CpuNoise {
    /// When the loop ran, from its first reading.
    pub fn ran(&self) -> Vec<Span> {
        match self.phases.as_slice() {
            [] => vec![Span { start: Nanos::ZERO, length: self.elapsed_ns }],
            phases => phases.to_vec(),
        }
    }

    /// The time from the start of the loop in which every gap was stored. Later gaps were only counted,
    /// so their positions are unknown.
    pub fn window(&self) -> Nanos {
        self.lost.map_or(self.elapsed_ns, |lost| lost.since_ns.min(self.elapsed_ns))
    }

    /// The gaps without the time of the measuring process's own threads.
    pub fn gaps_without_own(&self) -> Cow<'_, [Span]> {
        let Some(blamed) = &self.blamed else { return Cow::Borrowed(&self.gaps) };
        let is_own = |share: &&Share| {
            let culprit = blamed.culprits.get(share.culprit);
            culprit.is_some_and(Culprit::is_own)
        };
        if !blamed.culprits.iter().any(Culprit::is_own) {
            return Cow::Borrowed(&self.gaps);
        }
        let mut gaps = self.gaps.clone();
        for share in blamed.shares.iter().filter(is_own) {
            if let Some(gap) = gaps.get_mut(share.gap) {
                gap.length = gap.length.saturating_sub(share.ns);
            }
        }
        Cow::Owned(gaps)
    }
}

/// Gaps when the ring was full: counted and summed, not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// The start of the first of them, from the loop's first reading.
    pub since_ns: Nanos,
    /// Their number.
    pub gaps: u64,
    /// The sum of their lengths.
    pub ns: Nanos,
    /// The longest of them.
    pub max_ns: Nanos,
}

/// The `/proc` counters of a CPU during the loop. They are read just before and just after it, so
/// that they cover slightly more than the loop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcCounts {
    /// The time between the two readings.
    pub span_ns: Nanos,
    /// Interrupts by line, without zeros, the most frequent first (`/proc/interrupts`); `None` if
    /// they could not be read.
    pub interrupts: Option<Vec<LineCount>>,
    /// Softirqs, without zeros, the most frequent first (`/proc/softirqs`).
    pub softirqs: Option<Vec<Counted>>,
    /// How often another task preempted the loop (`getrusage`).
    pub preempted: u64,
    /// How long the loop was runnable while another task ran (`/proc/thread-self/schedstat`);
    /// `None` if the kernel does not count it.
    pub waited_ns: Option<Nanos>,
    /// Steal time (`/proc/stat`, in steps of 10 ms); `None` if it is not exported or could not be
    /// read.
    pub steal_ns: Option<Nanos>,
}

impl ProcCounts {
    /// Adds the counters of a later period. A value that is unknown in one of them is unknown in the
    /// sum.
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

/// Both lists with the counts of equal entries added up, the most frequent first.
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

/// The count of one line of `/proc/interrupts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineCount {
    /// The line's label: `LOC`, `36`.
    pub line: String,
    /// The line's description: `Local timer interrupts`, `virtio1-req.0`.
    pub name: String,
    /// The number of interrupts.
    pub count: u64,
    /// Whether it is this architecture's timer interrupt.
    pub timer: bool,
}

/// A count with a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The name: `TIMER`, `NET_RX`.
    pub name: String,
    /// How often.
    pub count: u64,
}

impl NoiseSeries {
    /// The gaps, if the clock of the loops can be converted.
    pub(crate) fn values(&self) -> Values<'_> {
        let Some(clocks) = self.monotonic else { return Box::new(std::iter::empty()) };
        let of_cpu = move |cpu: &CpuNoise| {
            let (number, began) = (cpu.cpu, cpu.began_ns);
            let gaps = cpu.gaps.clone().into_iter().enumerate();
            gaps.map(move |(place, gap)| Value {
                cpu: number,
                place,
                after: gap.start,
                span: Span { start: monotonic(began + gap.start, clocks), ..gap },
                value: gap.length,
            })
        };
        Box::new(self.cpus.iter().flat_map(of_cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that periods add up line by line, the most frequent first, and that unknown values
    /// remain unknown.
    #[test]
    fn stretches_add_up() {
        let counted = |name: &str, count| Counted { name: name.to_owned(), count };
        let mut sum = ProcCounts {
            span_ns: Nanos::from_nanos(5),
            softirqs: Some(vec![counted("TIMER", 3), counted("RCU", 2)]),
            preempted: 1,
            steal_ns: Some(Nanos::from_nanos(1)),
            ..ProcCounts::default()
        };
        sum.add(ProcCounts {
            span_ns: Nanos::from_nanos(6),
            softirqs: Some(vec![counted("RCU", 4), counted("SCHED", 9)]),
            preempted: 2,
            ..ProcCounts::default()
        });
        let softirqs = [counted("SCHED", 9), counted("RCU", 6), counted("TIMER", 3)];
        assert_eq!(sum.softirqs, Some(softirqs.to_vec()));
        assert_eq!((sum.span_ns.get(), sum.preempted, sum.steal_ns), (11, 3, None));
    }
}
