//! Variation of a workload's run time: parameters and measured values.
//!
//! Lengths are in ticks of the counter; `clock_hz` converts them to time.

use serde::{Deserialize, Serialize};
use units::{Cpu, LengthUnit, Nanos, Span, TscDelta, TscHz};

use crate::ProcCounts;
use crate::Workload;
use crate::blame::{Blamed, Source};
use crate::moment::Trigger;
use crate::moments_found::{Value, Values};

/// The parameters of `jitter`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JitterSpec {
    /// The CPU on which the workload is run.
    pub cpu: Cpu,
    /// The workload.
    pub workload: Workload,
    /// The number of tests; `None`: as many as fit into the duration.
    pub tests: Option<u32>,
    /// How often each test runs the workload; `None`: chosen automatically.
    pub loops: Option<u32>,
    /// The duration; `None`: until all tests are done, or chosen automatically.
    pub duration_ns: Option<Nanos>,
    /// The unit in which lengths are reported.
    pub unit: LengthUnit,
    /// The `SCHED_FIFO` priority of the measuring thread; `None`: an ordinary task.
    pub fifo: Option<u8>,
    /// The limit above which the jitter of a test is a moment.
    #[serde(flatten)]
    pub trigger: Trigger,
}

/// The parameters of a run, requested or chosen automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JitterPlan {
    /// How often each test runs the workload.
    pub loops: u32,
    /// The number of tests; `None`: as many as fit into the duration.
    pub tests: Option<u32>,
    /// The duration; `None`: until all tests are done.
    pub duration_ns: Option<Nanos>,
    /// How long one run of the workload took before the tests, on average.
    pub loop_ns: Nanos,
}

/// The measured values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JitterSeries {
    /// The clock that was read: `tsc`, `cntvct` or `monotonic_raw`.
    pub clock: String,
    /// The clock's frequency, calibrated over the whole run.
    pub clock_hz: TscHz,
    /// The parameters of the run.
    pub plan: JitterPlan,
    /// `CLOCK_MONOTONIC` at the first loop's start; `None` in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ns: Option<Nanos>,
    /// From the first loop's start to the last one's end.
    pub elapsed_ns: Nanos,
    /// The tests, in order.
    pub tests: Vec<LoopTimes>,
    /// When the slowest loop of each test began (`CLOCK_MONOTONIC`); empty in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest_at_ns: Vec<Nanos>,
    /// The source of the events that jitter is attributed to; `None` if events were not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The causes of the jitter of each test: its index takes the place of that of a gap. `None` if events
    /// were not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blamed: Option<Blamed>,
    /// The tests that were not stored.
    pub lost: Option<LostTests>,
    /// The test that was incomplete at the end.
    pub unfinished: Option<UnfinishedTest>,
    /// How often the counter went backwards.
    pub backwards: u64,
    /// The `/proc` counters of the CPU during the measurement.
    pub proc: ProcCounts,
}

/// The times of a test's loops, written as `[fastest, slowest, sum]` in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[TscDelta; 3]", into = "[TscDelta; 3]")]
pub struct LoopTimes {
    /// The time of the fastest loop.
    pub fastest: TscDelta,
    /// The time of the slowest loop.
    pub slowest: TscDelta,
    /// The sum of all times.
    pub sum: TscDelta,
}

/// Tests that were made when the buffer was full: counted and summed, not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostTests {
    /// The number of tests.
    pub tests: u64,
    /// The smallest jitter.
    pub jitter_ticks_min: TscDelta,
    /// The largest jitter.
    pub jitter_ticks_max: TscDelta,
    /// The sum of all jitters.
    pub jitter_ticks_sum: TscDelta,
    /// The times of their loops.
    pub loop_ticks: LoopTimes,
}

/// A test that was ended before its last loop. It is not one of the tests, because fewer loops
/// vary less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedTest {
    /// The number of its loops.
    pub loops: u32,
    /// The times of its loops.
    pub loop_ticks: LoopTimes,
}

/// The progress of a run: the completed tests and their jitters. Not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JitterSoFar {
    /// The number of completed tests.
    pub tests: u64,
    /// The jitter of the last test.
    pub last: TscDelta,
    /// The smallest jitter.
    pub min: TscDelta,
    /// The largest jitter.
    pub max: TscDelta,
    /// The sum of all jitters.
    pub sum: TscDelta,
}

impl From<[TscDelta; 3]> for LoopTimes {
    fn from([fastest, slowest, sum]: [TscDelta; 3]) -> Self {
        Self { fastest, slowest, sum }
    }
}

impl From<LoopTimes> for [TscDelta; 3] {
    fn from(times: LoopTimes) -> Self {
        [times.fastest, times.slowest, times.sum]
    }
}

impl LoopTimes {
    /// The test's jitter: the difference between the slowest and the fastest loop.
    #[must_use]
    pub fn jitter(self) -> TscDelta {
        self.slowest.saturating_sub(self.fastest)
    }
}

impl JitterSeries {
    /// The slowest loops of the tests.
    pub(crate) fn values(&self, cpu: Cpu) -> Values<'_> {
        let ns = |delta| self.clock_hz.span(delta);
        let tests = self.tests.iter().zip(&self.slowest_at_ns).enumerate();
        Box::new(tests.map(move |(place, (test, at))| Value {
            cpu,
            place,
            after: at.saturating_sub(self.began_ns.unwrap_or(*at)),
            span: Span { start: *at, length: ns(test.slowest) },
            value: ns(test.jitter()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(ticks: [u64; 3]) -> LoopTimes {
        LoopTimes::from(ticks.map(TscDelta::from_ticks))
    }

    /// Check the keys and the form of every value in files.
    #[test]
    fn contract() {
        let spec = JitterSpec {
            cpu: Cpu::new(3),
            workload: Workload::Memory(8 << 20),
            tests: Some(20),
            loops: None,
            duration_ns: None,
            unit: LengthUnit::Ticks,
            fifo: Some(99),
            trigger: Trigger::default(),
        };
        let expected = serde_json::json!({
            "cpu": 3, "workload": "memory:8M", "tests": 20, "loops": null,
            "duration_ns": null, "unit": "ticks", "fifo": 99,
        });
        assert_eq!(serde_json::to_value(&spec).unwrap(), expected);
        assert_eq!(serde_json::from_value::<JitterSpec>(expected).unwrap(), spec);

        let series = JitterSeries {
            clock: "tsc".to_owned(),
            clock_hz: TscHz::new(2_000_000_000).unwrap(),
            plan: JitterPlan {
                loops: 10,
                tests: Some(2),
                duration_ns: None,
                loop_ns: Nanos::from_nanos(50),
            },
            began_ns: None,
            elapsed_ns: Nanos::from_micros(4),
            tests: vec![times([90, 200, 1_200])],
            slowest_at_ns: vec![Nanos::from_nanos(7)],
            source: None,
            blamed: None,
            lost: Some(LostTests {
                tests: 1,
                jitter_ticks_min: TscDelta::from_ticks(5),
                jitter_ticks_max: TscDelta::from_ticks(5),
                jitter_ticks_sum: TscDelta::from_ticks(5),
                loop_ticks: times([95, 100, 970]),
            }),
            unfinished: Some(UnfinishedTest {
                loops: 1,
                loop_ticks: times([99, 99, 99]),
            }),
            backwards: 0,
            proc: ProcCounts::default(),
        };
        let expected = serde_json::json!({
            "clock": "tsc", "clock_hz": 2_000_000_000_u64,
            "plan": {"loops": 10, "tests": 2, "duration_ns": null, "loop_ns": 50},
            "elapsed_ns": 4_000, "tests": [[90, 200, 1_200]],
            "slowest_at_ns": [7],
            "lost": {"tests": 1, "jitter_ticks_min": 5, "jitter_ticks_max": 5,
                "jitter_ticks_sum": 5, "loop_ticks": [95, 100, 970]},
            "unfinished": {"loops": 1, "loop_ticks": [99, 99, 99]},
            "backwards": 0,
            "proc": {"span_ns": 0, "interrupts": null, "softirqs": null,
                "preempted": 0, "waited_ns": null, "steal_ns": null},
        });
        assert_eq!(serde_json::to_value(&series).unwrap(), expected);
        assert_eq!(serde_json::from_value::<JitterSeries>(expected).unwrap(), series);
        assert_eq!(series.tests[0].jitter(), TscDelta::from_ticks(110));
    }
}
