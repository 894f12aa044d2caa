//! The summary of `jitter`: by how much the slowest of a test's loops was slower than the
//! fastest, over all tests.
//!
//! Each length is converted by itself, so a jitter may be one unit more or less than the
//! difference of two printed loop times. Tests that there was no room for are in the extremes
//! and the mean, not in the quantiles.

use serde::{Deserialize, Serialize};
use units::{Cpu, LengthUnit, Nanos, TscDelta, TscHz};

use crate::meanwhile::{MeanwhileInput, MeanwhileSummary};
use crate::quantile::nearest_rank;

/// How long the loops of a test, or of several, took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopInput {
    /// The fastest.
    pub fastest: TscDelta,
    /// The slowest.
    pub slowest: TscDelta,
    /// All of them together.
    pub sum: TscDelta,
}

/// Tests whose jitters were only counted and summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostTestsInput {
    /// How many.
    pub tests: u64,
    /// The smallest of their jitters.
    pub min: TscDelta,
    /// The largest.
    pub max: TscDelta,
    /// All of them together.
    pub sum: TscDelta,
    /// How long their loops took.
    pub times: LoopInput,
}

/// What was seen.
#[derive(Debug, Clone)]
pub struct JitterInput<'a> {
    /// The CPU.
    pub cpu: Cpu,
    /// How often each test ran the workload.
    pub loops: u32,
    /// In what lengths are to be told.
    pub unit: LengthUnit,
    /// How often the counter ticks in a second.
    pub hz: TscHz,
    /// From the first loop's start to the last one's end.
    pub elapsed: Nanos,
    /// The tests, in order.
    pub tests: Vec<LoopInput>,
    /// What came after there was room for tests.
    pub lost: Option<LostTestsInput>,
    /// The loops of a test that was not complete at the end, and their times.
    pub unfinished: Option<(u32, LoopInput)>,
    /// What `/proc` counted in the meantime.
    pub meanwhile: MeanwhileInput<'a>,
}

/// Lengths in the summary's unit; null where there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JitterLengths {
    /// The largest.
    pub max: Option<u64>,
    /// The smallest.
    pub min: Option<u64>,
    /// All of them together, shared out evenly.
    pub mean: Option<u64>,
    /// Half of them are not larger.
    pub p50: Option<u64>,
    /// 99 of 100 are not larger.
    pub p99: Option<u64>,
}

/// How long loops took, in the summary's unit; null where there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopLengths {
    /// The slowest.
    pub max: Option<u64>,
    /// The fastest.
    pub min: Option<u64>,
    /// All of them together, shared out evenly.
    pub mean: Option<u64>,
}

/// How much a workload's run time varies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JitterSummary {
    /// The CPU.
    pub cpu: Cpu,
    /// How many tests were complete.
    pub tests: u64,
    /// How often each of them ran the workload.
    pub loops: u32,
    /// In what lengths are told.
    pub unit: LengthUnit,
    /// Slowest less fastest loop of each test.
    pub jitter: JitterLengths,
    /// All loops, those of a test that was not complete among them.
    #[serde(rename = "loop")]
    pub loop_time: LoopLengths,
    /// How many loops that is.
    pub loops_all: u64,
    /// From the first loop's start to the last one's end.
    pub elapsed_ns: Nanos,
    /// What `/proc` counted in the meantime.
    pub meanwhile: MeanwhileSummary,
}

/// How far a run is, in its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JitterSoFar {
    /// The number of the last complete test; the first is 1.
    pub test: u64,
    /// Its jitter.
    pub jitter: u64,
    /// The largest until then.
    pub max: u64,
    /// The smallest until then.
    pub min: u64,
    /// The mean until then.
    pub mean: u64,
}

impl JitterSummary {
    /// Summarises what was seen.
    pub fn of(input: &JitterInput<'_>) -> Self {
        let lost = input.lost.map_or(0, |lost| lost.tests);
        Self {
            cpu: input.cpu,
            tests: count(input.tests.len()) + lost,
            loops: input.loops,
            unit: input.unit,
            jitter: jitter(input),
            loop_time: loop_time(input),
            loops_all: loops_all(input),
            elapsed_ns: input.elapsed,
            meanwhile: MeanwhileSummary::of(&input.meanwhile),
        }
    }
}

impl JitterInput<'_> {
    /// The tests' jitters in order, in the unit asked for.
    pub fn jitters(&self) -> Vec<u64> {
        let of = |test: &LoopInput| test.slowest.saturating_sub(test.fastest);
        self.tests.iter().map(|test| self.unit.of(of(test), self.hz)).collect()
    }

    fn told(&self, length: TscDelta) -> u64 {
        self.unit.of(length, self.hz)
    }
}

impl JitterSoFar {
    /// How far it is after so many tests: the jitter of the last of them, the largest, the
    /// smallest, and all together.
    pub fn of(
        tests: u64,
        [last, max, min, sum]: [TscDelta; 4],
        unit: LengthUnit,
        hz: TscHz,
    ) -> Self {
        let mean = share(sum, tests).unwrap_or_default();
        let [jitter, max, min, mean] =
            [last, max, min, mean].map(|length| unit.of(length, hz));
        Self { test: tests, jitter, max, min, mean }
    }
}

fn jitter(input: &JitterInput<'_>) -> JitterLengths {
    let mut sorted: Vec<TscDelta> = input
        .tests
        .iter()
        .map(|test| test.slowest.saturating_sub(test.fastest))
        .collect();
    sorted.sort_unstable();
    let lost = input.lost;
    let tests = count(sorted.len()) + lost.map_or(0, |lost| lost.tests);
    let max = sorted.last().copied().into_iter().chain(lost.map(|lost| lost.max)).max();
    let min = sorted.first().copied().into_iter().chain(lost.map(|lost| lost.min)).min();
    let mean = share(sum(sorted.iter().copied().chain(lost.map(|lost| lost.sum))), tests);
    let told = |length: Option<TscDelta>| length.map(|length| input.told(length));
    JitterLengths {
        max: told(max),
        min: told(min),
        mean: told(mean),
        p50: told(nearest_rank(&sorted, 500)),
        p99: told(nearest_rank(&sorted, 990)),
    }
}

fn loop_time(input: &JitterInput<'_>) -> LoopLengths {
    let times = || {
        let unfinished = input.unfinished.map(|(_, times)| times);
        let others = input.lost.map(|lost| lost.times).into_iter().chain(unfinished);
        input.tests.iter().copied().chain(others)
    };
    let told = |length: Option<TscDelta>| length.map(|length| input.told(length));
    LoopLengths {
        max: told(times().map(|times| times.slowest).max()),
        min: told(times().map(|times| times.fastest).min()),
        mean: told(share(sum(times().map(|times| times.sum)), loops_all(input))),
    }
}

fn loops_all(input: &JitterInput<'_>) -> u64 {
    let tests = count(input.tests.len()) + input.lost.map_or(0, |lost| lost.tests);
    let unfinished = input.unfinished.map_or(0, |(loops, _)| u64::from(loops));
    tests.saturating_mul(u64::from(input.loops)).saturating_add(unfinished)
}

fn sum(lengths: impl Iterator<Item = TscDelta>) -> TscDelta {
    lengths.fold(TscDelta::default(), TscDelta::saturating_add)
}

/// The sum shared out evenly, to the nearest tick; `None` where there is nobody.
fn share(sum: TscDelta, among: u64) -> Option<TscDelta> {
    let rounded = u128::from(sum.ticks()) + u128::from(among / 2);
    let share = rounded.checked_div(u128::from(among))?;
    Some(TscDelta::from_ticks(u64::try_from(share).unwrap_or(u64::MAX)))
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times([fastest, slowest, sum]: [u64; 3]) -> LoopInput {
        let [fastest, slowest, sum] = [fastest, slowest, sum].map(TscDelta::from_ticks);
        LoopInput { fastest, slowest, sum }
    }

    /// Two ticks are a nanosecond.
    fn input(tests: &[[u64; 3]], unit: LengthUnit) -> JitterInput<'static> {
        JitterInput {
            cpu: Cpu::new(3),
            loops: 10,
            unit,
            hz: TscHz::new(2_000_000_000).unwrap(),
            elapsed: Nanos::from_micros(9),
            tests: tests.iter().copied().map(times).collect(),
            lost: None,
            unfinished: None,
            meanwhile: MeanwhileInput::default(),
        }
    }

    const TESTS: [[u64; 3]; 3] = [[90, 210, 1_200], [100, 140, 1_100], [80, 100, 900]];

    /// Check the keys and the form of every value: this is the JSON contract.
    #[test]
    fn contract() {
        let found = JitterSummary::of(&input(&TESTS, LengthUnit::Ticks));
        let expected = serde_json::json!({
            "cpu": 3, "tests": 3, "loops": 10, "unit": "ticks",
            "jitter": {"max": 120, "min": 20, "mean": 60, "p50": 40, "p99": 120},
            "loop": {"max": 210, "min": 80, "mean": 107},
            "loops_all": 30, "elapsed_ns": 9_000,
            "meanwhile": {"span_ns": 0, "interrupts": null, "softirqs": null,
                "timer_hz": null, "preempted": 0, "waited_ns": null, "steal_ns": null},
        });
        assert_eq!(serde_json::to_value(&found).unwrap(), expected);
        assert_eq!(serde_json::from_value::<JitterSummary>(expected).unwrap(), found);
    }

    /// Check that time is half as many nanoseconds, and that jitters keep their order.
    #[test]
    fn in_time() {
        let input = input(&TESTS, LengthUnit::Ns);
        let found = JitterSummary::of(&input);
        assert_eq!((found.jitter.max, found.jitter.p50), (Some(60), Some(20)));
        assert_eq!(found.loop_time.mean, Some(54));
        assert_eq!(input.jitters(), [60, 20, 10]);
    }

    /// Check that a test that was not complete is in the loops, not in the jitter, and that
    /// without any other there is no jitter rather than none at all.
    #[test]
    fn unfinished_tests() {
        let mut input = input(&TESTS, LengthUnit::Ticks);
        input.unfinished = Some((2, times([70, 500, 570])));
        let found = JitterSummary::of(&input);
        assert_eq!((found.tests, found.loops_all), (3, 32));
        assert_eq!(found.jitter.max, Some(120));
        assert_eq!((found.loop_time.max, found.loop_time.min), (Some(500), Some(70)));
        assert_eq!(found.loop_time.mean, Some(118));
        input.tests.clear();
        let found = JitterSummary::of(&input);
        assert_eq!((found.jitter, found.tests), (JitterLengths::default(), 0));
        input.unfinished = None;
        assert_eq!(JitterSummary::of(&input).loop_time, LoopLengths::default());
    }

    /// Check that tests without room count in extremes and mean, and not in quantiles.
    #[test]
    fn lost_tests() {
        let mut input = input(&TESTS, LengthUnit::Ticks);
        let [min, max, sum] = [5, 900, 910].map(TscDelta::from_ticks);
        let times = times([50, 950, 4_000]);
        input.lost = Some(LostTestsInput { tests: 3, min, max, sum, times });
        let found = JitterSummary::of(&input);
        assert_eq!((found.tests, found.loops_all), (6, 60));
        let JitterLengths { max, min, mean, p50, p99 } = found.jitter;
        assert_eq!((max, min, mean), (Some(900), Some(5), Some(182)));
        assert_eq!((p50, p99), (Some(40), Some(120)));
        assert_eq!((found.loop_time.max, found.loop_time.min), (Some(950), Some(50)));
    }

    /// Check how far a run is said to be.
    #[test]
    fn so_far() {
        let ticks = [40, 120, 20, 161].map(TscDelta::from_ticks);
        let hz = TscHz::new(2_000_000_000).unwrap();
        let found = JitterSoFar::of(3, ticks, LengthUnit::Ns, hz);
        let expected = JitterSoFar { test: 3, jitter: 20, max: 60, min: 10, mean: 27 };
        assert_eq!(found, expected);
    }
}
