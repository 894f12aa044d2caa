//! The summary of `jitter`: the time of the slowest loop of a test minus that of the fastest.
//!
//! Each time is converted separately, so jitter may differ by one unit from the difference of two
//! printed loop times. Tests that did not fit into memory count in minimum, mean and maximum only.

use std::ops::Range;

use recording::{JitterSeries, JitterSoFar, JitterSpec, LoopTimes, ProcCounts};
use serde::Serialize;
use stats::{Distribution, Jitters, Loops, mean};
use units::{Cpu, LengthUnit, Nanos, TscDelta, TscHz};

use crate::noise::culprits::CulpritSummary;
use crate::noise::own::OwnCost;
use crate::proc_counts::ProcSummary;

pub(crate) mod percentiles;

/// The variation of a workload's run time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JitterSummary {
    /// The CPU.
    pub cpu: Cpu,
    /// The number of complete tests.
    pub tests: u64,
    /// The number of loops per test.
    pub loops: u32,
    /// The unit of `jitter` and `loop`.
    pub unit: LengthUnit,
    /// The jitter of the complete tests.
    pub jitter: Distribution<Jitters, u64>,
    /// The run times of all loops, including those of an incomplete test.
    #[serde(rename = "loop")]
    pub loop_time: Distribution<Loops, u64>,
    /// The number of these loops.
    pub loops_all: u64,
    /// The time from the start of the first loop to the end of the last one.
    pub elapsed_ns: Nanos,
    /// The causes of the jitter of all tests, as shares of it: its tests are their gaps. Missing if events
    /// were not traced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub culprits: Vec<CulpritSummary>,
    /// The part of the threads of the process that measured.
    #[serde(skip)]
    pub own: OwnCost,
    /// The counters of `/proc` during the measurement.
    pub proc: ProcSummary,
}

/// The progress of a run, in its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JitterProgress {
    /// The number of the last complete test; the first is 1.
    pub test: u64,
    /// The jitter of that test.
    pub jitter: u64,
    /// The largest so far.
    pub max: u64,
    /// The smallest so far.
    pub min: u64,
    /// The mean so far.
    pub mean: u64,
}

impl JitterSummary {
    /// Summarizes a series.
    pub fn of(spec: &JitterSpec, series: &JitterSeries) -> Self {
        let jitters = series.tests.iter().map(|test| series.clock_hz.span(test.jitter()));
        let all: Nanos = jitters.sum();
        let culprits = CulpritSummary::of(series.blamed.as_ref(), None, all);
        Self {
            own: OwnCost::of(&culprits, series.elapsed_ns, all),
            culprits,
            cpu: spec.cpu,
            tests: tests(series),
            loops: series.plan.loops,
            unit: spec.unit,
            jitter: jitter(spec, series),
            loop_time: loop_time(spec, series),
            loops_all: loops_all(series),
            elapsed_ns: series.elapsed_ns,
            proc: ProcSummary::of(&series.proc),
        }
    }

    /// Summarizes some of the tests.
    pub(crate) fn of_part(
        spec: &JitterSpec,
        series: &JitterSeries,
        tests: Range<usize>,
    ) -> Self {
        let part = JitterSeries {
            clock: series.clock.clone(),
            tests: series.tests.get(tests).unwrap_or_default().to_vec(),
            slowest_at_ns: Vec::new(),
            blamed: None,
            lost: None,
            unfinished: None,
            proc: ProcCounts::default(),
            ..*series
        };
        Self::of(spec, &part)
    }
}

/// The jitter of each test in order, in the requested unit.
pub fn jitters(spec: &JitterSpec, series: &JitterSeries) -> Vec<u64> {
    let of = |test: &LoopTimes| spec.unit.of(test.jitter(), series.clock_hz);
    series.tests.iter().map(of).collect()
}

impl JitterProgress {
    /// Converts progress to a unit.
    pub fn of(so_far: &JitterSoFar, unit: LengthUnit, hz: TscHz) -> Self {
        let mean = share([so_far.sum].into_iter(), so_far.tests).unwrap_or_default();
        let [jitter, max, min, mean] =
            [so_far.last, so_far.max, so_far.min, mean].map(|length| unit.of(length, hz));
        Self { test: so_far.tests, jitter, max, min, mean }
    }
}

fn jitter(spec: &JitterSpec, series: &JitterSeries) -> Distribution<Jitters, u64> {
    let each = || series.tests.iter().map(|test| test.jitter());
    let found = Distribution::of(each());
    let lost = series.lost;
    let min = found.min.into_iter().chain(lost.map(|lost| lost.jitter_ticks_min));
    let all = each().chain(lost.map(|lost| lost.jitter_ticks_sum));
    let found = Distribution {
        max: found.max.max(lost.map(|lost| lost.jitter_ticks_max)),
        min: min.min(),
        mean: share(all, tests(series)),
        ..found
    };
    found.map(|length| spec.unit.of(length, series.clock_hz))
}

fn loop_time(spec: &JitterSpec, series: &JitterSeries) -> Distribution<Loops, u64> {
    let times = || {
        let unfinished = series.unfinished.map(|test| test.loop_ticks);
        let others = series.lost.map(|lost| lost.loop_ticks).into_iter();
        series.tests.iter().copied().chain(others.chain(unfinished))
    };
    let found = Distribution {
        max: times().map(|times| times.slowest).max(),
        min: times().map(|times| times.fastest).min(),
        mean: share(times().map(|times| times.sum), loops_all(series)),
        ..Distribution::default()
    };
    found.map(|length| spec.unit.of(length, series.clock_hz))
}

/// The complete tests, including those that did not fit into memory.
fn tests(series: &JitterSeries) -> u64 {
    let tests = series.tests.len() as u64;
    tests.saturating_add(series.lost.map_or(0, |lost| lost.tests))
}

fn loops_all(series: &JitterSeries) -> u64 {
    let unfinished = series.unfinished.map_or(0, |test| u64::from(test.loops));
    let loops = u64::from(series.plan.loops);
    tests(series).saturating_mul(loops).saturating_add(unfinished)
}

fn share(lengths: impl Iterator<Item = TscDelta>, among: u64) -> Option<TscDelta> {
    let sum = lengths.map(|length| u128::from(length.ticks())).sum();
    mean(sum, among).map(TscDelta::from_ticks)
}

#[cfg(test)]
mod tests {
    use recording::{JitterPlan, LostTests, ProcCounts, UnfinishedTest, Workload};

    use super::*;

    fn times(ticks: [u64; 3]) -> LoopTimes {
        LoopTimes::from(ticks.map(TscDelta::from_ticks))
    }

    fn spec(unit: LengthUnit) -> JitterSpec {
        JitterSpec {
            cpu: Cpu::new(3),
            workload: Workload::Memory(8 << 20),
            tests: Some(3),
            loops: Some(10),
            duration_ns: None,
            unit,
            fifo: None,
            trigger: recording::Trigger::default(),
        }
    }

    /// A series with two ticks per nanosecond.
    fn series(tests: &[[u64; 3]]) -> JitterSeries {
        JitterSeries {
            clock: "tsc".to_owned(),
            clock_hz: TscHz::new(2_000_000_000).unwrap(),
            plan: JitterPlan {
                loops: 10,
                tests: Some(3),
                duration_ns: None,
                loop_ns: Nanos::ZERO,
            },
            began_ns: None,
            elapsed_ns: Nanos::from_micros(9),
            tests: tests.iter().copied().map(times).collect(),
            slowest_at_ns: Vec::new(),
            source: None,
            blamed: None,
            lost: None,
            unfinished: None,
            backwards: 0,
            proc: ProcCounts::default(),
        }
    }

    const TESTS: [[u64; 3]; 3] = [[90, 210, 1_200], [100, 140, 1_100], [80, 100, 900]];

    /// Check the keys and values of the JSON contract.
    #[test]
    fn contract() {
        let found = JitterSummary::of(&spec(LengthUnit::Ticks), &series(&TESTS));
        let expected = serde_json::json!({
            "cpu": 3, "tests": 3, "loops": 10, "unit": "ticks",
            "jitter": {"max": 120, "min": 20, "mean": 60, "p50": 40, "p99": 120},
            "loop": {"max": 210, "min": 80, "mean": 107},
            "loops_all": 30, "elapsed_ns": 9_000,
            "proc": {"span_ns": 0, "interrupts": null, "softirqs": null,
                "timer_hz": null, "preempted": 0, "waited_ns": null, "steal_ns": null},
        });
        assert_eq!(serde_json::to_value(&found).unwrap(), expected);
    }

    /// Check the conversion to nanoseconds, and that the tests keep their order.
    #[test]
    fn in_time() {
        let (spec, series) = (spec(LengthUnit::Ns), series(&TESTS));
        let found = JitterSummary::of(&spec, &series);
        assert_eq!((found.jitter.max, found.jitter.p50), (Some(60), Some(20)));
        assert_eq!(found.loop_time.mean, Some(54));
        assert_eq!(jitters(&spec, &series), [60, 20, 10]);
    }

    /// Check that an incomplete test counts in the loops and not in the jitter, and that without
    /// complete tests no jitter is known.
    #[test]
    fn unfinished_tests() {
        let (spec, mut series) = (spec(LengthUnit::Ticks), series(&TESTS));
        let loop_ticks = times([70, 500, 570]);
        series.unfinished = Some(UnfinishedTest { loops: 2, loop_ticks });
        let found = JitterSummary::of(&spec, &series);
        assert_eq!((found.tests, found.loops_all), (3, 32));
        assert_eq!(found.jitter.max, Some(120));
        assert_eq!((found.loop_time.max, found.loop_time.min), (Some(500), Some(70)));
        assert_eq!(found.loop_time.mean, Some(118));
        series.tests.clear();
        let found = JitterSummary::of(&spec, &series);
        assert_eq!((found.jitter, found.tests), (Distribution::default(), 0));
        series.unfinished = None;
        assert_eq!(JitterSummary::of(&spec, &series).loop_time, Distribution::default());
    }

    /// Check that lost tests count in minimum, mean and maximum, and not in quantiles.
    #[test]
    fn lost_tests() {
        let (spec, mut series) = (spec(LengthUnit::Ticks), series(&TESTS));
        let [min, max, sum] = [5, 900, 910].map(TscDelta::from_ticks);
        series.lost = Some(LostTests {
            tests: 3,
            jitter_ticks_min: min,
            jitter_ticks_max: max,
            jitter_ticks_sum: sum,
            loop_ticks: times([50, 950, 4_000]),
        });
        let found = JitterSummary::of(&spec, &series);
        assert_eq!((found.tests, found.loops_all), (6, 60));
        let Distribution { max, min, mean, p50, p99, .. } = found.jitter;
        assert_eq!((max, min, mean), (Some(900), Some(5), Some(182)));
        assert_eq!((p50, p99), (Some(40), Some(120)));
        assert_eq!((found.loop_time.max, found.loop_time.min), (Some(950), Some(50)));
    }

    /// Check the progress by hand.
    #[test]
    fn so_far() {
        let [last, max, min, sum] = [40, 120, 20, 161].map(TscDelta::from_ticks);
        let so_far = JitterSoFar { tests: 3, last, min, max, sum };
        let hz = TscHz::new(2_000_000_000).unwrap();
        let found = JitterProgress::of(&so_far, LengthUnit::Ns, hz);
        let expected = JitterProgress { test: 3, jitter: 20, max: 60, min: 10, mean: 27 };
        assert_eq!(found, expected);
    }
}
