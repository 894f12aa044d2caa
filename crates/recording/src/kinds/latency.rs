//! Timer wake-up latency: parameters and measured values.
//!
//! A thread is woken at expiry times that are fixed in advance: the first one, and then one per
//! interval. Its wake-ups are stored; `summary` derives the samples.

use serde::{Deserialize, Serialize};
use units::{Cpu, CpuSet, Nanos, Span};

use crate::ProcCounts;
use crate::blame::Source;
use crate::kinds::wakeup_causes::WakeupCauses;
use crate::moment::Trigger;
use crate::moments_found::{Value, Values};
use crate::tuple::tuple_form;

/// The timer that wakes the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timer {
    /// `clock_nanosleep(2)` until an absolute time, for each expiry.
    ClockNanosleep,
    /// One periodic `timerfd(2)` that begins at an absolute time and counts its expiries.
    Timerfd,
}

impl Timer {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClockNanosleep => "clock_nanosleep",
            Self::Timerfd => "timerfd",
        }
    }
}

/// The parameters of `latency`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencySpec {
    /// The CPUs, each with one thread.
    pub cpus: CpuSet,
    /// The time from one expiry to the next.
    pub interval_ns: Nanos,
    /// The duration: each CPU has as many expiries as intervals fit into it.
    pub duration_ns: Nanos,
    /// The timer that wakes the threads.
    pub timer: Timer,
    /// The `SCHED_FIFO` priority of the threads; `None`: ordinary tasks.
    pub fifo: Option<u8>,
    /// The limit above which a wake-up is a moment.
    #[serde(flatten)]
    pub trigger: Trigger,
}

/// The measured values of all CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencySeries {
    /// `CLOCK_MONOTONIC`, the clock of the schedule, at the recording's beginning.
    pub began_ns: Nanos,
    /// The source of the events that late wake-ups are attributed to; `None` if events were not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The measured values of each CPU, in rising order.
    pub cpus: Vec<CpuLatency>,
}

/// The measured values of one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuLatency {
    /// The CPU.
    pub cpu: Cpu,
    /// From the recording's beginning to the first expiry.
    pub first_ns: Nanos,
    /// The thread's timer slack, by which the kernel may delay the timer; zero if it has no effect
    /// (`SCHED_FIFO`, `timerfd`).
    pub slack_ns: Nanos,
    /// The median time of one reading of the clock, which is part of every sample.
    pub clock_ns: Nanos,
    /// The wake-ups, in order. Each is for the expiries since the previous one.
    pub wakeups: Vec<Wakeup>,
    /// The wake-ups that were not stored.
    pub lost: Option<LostWakeups>,
    /// Their causes; `None` if events were not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causes: Option<WakeupCauses>,
    /// The `/proc` counters of the CPU during the measurement.
    pub proc: ProcCounts,
    /// The limit on the CPU's resume latency in microseconds (PM QoS); 2,000,000,000 if there was
    /// no limit, `None` if it could not be read.
    #[serde(default)]
    pub wake_limit_us: Option<u32>,
    /// The CPU's idle states, the shallowest first; empty if the kernel has no cpuidle driver.
    #[serde(default)]
    pub idle_states: Vec<IdleUse>,
}

impl CpuLatency {
    /// The wake-ups from their first expiry to their end, from the recording's beginning; `interval` is
    /// that of the parameters.
    pub fn spans(&self, interval: Nanos) -> impl Iterator<Item = Span> {
        let mut due = self.first_ns;
        self.wakeups.iter().map(move |wakeup| {
            let start = due;
            due = due + interval.saturating_mul(wakeup.expiries);
            Span { start, length: wakeup.late_ns }
        })
    }
}

/// An idle state, and its use during the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleUse {
    /// The state's name: `C6`.
    pub name: String,
    /// The exit latency in microseconds, as the idle driver states it.
    pub latency_us: u64,
    /// Whether it was disabled.
    pub disabled: bool,
    /// How often the CPU entered it.
    pub entered: u64,
    /// The time that the CPU spent in it; the kernel adds a stay when it ends.
    pub time_ns: Nanos,
}

/// A wake-up of the thread. Written as the pair `[expiries, late_ns]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, Nanos)", into = "(u64, Nanos)")]
pub struct Wakeup {
    /// The number of expiries since the previous wake-up: more than one if the thread was late by
    /// more than an interval.
    pub expiries: u64,
    /// The latency of the first of them; that of each later one is an interval less.
    pub late_ns: Nanos,
}

tuple_form!(Wakeup { expiries: u64, late_ns: Nanos });

/// Wake-ups when the buffer was full: counted and summed, not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostWakeups {
    /// The time of their first expiry, from the CPU's first one.
    pub since_ns: Nanos,
    /// The number of wake-ups.
    pub wakeups: u64,
    /// The number of their expiries.
    pub samples: u64,
    /// The sum of their latencies.
    pub ns: Nanos,
    /// The lowest latency.
    pub min_ns: Nanos,
    /// The highest latency.
    pub max_ns: Nanos,
}

impl LatencySeries {
    /// The wake-ups.
    pub(crate) fn values(&self, spec: &LatencySpec) -> Values<'_> {
        let (interval, began) = (spec.interval_ns, self.began_ns);
        Box::new(self.cpus.iter().flat_map(move |cpu| {
            let spans = cpu.spans(interval).enumerate();
            spans.map(move |(place, span)| Value {
                cpu: cpu.cpu,
                place,
                after: span.start,
                span: Span { start: began + span.start, ..span },
                value: span.length,
            })
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the keys and the form of every value in files.
    #[test]
    fn contract() {
        let spec = LatencySpec {
            cpus: "0-1".parse().unwrap(),
            interval_ns: Nanos::from_micros(997),
            duration_ns: Nanos::from_secs(10),
            timer: Timer::ClockNanosleep,
            fifo: None,
            trigger: Trigger::default(),
        };
        let series = LatencySeries {
            began_ns: Nanos::from_secs(70),
            source: None,
            cpus: vec![CpuLatency {
                cpu: Cpu::new(1),
                first_ns: Nanos::from_micros(1_400),
                slack_ns: Nanos::from_micros(50),
                clock_ns: Nanos::from_nanos(25),
                wakeups: vec![Wakeup { expiries: 3, late_ns: Nanos::from_micros(2_100) }],
                lost: Some(LostWakeups {
                    since_ns: Nanos::from_millis(3),
                    wakeups: 1,
                    samples: 2,
                    ns: Nanos::from_micros(1_003),
                    min_ns: Nanos::from_micros(3),
                    max_ns: Nanos::from_micros(1_000),
                }),
                causes: None,
                proc: ProcCounts::default(),
                wake_limit_us: Some(0),
                idle_states: vec![IdleUse {
                    name: "C6".to_owned(),
                    latency_us: 133,
                    disabled: false,
                    entered: 7,
                    time_ns: Nanos::from_micros(9),
                }],
            }],
        };
        let asked = serde_json::json!({
            "cpus": "0,1", "interval_ns": 997_000, "duration_ns": 10_000_000_000_u64,
            "timer": "clock_nanosleep", "fifo": null,
        });
        let seen = serde_json::json!({
            "began_ns": 70_000_000_000_u64, "cpus": [{
                "cpu": 1, "first_ns": 1_400_000, "slack_ns": 50_000, "clock_ns": 25,
                "wakeups": [[3, 2_100_000]],
                "lost": {"since_ns": 3_000_000, "wakeups": 1, "samples": 2,
                    "ns": 1_003_000, "min_ns": 3_000, "max_ns": 1_000_000},
                "proc": {"span_ns": 0, "interrupts": null, "softirqs": null,
                    "preempted": 0, "waited_ns": null, "steal_ns": null},
                "wake_limit_us": 0,
                "idle_states": [{"name": "C6", "latency_us": 133, "disabled": false,
                    "entered": 7, "time_ns": 9_000}],
            }],
        });
        assert_eq!(serde_json::to_value(&spec).unwrap(), asked);
        assert_eq!(serde_json::from_value::<LatencySpec>(asked).unwrap(), spec);
        assert_eq!(serde_json::to_value(&series).unwrap(), seen);
        assert_eq!(serde_json::from_value::<LatencySeries>(seen).unwrap(), series);
    }

    /// Check that the name of a timer is its name in files.
    #[test]
    fn names() {
        for timer in [Timer::ClockNanosleep, Timer::Timerfd] {
            assert_eq!(serde_json::to_value(timer).unwrap(), timer.name());
        }
    }
}
