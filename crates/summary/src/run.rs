//! The summary of `run`: resource usage of a program, and its interruptions.

use std::cmp::Reverse;

use recording::{
    CpuRun, CulpritKind, Ended, Interruptions, RunSeries, RunSpec, Share, Stopped,
    Thread, Usage,
};
use serde::Serialize;
use stats::{Distribution, Gaps};
use units::{Cpu, CpuSet, Nanos, Ppm, Span};

use crate::noise::culprits::{CulpritSummary, shares};
use crate::noise::own::OwnCost;
use crate::proc_counts::ProcSummary;

/// How a program ended; one of the two is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EndedSummary {
    /// The exit code; null if a signal ended it.
    pub code: Option<u8>,
    /// The signal that ended it.
    pub signal: Option<u8>,
}

impl From<Ended> for EndedSummary {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Exited(code) => Self { code: Some(code), signal: None },
            Ended::Killed(signal) => Self { code: None, signal: Some(signal) },
        }
    }
}

/// The time of one culprit in an interruption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The kind of event.
    pub kind: CulpritKind,
    /// The name of the event.
    pub name: String,
    /// The thread, if it is one.
    #[serde(flatten)]
    pub thread: Option<Thread>,
    /// The time.
    pub ns: Nanos,
}

/// An interruption of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interruption {
    /// Its start, relative to that of the program.
    pub start_ns: Nanos,
    /// Its duration.
    pub ns: Nanos,
    /// The CPU.
    pub cpu: Option<Cpu>,
    /// Its causes, by time.
    pub culprits: Vec<Part>,
}

/// The interruptions of a program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InterruptionsSummary {
    /// The time in which the program ran or was runnable.
    pub ready_ns: Nanos,
    /// The number of interruptions.
    pub gaps: u64,
    /// Their sum.
    pub noise_ns: Nanos,
    /// That as a share of `ready_ns`; null if that is zero.
    pub noise_ppm: Option<Ppm>,
    /// The time that the hypervisor took outside of them; null if no steal clock could be read.
    pub steal_ns: Option<Nanos>,
    /// Their lengths.
    pub gap_ns: Distribution<Gaps>,
    /// The longest ones, by length.
    pub longest: Vec<Interruption>,
    /// Their causes, whose `ns` add up to `noise_ns`.
    pub culprits: Vec<CulpritSummary>,
    /// The part of the measuring process.
    pub own: OwnCost,
}

/// The run of a program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// The CPUs.
    pub cpus: CpuSet,
    /// The scheduling policy at its start: `other`, `fifo`.
    pub policy: String,
    /// The `SCHED_FIFO` priority; null for an ordinary task.
    pub priority: Option<u8>,
    /// How it ended.
    pub ended: EndedSummary,
    /// The time from its exec to its end.
    pub elapsed_ns: Nanos,
    /// The part of it in which the program was stopped.
    pub stopped_ns: Nanos,
    /// That, by what stopped it.
    pub stopped: Vec<Stopped>,
    /// How long its threads ran on CPUs that it was not given, if that was traced.
    pub elsewhere: Vec<CpuRun>,
    /// Its CPU time, in user and kernel mode.
    pub cpu_ns: Nanos,
    /// The part of the time from its exec to its end in which it was interrupted, preempted, or its CPU
    /// was stolen; null with several CPUs, where that overlaps, if it ran on CPUs that it was not given,
    /// or without traced events.
    pub lost_ns: Option<Nanos>,
    /// The rest of that time, without that in which it was stopped: its run time on a CPU of its own.
    pub net_ns: Option<Nanos>,
    /// Its resource usage.
    #[serde(flatten)]
    pub usage: Usage,
    /// The event source (`bpf`, `proc`); null without tracing.
    pub source: Option<String>,
    /// Its interruptions; null if single events were not traced.
    pub interruptions: Option<InterruptionsSummary>,
    /// The counters of `/proc` during the measurement.
    pub proc: ProcSummary,
}

impl RunSummary {
    /// Summarizes a series.
    pub fn of(spec: &RunSpec, series: &RunSeries) -> Self {
        let found = series.interruptions.as_ref();
        Self {
            cpus: spec.cpus.clone(),
            policy: if spec.fifo.is_some() { "fifo" } else { "other" }.to_owned(),
            priority: spec.fifo,
            ended: series.ended.into(),
            elapsed_ns: series.elapsed_ns,
            stopped_ns: stopped_ns(series),
            stopped: series.stopped.clone(),
            elsewhere: series.elsewhere.clone(),
            cpu_ns: series.usage.user_ns + series.usage.system_ns,
            lost_ns: Self::lost_ns(spec, series),
            net_ns: Self::net_ns(spec, series),
            usage: series.usage,
            source: series.source.map(|source| source.name().to_owned()),
            interruptions: found.map(|found| InterruptionsSummary::of(spec, found)),
            proc: ProcSummary::of(&series.proc),
        }
    }

    /// The time of the interruptions on one CPU, and the stolen time outside of them.
    fn lost_ns(spec: &RunSpec, series: &RunSeries) -> Option<Nanos> {
        let is_known = spec.cpus.len() == 1 && series.elsewhere.is_empty();
        let found = series.interruptions.as_ref().filter(|_| is_known)?;
        Some(noise(found) + found.steal_ns.unwrap_or(Nanos::ZERO))
    }

    /// The rest of its run time.
    pub(crate) fn net_ns(spec: &RunSpec, series: &RunSeries) -> Option<Nanos> {
        let lost = Self::lost_ns(spec, series)? + stopped_ns(series);
        Some(series.elapsed_ns.saturating_sub(lost))
    }
}

/// The time in which the program was stopped.
fn stopped_ns(series: &RunSeries) -> Nanos {
    series.stopped.iter().map(|stopped| stopped.ns).sum()
}

/// The time of all interruptions.
fn noise(found: &Interruptions) -> Nanos {
    found.gaps.iter().map(|gap| gap.length).sum()
}

impl InterruptionsSummary {
    fn of(spec: &RunSpec, found: &Interruptions) -> Self {
        let noise = noise(found);
        let culprits = CulpritSummary::of(Some(&found.blamed), None, noise);
        Self {
            ready_ns: found.ready_ns,
            gaps: found.gaps.len() as u64,
            noise_ns: noise,
            noise_ppm: Ppm::of(noise, found.ready_ns),
            steal_ns: found.steal_ns,
            gap_ns: Distribution::of(found.gaps.iter().map(|gap| gap.length)),
            longest: longest(spec, found),
            own: OwnCost::of(&culprits, found.ready_ns, noise),
            culprits,
        }
    }
}

/// The requested number of the longest ones.
fn longest(spec: &RunSpec, found: &Interruptions) -> Vec<Interruption> {
    let mut gaps: Vec<(usize, &Span)> = found.gaps.iter().enumerate().collect();
    gaps.sort_by_key(|(at, gap)| (Reverse(gap.length), *at));
    gaps.truncate(usize::try_from(spec.top).unwrap_or(usize::MAX));
    let interruption = |(at, gap): (usize, &Span)| {
        let own = shares(&found.blamed).filter(|(share, _)| share.gap == at);
        let mut culprits: Vec<Part> = own.map(part).collect();
        culprits.sort_by_key(|part| Reverse(part.ns));
        let cpu = found.gap_cpus.get(at).copied().or_else(|| spec.cpus.first());
        Interruption { start_ns: gap.start, ns: gap.length, cpu, culprits }
    };
    gaps.into_iter().map(interruption).collect()
}

/// Without the owner and the unit of a thread, which are part of the list of all culprits.
fn part((share, culprit): (&Share, &recording::Culprit)) -> Part {
    let thread = culprit.thread.clone();
    let thread = thread.map(|thread| Thread { owner: None, unit: None, ..thread });
    Part { kind: culprit.kind, name: culprit.name.clone(), thread, ns: share.ns }
}

#[cfg(test)]
mod tests {
    use recording::{Culprit, Picked, ProcCounts, StoppedBy, Words};

    use super::*;
    use crate::example;

    fn span(start: u64, length: u64) -> Span {
        Span { start: Nanos::from_nanos(start), length: Nanos::from_nanos(length) }
    }

    fn share(gap: usize, kind: CulpritKind, name: &str, ns: u64) -> (Culprit, Share) {
        let thread =
            Thread { tid: 40, pid: 40, prio: 120, owner: None, unit: None, own: false };
        let thread = (kind == CulpritKind::Thread).then_some(thread);
        let (culprit, share) = example::share(gap, kind, name, thread, ns);
        (culprit, Share { entry_ns: None, ..share })
    }

    fn found(gaps: &[Span], shares: &[(Culprit, Share)], secs: u64) -> Interruptions {
        Interruptions {
            ready_ns: Nanos::from_secs(secs),
            gaps: gaps.to_vec(),
            gap_cpus: Vec::new(),
            blamed: example::blamed(shares),
            steal_ns: Some(Nanos::from_millis(3)),
            edges: Vec::new(),
        }
    }

    fn summary(interruptions: Option<Interruptions>) -> RunSummary {
        summary_of(interruptions, vec![], vec![])
    }

    fn summary_of(
        interruptions: Option<Interruptions>,
        stopped: Vec<Stopped>,
        elsewhere: Vec<CpuRun>,
    ) -> RunSummary {
        let spec = RunSpec {
            command: Words::new(["sleep".into()]),
            cpus: Cpu::new(1).into(),
            picked: Picked::Asked,
            fifo: Some(99),
            top: 1,
            trigger: recording::Trigger::default(),
        };
        let series = RunSeries {
            began_ns: Nanos::ZERO,
            elapsed_ns: Nanos::from_secs(2),
            stopped,
            elsewhere,
            ended: Ended::Exited(3),
            usage: Usage {
                user_ns: Nanos::from_secs(1),
                system_ns: Nanos::from_millis(5),
                voluntary: 7,
                involuntary: 2,
                minor_faults: 90,
                major_faults: 0,
            },
            source: None,
            interruptions,
            proc: ProcCounts::default(),
        };
        RunSummary::of(&spec, &series)
    }

    /// Check the keys and values of the JSON contract.
    #[test]
    fn contract() {
        use CulpritKind::{Thread, Timer};
        let gaps = [span(1_000, 4_000), span(9_000, 6_000)];
        let shares = [
            share(0, Timer, "tick_nohz_handler", 4_000),
            share(1, Timer, "tick_nohz_handler", 1_000),
            share(1, Thread, "kworker/1:1", 5_000),
        ];
        let found = summary(Some(found(&gaps, &shares, 1)));
        let proc = serde_json::json!({
            "span_ns": 0, "interrupts": null, "softirqs": null, "timer_hz": null,
            "preempted": 0, "waited_ns": null, "steal_ns": null,
        });
        let interruptions = serde_json::json!({
            "ready_ns": 1_000_000_000, "gaps": 2, "noise_ns": 10_000,
            "noise_ppm": 10.0, "steal_ns": 3_000_000,
            "gap_ns": {"p50": 4_000, "p99": 6_000, "p99_9": 6_000, "max": 6_000},
            "longest": [{"start_ns": 9_000, "ns": 6_000, "cpu": 1, "culprits": [
                {"kind": "thread", "name": "kworker/1:1", "tid": 40, "pid": 40,
                    "prio": 120, "ns": 5_000},
                {"kind": "timer", "name": "tick_nohz_handler", "ns": 1_000},
            ]}],
            "culprits": [
                {"kind": "timer", "name": "tick_nohz_handler", "gaps": 2, "ns": 5_000,
                    "noise_ppm": 500_000.0, "entry_ns": null, "inside_ns": 0, "exit_ns": null, "max_ns": 4_000, "period": null},
                {"kind": "thread", "name": "kworker/1:1", "tid": 40, "pid": 40,
                    "prio": 120, "gaps": 1, "ns": 5_000, "noise_ppm": 500_000.0,
                    "entry_ns": null, "inside_ns": 0, "exit_ns": null, "max_ns": 5_000, "period": null},
            ],
            "own": {"threads": 0, "gaps": 0, "ns": 0, "ppm": 0.0, "noise_ppm": 0.0,
                "max_ns": 0},
        });
        let expected = serde_json::json!({
            "cpus": "1", "policy": "fifo", "priority": 99,
            "ended": {"code": 3, "signal": null}, "elapsed_ns": 2_000_000_000_u64,
            "stopped_ns": 0, "stopped": [], "elsewhere": [],
            "cpu_ns": 1_005_000_000, "lost_ns": 3_010_000, "net_ns": 1_996_990_000,
            "user_ns": 1_000_000_000, "system_ns": 5_000_000, "voluntary": 7,
            "involuntary": 2, "minor_faults": 90, "major_faults": 0, "source": null,
            "interruptions": interruptions, "proc": proc,
        });
        assert_eq!(serde_json::to_value(&found).unwrap(), expected);
    }

    /// Check that the time in which the program was stopped is no part of the net time, and that this is
    /// unknown if it ran elsewhere.
    #[test]
    fn stopped_and_elsewhere() {
        let found = || Some(found(&[span(1_000, 4_000)], &[], 1));
        let stops = [(StoppedBy::Signal, 300), (StoppedBy::Freezer, 200)]
            .map(|(by, ms)| Stopped { by, ns: Nanos::from_millis(ms), count: 1 });
        let stopped = summary_of(found(), stops.to_vec(), vec![]);
        assert_eq!(stopped.stopped_ns, Nanos::from_millis(500));
        assert_eq!(stopped.net_ns, Some(Nanos::from_nanos(1_496_996_000)));
        let elsewhere = CpuRun { cpu: Cpu::new(0), ns: Nanos::from_micros(1) };
        let elsewhere = summary_of(found(), vec![], vec![elsewhere]);
        assert_eq!((elsewhere.lost_ns, elsewhere.net_ns), (None, None));
    }

    /// Check that interruptions are null without tracing.
    #[test]
    fn unseen() {
        assert_eq!(summary(None).interruptions, None);
        let found = summary(Some(found(&[], &[], 0))).interruptions.unwrap();
        assert_eq!((found.gaps, found.noise_ppm, found.gap_ns.max), (0, None, None));
    }
}
