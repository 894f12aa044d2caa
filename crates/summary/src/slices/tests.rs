//! Tests of `slices`.

use recording::{CpuSwitches, LooseEnd, SlicesSample, Stretch, Switches};
use units::Cpu;

use super::*;
use crate::example;

const SPINNER: &str = "spin/0";

fn time(cpu_us: u64, involuntary: u64, passes: u64) -> TaskTime {
    let cpu_ns = Nanos::from_micros(cpu_us);
    TaskTime { cpu_ns, involuntary, voluntary: 0, passes }
}

fn sample(start_ms: u64, tasks: Vec<TaskTime>) -> SlicesSample {
    SlicesSample {
        start_ns: Nanos::from_millis(start_ms),
        wall_ns: Nanos::from_secs(1),
        reading_ns: Nanos::ZERO,
        tasks,
    }
}

fn turn(step: u32, samples: Vec<SlicesSample>) -> SlicesTurn {
    SlicesTurn { step, samples }
}

fn summary(turns: Vec<SlicesTurn>, switches: Option<Switches>) -> SlicesSummary {
    let (spec, series) = example::slices(turns, switches);
    SlicesSummary::of(Some(Hz::new(250)), &spec, &series)
}

/// Check mean, rates and sums by hand.
#[test]
fn by_hand() {
    let tasks =
        vec![time(400_000, 100, 70), time(500_000, 200, 80), time(50_000, 7, 990)];
    let found = summary(vec![turn(0, vec![sample(0, tasks)])], None);
    let step = &found.results;
    assert_eq!(step.slice_ns.mean, Some(Nanos::from_millis(3)));
    assert_eq!(step.switches, 300);
    assert_eq!(step.cpu_ns, Nanos::from_millis(950));
    assert_eq!(step.busy_ppm.map(Ppm::get), Some(950_000.0));
    assert_eq!(step.passes_hz.map(PerSecond::get), Some(150.0));
    assert_eq!(step.wakeups_hz.map(PerSecond::get), Some(990.0));
    assert_eq!((step.traced_slices, step.slice_ns.p50), (None, None));
    assert_eq!(found.tasks[1].slice_ns_mean, Some(Nanos::from_micros(2_500)));
    assert!(!found.tasks[2].spins);
}

/// Check that slices are those of spinners that end within a variant's rounds, and that the next
/// task ended them, except for ticks and gaps in the trace; and that a slice whose begin was not
/// traced counts, without a length.
#[test]
fn ends_are_named() {
    let stretch = |start: u64, length: u64, task, end| Stretch {
        start_ns: Nanos::from_millis(start),
        ns: Nanos::from_millis(length),
        task,
        end,
    };
    let stretches = vec![
        stretch(0, 5, 0, End::Tick),
        stretch(5, 20, 0, End::Wakeup),
        stretch(25, 1, 2, End::Sleep),
        stretch(26, 4, 1, End::Tick),
        stretch(30, 2, 0, End::Wakeup),
        stretch(40, 2, 3, End::Sleep),
        stretch(42, 3_000, 0, End::Tick),
    ];
    let tasks = vec![time(31_000, 5, 0), time(4_000, 1, 0), time(1_000, 0, 1)];
    let loose_ends =
        vec![LooseEnd { at_ns: Nanos::from_millis(38), task: 0, end: End::Tick }];
    let cpu = CpuSwitches { cpu: Cpu::new(0), stretches, loose_ends, lost: 0 };
    let names = [(1, SPINNER), (2, "spin/1"), (3, "sleep/0"), (4, "other")];
    let switches = example::switches(&names, vec![cpu]);
    let turns = vec![turn(0, vec![sample(10, tasks)])];
    let found = summary(turns, Some(switches));
    assert_eq!(found.results.traced_slices, Some(4));
    assert_eq!(found.results.slice_ns.max, Some(Nanos::from_millis(20)));
    assert_eq!(found.results.slice_ns.p50, Some(Nanos::from_millis(4)));
    let ends = |ends: &[SliceEnds]| -> Vec<(End, Option<String>, u64)> {
        ends.iter().map(|e| (e.end, e.by.clone(), e.slices)).collect()
    };
    let expected = [
        (End::Tick, None, 2),
        (End::Wakeup, None, 1),
        (End::Wakeup, Some("sleep/0".to_owned()), 1),
    ];
    assert_eq!(ends(&found.results.ends), expected);
    assert_eq!(ends(&found.tasks[1].ends), [(End::Tick, None, 1)]);
    let parts = found.results.ends.iter().filter_map(|e| e.part_ppm);
    assert!((parts.map(Ppm::get).sum::<f64>() - 1e6).abs() < 1.0);
}

/// Check the largest deviation by hand, and that one round has none.
#[test]
fn turns_are_compared() {
    let of = |cpu_us, involuntary, passes| {
        let spun = time(cpu_us, involuntary, passes);
        turn(0, vec![sample(0, vec![spun, time(0, 0, 0)])])
    };
    let off = |turns| summary(turns, None).results.turns_deviation;
    assert_eq!(off(vec![of(600_000, 200, 70)]), None);
    // Means of 3 and 5 ms, 3.75 ms in all; 200 and 120 switches, 70 and 90 iterations per second.
    let off = off(vec![of(600_000, 200, 70), of(600_000, 120, 90)]).unwrap();
    assert_eq!(off.slice_ns, Some(Nanos::from_micros(1_250)));
    assert_eq!(off.switches_hz.map(PerSecond::get), Some(40.0));
    assert_eq!(off.passes_hz.map(PerSecond::get), Some(10.0));
}

/// Check that a variant differs only if the ranges of its rounds do not overlap, and that one round
/// each is not compared.
#[test]
fn steps_are_compared() {
    let of = |step, cpu_us| {
        turn(step, vec![sample(0, vec![time(cpu_us, 100, 0), time(0, 0, 0)])])
    };
    let compared = |turns: Vec<SlicesTurn>| {
        let found = summary(turns, None);
        (found.steps[0].differs, found.steps[0].slice_ratio)
    };
    let apart = vec![of(0, 100_000), of(1, 300_000), of(0, 120_000), of(1, 360_000)];
    assert_eq!(compared(apart), (Some(true), Some(3.0)));
    let close = vec![of(0, 100_000), of(1, 110_000), of(0, 120_000), of(1, 130_000)];
    assert_eq!(compared(close).0, Some(false));
    assert_eq!(compared(vec![of(0, 100_000), of(1, 300_000)]).0, None);
}
