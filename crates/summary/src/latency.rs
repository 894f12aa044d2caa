//! The summary of `latency`: the wake-up latency of each timer expiry.
//!
//! A wake-up handles all expiries since the last one, and each of them is a sample with its own
//! latency. Expiries missed while the thread was late therefore count, too (no coordinated
//! omission). The samples of a wake-up are an interval apart, so they are counted, not stored.

use std::ops::Range;

use recording::{CpuLatency, LatencySeries, LatencySpec, ProcCounts};
use serde::Serialize;
use stats::{Distribution, Latencies};
use units::{Cpu, Nanos};

use crate::latency::causes::{WakeCausesSummary, WakeCulprit};
use crate::latency::idle_states::IdleStateSummary;
use crate::latency::samples::{Fall, lateness};
use crate::proc_counts::ProcSummary;

pub(crate) mod cause;
pub(crate) mod causes;
pub(crate) mod idle_states;
pub(crate) mod idle_use;
pub(crate) mod late_wakeups;
pub(crate) mod samples;

/// Timer wake-up latency of one CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuLatencySummary {
    /// The CPU.
    pub cpu: Cpu,
    /// The number of expiries that were handled; each is a sample.
    pub samples: u64,
    /// The time of these expiries: as many intervals.
    pub elapsed_ns: Nanos,
    /// The number of wake-ups of the thread.
    pub wakeups: u64,
    /// The expiries while the thread was still late for an earlier one.
    pub missed: u64,
    /// The timer slack of the thread.
    pub slack_ns: Nanos,
    /// The duration of one reading of the clock, which is part of every sample.
    pub clock_ns: Nanos,
    /// The latency of the samples.
    pub late_ns: Distribution<Latencies>,
    /// What took the time from each expiry to the end of the wake-up; its keys are missing if events were
    /// not traced.
    #[serde(flatten)]
    pub causes: Option<WakeCausesSummary>,
    /// The counters of `/proc` during the measurement.
    pub proc: ProcSummary,
    /// The CPU latency limit in microseconds (PM QoS); [`crate::NO_WAKE_LIMIT`] without a limit, null
    /// if it could not be read.
    pub wake_limit_us: Option<u32>,
    /// The idle states of the CPU, the shallowest first.
    pub idle_states: Vec<IdleStateSummary>,
}

/// Timer wake-up latency.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencySummary {
    /// The time between two expiries.
    pub interval_ns: Nanos,
    /// The timer: `clock_nanosleep`, `timerfd`.
    pub timer: String,
    /// The scheduling policy of the threads: `other`, `fifo`.
    pub policy: String,
    /// The `SCHED_FIFO` priority; null for ordinary tasks.
    pub priority: Option<u8>,
    /// Each CPU, in the order of the parameters.
    pub cpus: Vec<CpuLatencySummary>,
    /// The culprits of all CPUs together, the largest first; missing if events were not traced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub culprits: Vec<WakeCulprit>,
}

impl LatencySummary {
    /// Summarizes each CPU.
    pub fn of(spec: &LatencySpec, series: &LatencySeries) -> Self {
        let cpus = series.cpus.iter();
        let cpus = cpus.map(|cpu| CpuLatencySummary::of(spec.interval_ns, cpu));
        let cpus: Vec<CpuLatencySummary> = cpus.collect();
        let causes = cpus.iter().filter_map(|cpu| cpu.causes.as_ref());
        Self {
            culprits: WakeCulprit::together(causes.flat_map(|causes| &causes.culprits)),
            interval_ns: spec.interval_ns,
            timer: spec.timer.name().to_owned(),
            policy: if spec.fifo.is_some() { "fifo" } else { "other" }.to_owned(),
            priority: spec.fifo,
            cpus,
        }
    }

    /// Summarizes some of the wake-ups of each CPU.
    pub(crate) fn of_part(
        spec: &LatencySpec,
        series: &LatencySeries,
        wakeups: Range<usize>,
    ) -> Self {
        let part = |cpu: &CpuLatency| CpuLatency {
            cpu: cpu.cpu,
            first_ns: cpu.first_ns,
            slack_ns: cpu.slack_ns,
            clock_ns: cpu.clock_ns,
            wakeups: cpu.wakeups.get(wakeups.clone()).unwrap_or_default().to_vec(),
            lost: None,
            causes: None,
            proc: ProcCounts::default(),
            wake_limit_us: None,
            idle_states: Vec::new(),
        };
        let cpus = series.cpus.iter().map(part).collect();
        Self::of(spec, &LatencySeries { cpus, ..*series })
    }
}

impl CpuLatencySummary {
    fn of(interval: Nanos, input: &CpuLatency) -> Self {
        let falls: Vec<Fall> =
            input.wakeups.iter().filter_map(|w| Fall::of(*w, interval)).collect();
        let lost = input.lost.filter(|lost| lost.samples > 0);
        let stored = falls.iter().map(|fall| fall.samples);
        let samples = stored.chain(lost.map(|lost| lost.samples));
        let samples = samples.fold(0, u64::saturating_add);
        let stored = input.wakeups.len() as u64;
        let wakeups = stored.saturating_add(lost.map_or(0, |lost| lost.wakeups));
        Self {
            cpu: input.cpu,
            samples,
            elapsed_ns: interval.saturating_mul(samples),
            wakeups,
            missed: samples.saturating_sub(wakeups),
            slack_ns: input.slack_ns,
            clock_ns: input.clock_ns,
            late_ns: lateness(&falls, lost, samples),
            causes: WakeCausesSummary::of(interval, input),
            proc: ProcSummary::of(&input.proc),
            wake_limit_us: input.wake_limit_us,
            idle_states: input
                .idle_states
                .iter()
                .map(|state| IdleStateSummary::of(state, input.wake_limit_us))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use recording::{IdleUse, LostWakeups, ProcCounts, Timer, Wakeup};
    use stats::quantile;

    use super::*;
    use crate::metrics::limit::{Limit, exceeded};
    use crate::summary::Summary;

    const INTERVAL: Nanos = Nanos::from_millis(1);

    fn input(wakeups: &[(u64, u64)], lost: Option<LostWakeups>) -> CpuLatency {
        let wakeup =
            |&(expiries, late)| Wakeup { expiries, late_ns: Nanos::from_nanos(late) };
        let state = |name: &str, latency_us, disabled| IdleUse {
            name: name.to_owned(),
            latency_us,
            disabled,
            entered: 7,
            time_ns: Nanos::from_micros(9),
        };
        CpuLatency {
            cpu: Cpu::new(3),
            first_ns: Nanos::ZERO,
            slack_ns: Nanos::ZERO,
            clock_ns: Nanos::from_nanos(25),
            wakeups: wakeups.iter().map(wakeup).collect(),
            lost,
            causes: None,
            proc: ProcCounts::default(),
            wake_limit_us: Some(1),
            idle_states: vec![
                state("POLL", 0, false),
                state("C1", 1, true),
                state("C6", 133, false),
            ],
        }
    }

    fn summary(interval_ns: Nanos, cpu: CpuLatency) -> LatencySummary {
        let spec = LatencySpec {
            cpus: "3".parse().unwrap(),
            interval_ns,
            duration_ns: Nanos::from_secs(1),
            timer: Timer::Timerfd,
            fifo: Some(80),
            trigger: recording::Trigger::default(),
        };
        let series =
            LatencySeries { began_ns: Nanos::ZERO, source: None, cpus: vec![cpu] };
        LatencySummary::of(&spec, &series)
    }

    fn lost(samples: u64, ns: u64, min: u64, max: u64) -> LostWakeups {
        let [ns, min_ns, max_ns] = [ns, min, max].map(Nanos::from_nanos);
        LostWakeups { since_ns: Nanos::ZERO, wakeups: 1, samples, ns, min_ns, max_ns }
    }

    /// Check the keys and values of the JSON contract.
    #[test]
    fn contract() {
        let lost = Some(lost(1, 9_000, 9_000, 9_000));
        let input = input(&[(1, 5_000), (3, 2_007_000), (1, 6_000)], lost);
        let found = summary(INTERVAL, input);
        let expected = serde_json::json!({
            "interval_ns": 1_000_000, "timer": "timerfd", "policy": "fifo",
            "priority": 80, "cpus": [{
                "cpu": 3, "samples": 6, "elapsed_ns": 6_000_000, "wakeups": 4, "missed": 2,
                "slack_ns": 0, "clock_ns": 25,
                "late_ns": {"min": 5_000, "mean": 506_833, "p50": 7_000,
                    "p99": 2_007_000, "p99_9": 2_007_000, "max": 2_007_000},
                "proc": {"span_ns": 0, "interrupts": null, "softirqs": null,
                    "timer_hz": null, "preempted": 0, "waited_ns": null,
                    "steal_ns": null},
                "wake_limit_us": 1,
                "idle_states": [
                    {"name": "POLL", "latency_us": 0, "allowed": true, "entered": 7,
                        "time_ns": 9_000},
                    {"name": "C1", "latency_us": 1, "allowed": false, "entered": 7,
                        "time_ns": 9_000},
                    {"name": "C6", "latency_us": 133, "allowed": false, "entered": 7,
                        "time_ns": 9_000},
                ],
            }],
        });
        assert_eq!(serde_json::to_value(&found).unwrap(), expected);
    }

    /// Check that a delay of twenty intervals is twenty samples, which determine the p99 of two
    /// thousand.
    #[test]
    fn one_delay_is_many_samples() {
        let mut wakeups = vec![(1, 4_000); 1_980];
        wakeups.push((20, 19_500_000));
        let cpu = summary(INTERVAL, input(&wakeups, None)).cpus.remove(0);
        assert_eq!((cpu.samples, cpu.wakeups, cpu.missed), (2_000, 1_981, 19));
        assert_eq!(cpu.late_ns.p50, Some(Nanos::from_micros(4)));
        assert_eq!(cpu.late_ns.p99, Some(Nanos::from_micros(4)));
        assert_eq!(cpu.late_ns.p99_9, Some(Nanos::from_micros(17_500)));
        wakeups.push((1, 5_000_000));
        let cpu = summary(INTERVAL, input(&wakeups, None)).cpus.remove(0);
        assert_eq!(cpu.late_ns.p99, Some(Nanos::from_micros(500)));
    }

    /// Check that nothing is known without samples, and that extreme values neither overflow nor take
    /// too long.
    #[test]
    fn none_and_too_many() {
        let of = |wakeups: &[(u64, u64)], lost| {
            summary(INTERVAL, input(wakeups, lost)).cpus.remove(0)
        };
        for wakeups in [&[][..], &[(0, 7)]] {
            let late = of(wakeups, None).late_ns;
            assert_eq!(
                (late.min, late.mean, late.p99, late.max),
                (None, None, None, None)
            );
        }
        let late = of(&[(u64::MAX, u64::MAX); 3], None).late_ns;
        assert_eq!((late.min, late.max), (Some(Nanos::ZERO), Some(Nanos::MAX)));
        let found = summary(Nanos::ZERO, input(&[(5, 8)], None));
        assert_eq!(found.cpus[0].late_ns.p50, Some(Nanos::from_nanos(6)));
    }

    /// Check that a latency equal to the limit does not exceed it.
    #[test]
    fn limits() {
        let found = Summary::Latency(summary(INTERVAL, input(&[(2, 1_500_000)], None)));
        let later_than = |micros| {
            let limit = Limit::late(Nanos::from_micros(micros));
            let found = exceeded(&found, &[limit]).into_iter();
            found.map(|(late, most)| (late.cpu, late.value, most)).collect::<Vec<_>>()
        };
        assert_eq!(later_than(1_500), []);
        let excess = (Some(Cpu::new(3)), 1_500_000.0, 1_499_000.0);
        assert_eq!(later_than(1_499), [excess]);
    }

    proptest! {
        /// Compare all statistics with those of samples listed one by one.
        #[test]
        fn against_a_brute_force(
            wakeups in prop::collection::vec((1u64..9, 0u64..40), 0..60),
            interval in 1u64..12,
            lost_samples in prop::collection::vec(0u64..80, 0..5),
        ) {
            // A wake-up handles only expiries of the past.
            let wakeups: Vec<(u64, u64)> = wakeups
                .into_iter()
                .map(|(expiries, more)| (expiries, (expiries - 1) * interval + more))
                .collect();
            let stored = wakeups.iter().flat_map(|&(expiries, late)| {
                (0..expiries).map(move |number| late - number * interval)
            });
            let mut stored: Vec<u64> = stored.collect();
            stored.sort_unstable();
            let mut all = stored.clone();
            all.extend(&lost_samples);
            let (least, most) = (all.iter().min(), all.iter().max());
            let count = u64::try_from(lost_samples.len()).unwrap();
            let lost = lost(
                count,
                lost_samples.iter().sum(),
                lost_samples.iter().copied().min().unwrap_or(0),
                lost_samples.iter().copied().max().unwrap_or(0),
            );
            let lost = (count > 0).then_some(lost);

            let found = summary(Nanos::from_nanos(interval), input(&wakeups, lost));
            let found = &found.cpus[0];
            let late = found.late_ns;
            let get = |late: Option<Nanos>| late.map(Nanos::get);
            prop_assert_eq!(found.samples, u64::try_from(all.len()).unwrap());
            prop_assert_eq!(get(late.p50), quantile(&stored, 500_000));
            prop_assert_eq!(get(late.p99), quantile(&stored, 990_000));
            prop_assert_eq!(get(late.p99_9), quantile(&stored, 999_000));
            prop_assert_eq!((get(late.min), get(late.max)), (least.copied(), most.copied()));
            let mean = all.iter().sum::<u64>().checked_add(found.samples / 2);
            prop_assert_eq!(get(late.mean), mean.unwrap().checked_div(found.samples));
        }
    }
}
