//! The summary of `latency`: how late a timer woke a thread, expiry by expiry.
//!
//! A wake-up answers all expiries that had passed by then, and each of them is a sample: as
//! late as the wake-up was for it. So an expiry that had to wait for a thread that was late
//! already counts with its own wait (no coordinated omission). Samples are never laid out
//! one by one: those of a wake-up fall evenly, and can be counted.

use recording::{CpuLatency, LatencySeries, LatencySpec, LostWakeups, Wakeup};
use serde::{Deserialize, Serialize};
use units::{Cpu, Nanos};

use crate::MeanwhileSummary;
use crate::distribution::{Distribution, Latencies, quantile, rank};
use crate::summary::latency::idle_states::IdleStateSummary;

pub(crate) mod idle_states;

/// How late a timer woke a thread of one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuLatencySummary {
    /// The CPU.
    pub cpu: Cpu,
    /// How many expiries were answered: each is a sample.
    pub samples: u64,
    /// The time in which they came: as many intervals.
    pub elapsed_ns: Nanos,
    /// How often the thread woke up for them.
    pub wakeups: u64,
    /// The expiries that came while the thread was still late for an earlier one.
    pub missed: u64,
    /// How much later than asked the kernel may let the timer expire.
    pub slack_ns: Nanos,
    /// What one reading of the clock takes, which is part of every sample.
    pub clock_ns: Nanos,
    /// How late the samples were.
    pub late_ns: Distribution<Latencies>,
    /// What `/proc` counted in the meantime.
    pub meanwhile: MeanwhileSummary,
    /// How long waking the CPU might take at most, in microseconds (PM QoS); [`crate::NO_WAKE_LIMIT`]
    /// where there was no limit, null where it could not be read.
    pub wake_limit_us: Option<u32>,
    /// The CPU's idle states, the shallowest first.
    pub idle_states: Vec<IdleStateSummary>,
}

/// How late a timer woke threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// The time from one expiry to the next.
    pub interval_ns: Nanos,
    /// What woke the threads: `clock_nanosleep`, `timerfd`.
    pub timer: String,
    /// Their scheduling policy: `other`, `fifo`.
    pub policy: String,
    /// Their `SCHED_FIFO` priority; null for ordinary tasks.
    pub priority: Option<u8>,
    /// CPU by CPU, in the order given.
    pub cpus: Vec<CpuLatencySummary>,
}

impl LatencySummary {
    /// Summarises what was seen, CPU by CPU.
    pub fn of(spec: &LatencySpec, series: &LatencySeries) -> Self {
        let cpus = series.cpus.iter();
        let cpus = cpus.map(|cpu| CpuLatencySummary::of(spec.interval_ns, cpu));
        Self {
            interval_ns: spec.interval_ns,
            timer: spec.timer.name().to_owned(),
            policy: if spec.fifo.is_some() { "fifo" } else { "other" }.to_owned(),
            priority: spec.fifo,
            cpus: cpus.collect(),
        }
    }
}

impl CpuLatencySummary {
    fn of(interval: Nanos, seen: &CpuLatency) -> Self {
        let falls: Vec<Fall> =
            seen.wakeups.iter().filter_map(|w| Fall::of(*w, interval)).collect();
        let lost = seen.lost.filter(|lost| lost.samples > 0);
        let kept = falls.iter().map(|fall| fall.samples);
        let samples = kept.chain(lost.map(|lost| lost.samples));
        let samples = samples.fold(0, u64::saturating_add);
        let kept = u64::try_from(seen.wakeups.len()).unwrap_or(u64::MAX);
        let wakeups = kept.saturating_add(lost.map_or(0, |lost| lost.wakeups));
        Self {
            cpu: seen.cpu,
            samples,
            elapsed_ns: interval.saturating_mul(samples),
            wakeups,
            missed: samples.saturating_sub(wakeups),
            slack_ns: seen.slack_ns,
            clock_ns: seen.clock_ns,
            late_ns: lateness(&falls, lost, samples),
            meanwhile: MeanwhileSummary::of(&seen.meanwhile),
            wake_limit_us: seen.wake_limit_us,
            idle_states: seen
                .idle_states
                .iter()
                .map(|state| IdleStateSummary::of(state, seen.wake_limit_us))
                .collect(),
        }
    }
}

/// The samples of one wake-up: each an interval less late than the one before it.
#[derive(Debug, Clone, Copy)]
struct Fall {
    samples: u64,
    most: Nanos,
    interval: Nanos,
}

impl Fall {
    /// `None` where there are no samples.
    fn of(wakeup: Wakeup, interval: Nanos) -> Option<Self> {
        let Wakeup { expiries: samples, late_ns: most } = wakeup;
        let interval = interval.max(Nanos::from_nanos(1));
        (samples > 0).then_some(Self { samples, most, interval })
    }

    fn least(self) -> Nanos {
        self.most.saturating_sub(self.interval.saturating_mul(self.samples - 1))
    }

    fn sum(self) -> u128 {
        let ends = u128::from(self.most.get()) + u128::from(self.least().get());
        ends.saturating_mul(u128::from(self.samples)) / 2
    }

    /// How many of them are not later than that.
    fn up_to(self, late: Nanos) -> u64 {
        let above = self.most.saturating_sub(late).get();
        let later = above.div_ceil(self.interval.get());
        self.samples.saturating_sub(later)
    }
}

/// Minimum, mean and maximum are those of all samples, quantiles those of the stored ones.
fn lateness(
    falls: &[Fall],
    lost: Option<LostWakeups>,
    samples: u64,
) -> Distribution<Latencies> {
    let lost_sum = u128::from(lost.map_or(0, |lost| lost.ns.get()));
    let sums = falls.iter().map(|fall| fall.sum());
    let sum = sums.fold(lost_sum, u128::saturating_add);
    let half = u128::from(samples / 2);
    let mean = sum.saturating_add(half).checked_div(u128::from(samples));
    let mean = mean.map(|mean| u64::try_from(mean).unwrap_or(u64::MAX));
    let lost_min = lost.map(|lost| lost.min_ns);
    let lost_max = lost.map(|lost| lost.max_ns);
    let ranks = Ranks::of(falls);
    Distribution {
        min: falls.iter().map(|fall| fall.least()).chain(lost_min).min(),
        mean: mean.map(Nanos::from_nanos),
        max: falls.iter().map(|fall| fall.most).chain(lost_max).max(),
        ..Distribution::new(|key| ranks.quantile(key.millionths()?))
    }
}

/// Samples by rank: those of wake-ups with only one in order, the others as they fall.
struct Ranks {
    single: Vec<Nanos>,
    falling: Vec<Fall>,
    samples: u128,
}

impl Ranks {
    fn of(falls: &[Fall]) -> Self {
        let (single, falling): (Vec<Fall>, Vec<Fall>) =
            falls.iter().partition(|fall| fall.samples == 1);
        let mut single: Vec<Nanos> = single.iter().map(|fall| fall.most).collect();
        single.sort_unstable();
        let samples = falls.iter().map(|fall| u128::from(fall.samples)).sum();
        Self { single, falling, samples }
    }

    /// By nearest rank, as [`quantile`]: the smallest sample that at least this many millionths
    /// of the samples do not exceed, found by bisection of the lateness.
    fn quantile(&self, millionths: u32) -> Option<Nanos> {
        if self.falling.is_empty() {
            return quantile(&self.single, millionths);
        }
        let rank = rank(self.samples, millionths);
        let most = self.falling.iter().map(|fall| fall.most);
        let most = most.chain(self.single.last().copied()).max()?.get();
        let (mut low, mut high) = (0, most);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.up_to(Nanos::from_nanos(middle)) >= rank {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(Nanos::from_nanos(low))
    }

    /// How many samples are not later than that.
    fn up_to(&self, late: Nanos) -> u128 {
        let single = self.single.partition_point(|sample| *sample <= late);
        let falling = self.falling.iter().map(|fall| u128::from(fall.up_to(late)));
        falling.sum::<u128>() + u128::try_from(single).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use recording::{IdleUse, Meanwhile, Timer};

    use super::*;
    use crate::{Limit, Summary, exceeded};

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
            meanwhile: Meanwhile::default(),
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
        };
        let series = LatencySeries { began_ns: Nanos::ZERO, cpus: vec![cpu] };
        LatencySummary::of(&spec, &series)
    }

    fn lost(samples: u64, ns: u64, min: u64, max: u64) -> LostWakeups {
        let [ns, min_ns, max_ns] = [ns, min, max].map(Nanos::from_nanos);
        LostWakeups { since_ns: Nanos::ZERO, wakeups: 1, samples, ns, min_ns, max_ns }
    }

    /// Check the keys and the form of every value: this is the JSON contract.
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
                "meanwhile": {"span_ns": 0, "interrupts": null, "softirqs": null,
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
        assert_eq!(serde_json::from_value::<LatencySummary>(expected).unwrap(), found);
    }

    /// Check that twenty missed intervals are twenty samples that fall evenly, and decide
    /// the p99 of two thousand.
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

    /// Check that without a sample nothing is known, and that numbers no machine gives do
    /// not overflow or take forever.
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

    /// Check that only what is later than a limit exceeds it.
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
        /// Check all numbers against samples laid out one by one.
        #[test]
        fn against_a_brute_force(
            wakeups in prop::collection::vec((1u64..9, 0u64..40), 0..60),
            interval in 1u64..12,
            lost_samples in prop::collection::vec(0u64..80, 0..5),
        ) {
            // A wake-up answers no expiry that has not come.
            let wakeups: Vec<(u64, u64)> = wakeups
                .into_iter()
                .map(|(expiries, more)| (expiries, (expiries - 1) * interval + more))
                .collect();
            let kept = wakeups.iter().flat_map(|&(expiries, late)| {
                (0..expiries).map(move |number| late - number * interval)
            });
            let mut kept: Vec<u64> = kept.collect();
            kept.sort_unstable();
            let mut all = kept.clone();
            all.extend(&lost_samples);
            let (least, most) = (all.iter().min(), all.iter().max());
            let count = u64::try_from(lost_samples.len()).unwrap();
            let not_kept = lost(
                count,
                lost_samples.iter().sum(),
                lost_samples.iter().copied().min().unwrap_or(0),
                lost_samples.iter().copied().max().unwrap_or(0),
            );
            let not_kept = (count > 0).then_some(not_kept);

            let found = summary(Nanos::from_nanos(interval), input(&wakeups, not_kept));
            let found = &found.cpus[0];
            let late = found.late_ns;
            let get = |late: Option<Nanos>| late.map(Nanos::get);
            prop_assert_eq!(found.samples, u64::try_from(all.len()).unwrap());
            prop_assert_eq!(get(late.p50), quantile(&kept, 500_000));
            prop_assert_eq!(get(late.p99), quantile(&kept, 990_000));
            prop_assert_eq!(get(late.p99_9), quantile(&kept, 999_000));
            prop_assert_eq!((get(late.min), get(late.max)), (least.copied(), most.copied()));
            let mean = all.iter().sum::<u64>().checked_add(found.samples / 2);
            prop_assert_eq!(get(late.mean), mean.unwrap().checked_div(found.samples));
        }
    }
}
