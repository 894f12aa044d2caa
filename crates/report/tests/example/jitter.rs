//! Recordings of `jitter` for the tests of reports.

use recording::{
    Body, JitterPlan, JitterSeries, JitterSpec, LoopTimes, LostTests, Recording,
    UnfinishedTest, Workload,
};
use units::{Cpu, LengthUnit, Nanos, TscDelta, TscHz};

use crate::example::{proc, recording};

/// A hundred tests of 200 loops of a millisecond on CPU 1, and one incomplete test.
pub(crate) fn jitter(groups: &str) -> Recording {
    let times = |ticks: [u64; 3]| LoopTimes::from(ticks.map(TscDelta::from_ticks));
    let test = |number: u64| {
        let slowest = 2_600_000 + 1_000 * (number * 37 % 100) + 31 * number;
        times([2_590_000 - number, slowest, 519_000_000 + slowest])
    };
    let spec = JitterSpec {
        cpu: Cpu::new(1),
        workload: Workload::Tif,
        tests: None,
        loops: None,
        duration_ns: None,
        unit: LengthUnit::Ns,
        fifo: Some(99),
        trigger: recording::Trigger::default(),
    };
    let plan = JitterPlan {
        loops: 200,
        tests: None,
        duration_ns: Some(Nanos::from_secs(20)),
        loop_ns: Nanos::from_nanos(1_000_123),
    };
    let series = JitterSeries {
        clock: "tsc".to_owned(),
        clock_hz: TscHz::new(2_596_122_000).unwrap(),
        plan,
        began_ns: None,
        elapsed_ns: Nanos::from_secs(20),
        tests: (0..100).map(test).collect(),
        slowest_at_ns: Vec::new(),
        source: None,
        blamed: None,
        lost: None,
        unfinished: Some(UnfinishedTest {
            loops: 3,
            loop_ticks: times([2_591_000, 2_595_000, 7_780_000]),
        }),
        backwards: 0,
        proc: proc(1),
    };
    recording(groups, Body::Jitter { spec, series }, Vec::new())
}

pub(crate) fn wide(mut recording: Recording) -> Recording {
    let Body::Jitter { spec, series } = &mut recording.body else { return recording };
    (spec.cpu, spec.unit) = (Cpu::new(4_095), LengthUnit::Ticks);
    let [min, max, sum] =
        [123_456_789, 12_345_678_901, 123_456_789_012].map(TscDelta::from_ticks);
    series.lost = Some(LostTests {
        tests: 12_345_678,
        jitter_ticks_min: min,
        jitter_ticks_max: max,
        jitter_ticks_sum: sum,
        loop_ticks: LoopTimes::from([min, max, sum]),
    });
    recording
}
