//! How late a timer wakes a thread: what is asked and what is seen.
//!
//! A thread answers expiries of a schedule that is fixed beforehand: the first one, and then
//! one each interval. What is kept are its wake-ups; `stats` makes samples of them.

use serde::{Deserialize, Serialize};
use units::{Cpu, CpuSet, Nanos};

use crate::noise::Meanwhile;

/// What wakes the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timer {
    /// `clock_nanosleep(2)` until an absolute time, anew for each expiry.
    ClockNanosleep,
    /// One periodic `timerfd(2)` from an absolute time on, which counts its expiries itself.
    Timerfd,
}

impl Timer {
    /// Its name, as it stands in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClockNanosleep => "clock_nanosleep",
            Self::Timerfd => "timerfd",
        }
    }
}

/// What `latency` is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencySpec {
    /// The CPUs to sleep on, one thread each.
    pub cpus: CpuSet,
    /// The time from one expiry to the next.
    pub interval_ns: Nanos,
    /// How long: each CPU has as many expiries as intervals fit into it.
    pub duration_ns: Nanos,
    /// What wakes the threads.
    pub timer: Timer,
    /// The `SCHED_FIFO` priority of the threads; `None`: ordinary tasks.
    pub fifo: Option<u8>,
}

/// What was seen on all CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencySeries {
    /// `CLOCK_MONOTONIC`, the clock of the schedule, at the recording's beginning.
    pub began_ns: Nanos,
    /// What was seen, CPU by CPU, in rising order.
    pub cpus: Vec<CpuLatency>,
}

/// What was seen on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuLatency {
    /// The CPU.
    pub cpu: Cpu,
    /// From the recording's beginning to the first expiry.
    pub first_ns: Nanos,
    /// How much later than asked the kernel may let the timer expire: the thread's timer
    /// slack, or zero where it has none (`SCHED_FIFO`, `timerfd`).
    pub slack_ns: Nanos,
    /// What one reading of the clock takes (median): part of every sample.
    pub clock_ns: Nanos,
    /// The wake-ups, in order: together they answer the expiries one after the other.
    pub wakeups: Vec<Wakeup>,
    /// What came after the room for wake-ups was full.
    pub lost: Option<LostWakeups>,
    /// What `/proc` says happened on the CPU in the meantime.
    pub meanwhile: Meanwhile,
    /// How long waking the CPU might take at most, in microseconds (PM QoS); 2,000,000,000 where
    /// there was no limit, `None` where it could not be read.
    #[serde(default)]
    pub wake_limit_us: Option<u32>,
    /// The CPU's idle states, the shallowest first; none where the kernel tells of none.
    #[serde(default)]
    pub idle_states: Vec<IdleUse>,
}

/// An idle state, and what it was used for in the meantime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleUse {
    /// The state's name: `C6`.
    pub name: String,
    /// How long waking up from it takes, in microseconds, as the idle driver has it.
    pub latency_us: u64,
    /// Whether it was switched off.
    pub disabled: bool,
    /// How often the CPU entered it.
    pub entered: u64,
    /// How long the CPU was in it; a stay counts when it ends.
    pub time_ns: Nanos,
}

/// One time the thread woke up. Written as the pair `[expiries, late_ns]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, Nanos)", into = "(u64, Nanos)")]
pub struct Wakeup {
    /// How many expiries had passed that no earlier wake-up had answered: more than one
    /// where the thread was late by more than an interval.
    pub expiries: u64,
    /// How late it was for the first of them; for each following one it was an interval
    /// less.
    pub late_ns: Nanos,
}

impl From<(u64, Nanos)> for Wakeup {
    fn from((expiries, late_ns): (u64, Nanos)) -> Self {
        Self { expiries, late_ns }
    }
}

impl From<Wakeup> for (u64, Nanos) {
    fn from(wakeup: Wakeup) -> Self {
        (wakeup.expiries, wakeup.late_ns)
    }
}

/// Wake-ups that were seen after the room was full: counted and summed, but not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostWakeups {
    /// The first expiry that they answered, counted from the CPU's first one.
    pub since_ns: Nanos,
    /// How many wake-ups there were.
    pub wakeups: u64,
    /// How many expiries they answered.
    pub samples: u64,
    /// How late they were for each, added up.
    pub ns: Nanos,
    /// The least of it.
    pub min_ns: Nanos,
    /// The most of it.
    pub max_ns: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the keys and the form of every value: this is what files hold.
    #[test]
    fn contract() {
        let spec = LatencySpec {
            cpus: "0-1".parse().unwrap(),
            interval_ns: Nanos::from_micros(997),
            duration_ns: Nanos::from_secs(10),
            timer: Timer::ClockNanosleep,
            fifo: None,
        };
        let series = LatencySeries {
            began_ns: Nanos::from_secs(70),
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
                meanwhile: Meanwhile::default(),
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
                "meanwhile": {"span_ns": 0, "interrupts": null, "softirqs": null,
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

    /// Check that a timer is called what it is in files.
    #[test]
    fn names() {
        for timer in [Timer::ClockNanosleep, Timer::Timerfd] {
            assert_eq!(serde_json::to_value(timer).unwrap(), timer.name());
        }
    }
}
