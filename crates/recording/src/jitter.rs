//! How much a workload's run time varies: what is asked and what is seen.
//!
//! Lengths are in ticks of the counter, as they were read; `clock_hz` makes them time.

use serde::{Deserialize, Serialize};
use units::{Cpu, LengthUnit, Nanos, TscDelta, TscHz};

use crate::Workload;
use crate::noise::Meanwhile;

/// What `jitter` is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JitterSpec {
    /// The CPU on which the workload is run.
    pub cpu: Cpu,
    /// What is run.
    pub workload: Workload,
    /// How many tests; `None`: as many as there is time for.
    pub tests: Option<u32>,
    /// How often a test runs the workload; `None`: as often as suits.
    pub loops: Option<u32>,
    /// How long; `None`: as long as the tests take, or as suits where none are given.
    pub duration_ns: Option<Nanos>,
    /// In what lengths are told.
    pub unit: LengthUnit,
    /// The `SCHED_FIFO` priority of the measuring thread; `None`: an ordinary task.
    pub fifo: Option<u8>,
}

/// What was going to be done: what was asked, and what was chosen where nothing was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JitterPlan {
    /// How often each test runs the workload.
    pub loops: u32,
    /// How many tests; `None`: as many as there is time for.
    pub tests: Option<u32>,
    /// How long; `None`: as long as the tests take.
    pub duration_ns: Option<Nanos>,
    /// How long one run of the workload took before the tests, on average.
    pub loop_ns: Nanos,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JitterSeries {
    /// The clock that was read: `tsc`, `cntvct` or `monotonic_raw`.
    pub clock: String,
    /// How often that clock ticks in a second, calibrated over the whole run.
    pub clock_hz: TscHz,
    /// What was going to be done.
    pub plan: JitterPlan,
    /// From the first loop's start to the last one's end.
    pub elapsed_ns: Nanos,
    /// The tests, in order.
    pub tests: Vec<LoopTimes>,
    /// What came after there was room for tests.
    pub lost: Option<LostTests>,
    /// The test that was going on at the end; `None` where it was complete.
    pub unfinished: Option<UnfinishedTest>,
    /// How often the counter went backwards.
    pub backwards: u64,
    /// What `/proc` says happened on the CPU in the meantime.
    pub meanwhile: Meanwhile,
}

/// How long the loops of a test took, written as `[fastest, slowest, sum]` in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[TscDelta; 3]", into = "[TscDelta; 3]")]
pub struct LoopTimes {
    /// The fastest.
    pub fastest: TscDelta,
    /// The slowest.
    pub slowest: TscDelta,
    /// All of them together.
    pub sum: TscDelta,
}

/// Tests that were made after there was room for them: counted and summed, but not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostTests {
    /// How many there were.
    pub tests: u64,
    /// The smallest of their jitters.
    pub jitter_ticks_min: TscDelta,
    /// The largest.
    pub jitter_ticks_max: TscDelta,
    /// All of them together.
    pub jitter_ticks_sum: TscDelta,
    /// How long their loops took.
    pub loop_ticks: LoopTimes,
}

/// A test that was ended before its last loop. It is not among the tests: fewer loops
/// differ less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedTest {
    /// How many loops it had.
    pub loops: u32,
    /// How long they took.
    pub loop_ticks: LoopTimes,
}

/// How far a run is: the tests that are complete, and their jitters. Not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JitterSoFar {
    /// How many tests are complete.
    pub tests: u64,
    /// The last one's jitter.
    pub last: TscDelta,
    /// The smallest.
    pub min: TscDelta,
    /// The largest.
    pub max: TscDelta,
    /// All of them together.
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
    /// The test's jitter: by how much the slowest was slower than the fastest.
    #[must_use]
    pub fn jitter(self) -> TscDelta {
        self.slowest.saturating_sub(self.fastest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(ticks: [u64; 3]) -> LoopTimes {
        LoopTimes::from(ticks.map(TscDelta::from_ticks))
    }

    /// Check the keys and the form of every value: this is what files hold.
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
            elapsed_ns: Nanos::from_micros(4),
            tests: vec![times([90, 200, 1_200])],
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
            meanwhile: Meanwhile::default(),
        };
        let expected = serde_json::json!({
            "clock": "tsc", "clock_hz": 2_000_000_000_u64,
            "plan": {"loops": 10, "tests": 2, "duration_ns": null, "loop_ns": 50},
            "elapsed_ns": 4_000, "tests": [[90, 200, 1_200]],
            "lost": {"tests": 1, "jitter_ticks_min": 5, "jitter_ticks_max": 5,
                "jitter_ticks_sum": 5, "loop_ticks": [95, 100, 970]},
            "unfinished": {"loops": 1, "loop_ticks": [99, 99, 99]},
            "backwards": 0,
            "meanwhile": {"span_ns": 0, "interrupts": null, "softirqs": null,
                "preempted": 0, "waited_ns": null, "steal_ns": null},
        });
        assert_eq!(serde_json::to_value(&series).unwrap(), expected);
        assert_eq!(serde_json::from_value::<JitterSeries>(expected).unwrap(), series);
        assert_eq!(series.tests[0].jitter(), TscDelta::from_ticks(110));
    }
}
