//! The causes of late wake-ups: the time by part and culprit.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use recording::{CpuLatency, Thread, WakePart};
use serde::Serialize;
use units::{Nanos, Ppm};

use crate::latency::cause::WakeCause;
use crate::latency::late_wakeups::{LateWakeupSummary, late_wakeups};

/// The name of the kernel's idle tasks, of all CPUs together.
const IDLE: &str = "swapper";
/// The name and the priority of the threads of the process that measured, together.
const OWN: &str = "noisefloor";
const ORDINARY: i32 = 120;

/// A part of all wake-ups of a CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WakePartSummary {
    /// The part.
    pub part: WakePart,
    /// Its time, of all wake-ups together.
    pub ns: Nanos,
    /// That as a share of their latencies.
    pub late_ppm: Option<Ppm>,
}

/// The time of one culprit in one part of the wake-ups.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WakeCulprit {
    /// The part.
    pub part: WakePart,
    /// The culprit.
    #[serde(flatten)]
    pub cause: WakeCause,
    /// The number of wake-ups with a share of it.
    pub wakeups: u64,
    /// The sum of its shares.
    pub ns: Nanos,
    /// That as a share of the latency of all wake-ups.
    pub late_ppm: Option<Ppm>,
    /// The longest share.
    pub max_ns: Nanos,
}

/// The causes of one CPU's wake-ups.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WakeCausesSummary {
    /// The parts, in order; they add up to the latency of all stored wake-ups.
    pub parts: Vec<WakePartSummary>,
    /// The culprits of each part, the largest first; they add up to the same.
    pub culprits: Vec<WakeCulprit>,
    /// The latest wake-ups, the latest first.
    pub latest: Vec<LateWakeupSummary>,
}

impl WakeCausesSummary {
    /// The causes of a CPU's wake-ups; `None` if events were not traced.
    pub(crate) fn of(interval: Nanos, cpu: &CpuLatency) -> Option<Self> {
        let causes = cpu.causes.as_ref()?;
        let all: Nanos = causes.shares.iter().map(|share| share.ns).sum();
        let part = |part: WakePart| {
            let shares = causes.shares.iter().filter(|share| share.part == part);
            let ns = shares.map(|share| share.ns).sum();
            WakePartSummary { part, ns, late_ppm: Ppm::of(ns, all) }
        };
        let culprits = causes.shares.iter().filter_map(|share| {
            Some(WakeCulprit {
                part: share.part,
                cause: WakeCause::of(causes, share.culprit)?,
                wakeups: share.wakeups,
                ns: share.ns,
                late_ppm: None,
                max_ns: share.max_ns,
            })
        });
        let latest = late_wakeups(interval, cpu, causes);
        Some(Self {
            parts: WakePart::ALL.map(part).into(),
            culprits: WakeCulprit::added_up(culprits),
            latest,
        })
    }
}

impl WakeCulprit {
    /// The culprits of several CPUs; their idle tasks are one, and so are threads of the process that
    /// measured.
    pub(crate) fn together<'a>(culprits: impl Iterator<Item = &'a Self>) -> Vec<Self> {
        Self::added_up(culprits.cloned().map(|mut culprit| {
            if culprit.cause.is_idle() {
                culprit.cause.name = IDLE.to_owned();
            }
            if let Some(own) = culprit.cause.thread.take_if(|thread| thread.own) {
                culprit.cause.name = OWN.to_owned();
                culprit.cause.thread =
                    Some(Thread { tid: own.pid, prio: ORDINARY, ..own });
            }
            culprit
        }))
    }

    /// Each culprit of each part once, in descending order, with its share of all of them.
    fn added_up(culprits: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut sums: BTreeMap<(WakePart, WakeCause), Self> = BTreeMap::new();
        for culprit in culprits {
            let key = (culprit.part, culprit.cause.clone());
            sums.entry(key)
                .and_modify(|sum| {
                    sum.wakeups += culprit.wakeups;
                    sum.ns = sum.ns + culprit.ns;
                    sum.max_ns = sum.max_ns.max(culprit.max_ns);
                })
                .or_insert(culprit);
        }
        let mut sums: Vec<Self> = sums.into_values().collect();
        let all = sums.iter().map(|sum| sum.ns).sum();
        for sum in &mut sums {
            sum.late_ppm = Ppm::of(sum.ns, all);
        }
        sums.sort_by_key(|sum| Reverse(sum.ns));
        sums
    }
}

#[cfg(test)]
mod tests {
    use recording::{
        Culprit, CulpritKind, LateWakeup, ProcCounts, WakeMoment, WakeShare, Wakeup,
        WakeupCauses,
    };
    use units::{Cpu, Span};

    use super::*;

    const US: fn(u64) -> Nanos = Nanos::from_micros;

    fn thread(name: &str, tid: u32) -> Culprit {
        let own = name.starts_with("late/");
        let thread = Thread { tid, pid: tid, prio: 0, owner: None, unit: None, own };
        let thread = Some(thread);
        Culprit { kind: CulpritKind::Thread, name: name.to_owned(), thread }
    }

    /// A thread runs for 2.5 ms, of which 0.5 ms are before an expiry; the tick interrupts it.
    fn cpu() -> CpuLatency {
        let timer = |name: &str| Culprit {
            kind: CulpritKind::Timer,
            name: name.to_owned(),
            thread: None,
        };
        let share = |part, culprit, ns| WakeShare {
            part,
            culprit,
            wakeups: 1,
            ns: US(ns),
            max_ns: US(ns),
        };
        let mut now = 0;
        let mut moment = |part, culprit, length| {
            let span = Span { start: US(now), length: US(length) };
            now += length;
            WakeMoment { part, culprit, span }
        };
        let late = LateWakeup {
            wakeup: 1,
            before_ns: US(500),
            moments: vec![
                moment(None, 0, 400),
                moment(None, 1, 2),
                moment(None, 0, 98),
                moment(Some(WakePart::Expiry), 0, 1),
                moment(Some(WakePart::Interrupt), 1, 2),
                moment(Some(WakePart::Scheduling), 0, 1_992),
                moment(Some(WakePart::Return), 2, 5),
            ],
        };
        let wakeup = |expiries, late| Wakeup { expiries, late_ns: US(late) };
        CpuLatency {
            cpu: Cpu::new(3),
            first_ns: US(40),
            slack_ns: Nanos::ZERO,
            clock_ns: Nanos::ZERO,
            wakeups: vec![wakeup(2, 0), wakeup(3, 2_000), wakeup(1, 0)],
            lost: None,
            causes: Some(WakeupCauses {
                culprits: vec![
                    thread("pathd", 417),
                    timer("hrtimer_wakeup"),
                    thread("late/3", 70),
                ],
                shares: vec![
                    share(WakePart::Expiry, 0, 1),
                    share(WakePart::Interrupt, 1, 2),
                    share(WakePart::Scheduling, 0, 1_992),
                    share(WakePart::Return, 2, 5),
                ],
                latest: vec![late],
                lost: 0,
            }),
            proc: ProcCounts::default(),
            wake_limit_us: None,
            idle_states: Vec::new(),
        }
    }

    /// Check the keys and values of the JSON contract.
    #[test]
    fn contract() {
        let causes = WakeCausesSummary::of(Nanos::from_millis(1), &cpu()).unwrap();
        let mut found = serde_json::to_value(&causes).unwrap();
        let latest = found["latest"][0].take();
        assert_eq!(
            found["parts"],
            serde_json::json!([
                {"part": "expiry", "ns": 1_000, "late_ppm": 500.0},
                {"part": "interrupt", "ns": 2_000, "late_ppm": 1_000.0},
                {"part": "scheduling", "ns": 1_992_000, "late_ppm": 996_000.0},
                {"part": "return", "ns": 5_000, "late_ppm": 2_500.0},
            ])
        );
        assert_eq!(
            found["culprits"][0],
            serde_json::json!({
                "part": "scheduling", "kind": "thread", "name": "pathd", "tid": 417,
                "pid": 417, "prio": 0, "wakeups": 1, "ns": 1_992_000,
                "late_ppm": 996_000.0, "max_ns": 1_992_000,
            })
        );
        assert_eq!(found["culprits"][1]["name"], "late/3");
        assert_eq!(
            latest["main"],
            serde_json::json!({
                "part": "scheduling", "kind": "thread", "name": "pathd", "tid": 417,
                "pid": 417, "prio": 0, "ns": 1_993_000, "before_ns": 498_000,
            })
        );
        assert_eq!(
            (&latest["at_ns"], &latest["late_ns"]),
            (&2_040_000.into(), &2_000_000.into())
        );
        assert_eq!(
            latest["moments"][1],
            serde_json::json!({
                "part": null, "after_ns": -100_000, "ns": 2_000, "kind": "timer",
                "name": "hrtimer_wakeup",
            })
        );
    }

    /// Check that idle tasks of several CPUs are one culprit, and other threads are not.
    #[test]
    fn several_cpus() {
        let cause = |culprit: Culprit| WakeCause {
            kind: culprit.kind,
            name: culprit.name,
            thread: culprit.thread,
        };
        let of = |name: &str, tid| WakeCulprit {
            part: WakePart::Expiry,
            cause: cause(thread(name, tid)),
            wakeups: 1,
            ns: US(tid.into()),
            late_ppm: None,
            max_ns: US(1),
        };
        let all = [
            of("swapper/0", 0),
            of("swapper/1", 0),
            of("one", 7),
            of("one", 8),
            of("late/3", 70),
        ];
        let found = WakeCulprit::together(all.iter());
        let found = found.iter().map(|one| (one.cause.name.as_str(), one.wakeups));
        assert_eq!(
            found.collect::<Vec<_>>(),
            [("noisefloor", 1), ("one", 1), ("one", 1), ("swapper", 2)]
        );
    }
}
