//! The summary of `run`: what a program used, and what it suffered.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use units::{Cpu, CpuSet, Nanos, Ppm, Span};

use crate::culprits::{Culprit, CulpritKind, ShareInput, Thread};
use crate::noise::GapLengths;
use crate::quantile::nearest_rank;
use crate::{MeanwhileInput, MeanwhileSummary};

/// How a program ended, one of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedSummary {
    /// Its exit code; null where a signal ended it.
    pub code: Option<u8>,
    /// The signal that ended it.
    pub signal: Option<u8>,
}

/// What a program used, and how often it let go of the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageSummary {
    /// Time in its own code.
    pub user_ns: Nanos,
    /// Time in the kernel, on its behalf.
    pub system_ns: Nanos,
    /// How often it waited for something.
    pub voluntary: u64,
    /// How often the CPU was taken from it.
    pub involuntary: u64,
    /// Pages that had to be found for it, without a disk.
    pub minor_faults: u64,
    /// Pages that had to be read for it.
    pub major_faults: u64,
}

/// When a program could have run, and did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptionsInput<'a> {
    /// How long it had the CPU, or could have had it.
    pub ready: Nanos,
    /// Each interruption.
    pub gaps: &'a [Span],
    /// The CPU of each of them; empty where there is only one.
    pub gap_cpus: &'a [Cpu],
    /// Who took them.
    pub shares: Vec<ShareInput<'a>>,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInput<'a> {
    /// The CPUs.
    pub cpus: CpuSet,
    /// Its `SCHED_FIFO` priority; `None`: an ordinary task.
    pub fifo: Option<u8>,
    /// How long it ran.
    pub elapsed: Nanos,
    /// How it ended.
    pub ended: EndedSummary,
    /// What it used.
    pub usage: UsageSummary,
    /// What the events say; `None` where nobody saw single ones.
    pub interruptions: Option<InterruptionsInput<'a>>,
    /// What `/proc` counted in the meantime.
    pub meanwhile: MeanwhileInput<'a>,
    /// How many of the longest interruptions to tell of.
    pub top: usize,
}

/// What one culprit took of an interruption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What kind of event it was.
    pub kind: CulpritKind,
    /// Its name.
    pub name: String,
    /// Of a thread, who it is.
    #[serde(flatten)]
    pub thread: Option<Thread>,
    /// What it took.
    pub ns: Nanos,
}

/// One interruption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruption {
    /// When it began, from the program's start.
    pub start_ns: Nanos,
    /// How long it was.
    pub ns: Nanos,
    /// The CPU.
    pub cpu: Option<Cpu>,
    /// Who took it, the most first.
    pub culprits: Vec<Part>,
}

/// The interruptions of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterruptionsSummary {
    /// How long it had the CPU, or could have had it.
    pub ready_ns: Nanos,
    /// How many there were.
    pub gaps: u64,
    /// How long they were together.
    pub noise_ns: Nanos,
    /// The same as a part of `ready_ns`; null where that is nothing.
    pub noise_ppm: Option<Ppm>,
    /// How long each was.
    pub gap_ns: GapLengths,
    /// The longest, that one first.
    pub longest: Vec<Interruption>,
    /// Who took them; their `ns` add up to `noise_ns`.
    pub culprits: Vec<Culprit>,
}

/// What a program suffered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The CPUs.
    pub cpus: CpuSet,
    /// The scheduling policy it began with: `other`, `fifo`.
    pub policy: String,
    /// Its `SCHED_FIFO` priority; null for an ordinary task.
    pub priority: Option<u8>,
    /// How it ended.
    pub ended: EndedSummary,
    /// How long it ran.
    pub elapsed_ns: Nanos,
    /// What it used.
    #[serde(flatten)]
    pub usage: UsageSummary,
    /// Who saw the events (`bpf`, `proc`), for those who know to say; null where nobody
    /// looked.
    pub source: Option<String>,
    /// Its interruptions; null where nobody saw single events.
    pub interruptions: Option<InterruptionsSummary>,
    /// What `/proc` counted in the meantime.
    pub meanwhile: MeanwhileSummary,
}

impl RunSummary {
    /// Summarises what was seen.
    pub fn of(input: &RunInput<'_>) -> Self {
        let interruptions = input.interruptions.as_ref();
        Self {
            cpus: input.cpus.clone(),
            policy: if input.fifo.is_some() { "fifo" } else { "other" }.to_owned(),
            priority: input.fifo,
            ended: input.ended,
            elapsed_ns: input.elapsed,
            usage: input.usage,
            source: None,
            interruptions: interruptions
                .map(|found| InterruptionsSummary::of(found, &input.cpus, input.top)),
            meanwhile: MeanwhileSummary::of(&input.meanwhile),
        }
    }
}

impl InterruptionsSummary {
    fn of(input: &InterruptionsInput<'_>, cpus: &CpuSet, top: usize) -> Self {
        let noise: Nanos = input.gaps.iter().map(|gap| gap.length).sum();
        let mut sorted: Vec<Nanos> = input.gaps.iter().map(|gap| gap.length).collect();
        sorted.sort_unstable();
        Self {
            ready_ns: input.ready,
            gaps: u64::try_from(input.gaps.len()).unwrap_or(u64::MAX),
            noise_ns: noise,
            noise_ppm: Ppm::of(noise, input.ready),
            gap_ns: GapLengths {
                p50: nearest_rank(&sorted, 500),
                p99: nearest_rank(&sorted, 990),
                p99_9: nearest_rank(&sorted, 999),
                max: sorted.last().copied(),
            },
            longest: longest(input, cpus, top),
            culprits: Culprit::of(&input.shares, None, noise),
        }
    }
}

fn longest(
    input: &InterruptionsInput<'_>,
    cpus: &CpuSet,
    top: usize,
) -> Vec<Interruption> {
    let mut gaps: Vec<(usize, &Span)> = input.gaps.iter().enumerate().collect();
    gaps.sort_by_key(|(at, gap)| (Reverse(gap.length), *at));
    gaps.truncate(top);
    let interruption = |(at, gap): (usize, &Span)| {
        let shares = input.shares.iter().filter(|share| share.gap == at);
        let mut culprits: Vec<Part> = shares.map(part).collect();
        culprits.sort_by_key(|part| Reverse(part.ns));
        let cpu = input.gap_cpus.get(at).copied().or_else(|| cpus.first());
        Interruption { start_ns: gap.start, ns: gap.length, cpu, culprits }
    };
    gaps.into_iter().map(interruption).collect()
}

fn part(share: &ShareInput<'_>) -> Part {
    let (kind, thread, ns) = (share.kind, share.thread, share.ns);
    Part { kind, name: share.name.to_owned(), thread, ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, length: u64) -> Span {
        Span { start: Nanos::from_nanos(start), length: Nanos::from_nanos(length) }
    }

    fn share(gap: usize, kind: CulpritKind, name: &str, ns: u64) -> ShareInput<'_> {
        let (ns, inside) = (Nanos::from_nanos(ns), Nanos::ZERO);
        let is_thread = kind == CulpritKind::Thread;
        let thread = is_thread.then_some(Thread { tid: 40, pid: 40, prio: 120 });
        ShareInput { gap, kind, name, thread, owner: None, ns, inside, entry: None }
    }

    fn input(interruptions: Option<InterruptionsInput<'_>>) -> RunInput<'_> {
        RunInput {
            cpus: Cpu::new(1).into(),
            fifo: Some(99),
            elapsed: Nanos::from_secs(2),
            ended: EndedSummary { code: Some(3), signal: None },
            usage: UsageSummary {
                user_ns: Nanos::from_secs(1),
                system_ns: Nanos::from_millis(5),
                voluntary: 7,
                involuntary: 2,
                minor_faults: 90,
                major_faults: 0,
            },
            interruptions,
            meanwhile: MeanwhileInput::default(),
            top: 1,
        }
    }

    /// Check the keys and the form of every value: this is the JSON contract.
    #[test]
    fn contract() {
        use CulpritKind::{Thread, Timer};
        let gaps = [span(1_000, 4_000), span(9_000, 6_000)];
        let shares = vec![
            share(0, Timer, "tick_nohz_handler", 4_000),
            share(1, Timer, "tick_nohz_handler", 1_000),
            share(1, Thread, "kworker/1:1", 5_000),
        ];
        let ready = Nanos::from_secs(1);
        let found = RunSummary::of(&input(Some(InterruptionsInput {
            ready,
            gaps: &gaps,
            gap_cpus: &[],
            shares,
        })));
        let expected = serde_json::json!({
            "cpus": "1", "policy": "fifo", "priority": 99,
            "ended": {"code": 3, "signal": null}, "elapsed_ns": 2_000_000_000_u64,
            "user_ns": 1_000_000_000, "system_ns": 5_000_000, "voluntary": 7,
            "involuntary": 2, "minor_faults": 90, "major_faults": 0, "source": null,
            "interruptions": {
                "ready_ns": 1_000_000_000, "gaps": 2, "noise_ns": 10_000,
                "noise_ppm": 10.0,
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
            },
            "meanwhile": {"span_ns": 0, "interrupts": null, "softirqs": null,
                "timer_hz": null, "preempted": 0, "waited_ns": null, "steal_ns": null},
        });
        assert_eq!(serde_json::to_value(&found).unwrap(), expected);
        assert_eq!(serde_json::from_value::<RunSummary>(expected).unwrap(), found);
    }

    /// Check that what nobody saw is not known, rather than nothing.
    #[test]
    fn unseen() {
        assert_eq!(RunSummary::of(&input(None)).interruptions, None);
        let none = InterruptionsInput {
            ready: Nanos::ZERO,
            gaps: &[],
            gap_cpus: &[],
            shares: Vec::new(),
        };
        let found = RunSummary::of(&input(Some(none))).interruptions.unwrap();
        assert_eq!((found.gaps, found.noise_ppm, found.gap_ns.max), (0, None, None));
    }
}
