//! Tests of `placements`.

use recording::{SlicesSample, SlicesTurn, Step, StepSetting};

use super::*;
use crate::example;
use crate::slices::placements::picture::{PlacedTask, PlacementsPicture};

const MS: i64 = 1_000_000;
/// The tasks of [`example::slices`], and one that was not measured.
const SPIN: u32 = 0;
const OTHER_SPIN: u32 = 1;
const SLEEP: u32 = 2;
const THREAD: u32 = 3;

fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

/// The task `task` woke up while `running` ran.
fn woken(
    at_ms: u64,
    task: u32,
    running: u32,
    ahead_ns: i64,
    lost_ms: Option<u64>,
) -> Placement {
    Placement {
        at_ns: ms(at_ms),
        cpu: Cpu::new(0),
        task,
        running,
        ahead_ns,
        ahead_of_average_ns: ahead_ns - MS,
        lost_ns: lost_ms.map(ms),
    }
}

/// A round of 100 ms.
fn turn(step: u32, start_ms: u64) -> SlicesTurn {
    let (wall_ns, reading_ns) = (ms(100), Nanos::ZERO);
    let sample =
        SlicesSample { start_ns: ms(start_ms), wall_ns, reading_ns, tasks: Vec::new() };
    SlicesTurn { step, samples: vec![sample] }
}

/// One round with unmodified settings, and one of the variant after a pause.
fn recorded(wakeups: Vec<Placement>) -> (SlicesSpec, SlicesSeries) {
    let (spec, mut series) = example::slices(vec![turn(0, 0), turn(1, 200)], None);
    let granularity_ns = Some(ms(10));
    series.placements = Some(Placements { granularity_ns, wakeups, lost: 4 });
    (spec, series)
}

fn loss(name: Option<&str>, preemptions: u64, lost_ms: u64, mean_us: u64) -> TaskLoss {
    TaskLoss {
        name: name.map(str::to_owned),
        preemptions,
        lost_ns: ms(lost_ms),
        lost_ns_mean: Some(Nanos::from_micros(mean_us)),
    }
}

/// Check counts, distances, and what each task lost, by hand; wake-ups between rounds are not counted, and
/// a task that was not measured has no name.
#[test]
fn by_hand() {
    let (spec, series) = recorded(vec![
        woken(0, SLEEP, SPIN, 40 * MS, Some(7)),
        woken(10, SLEEP, OTHER_SPIN, 20 * MS, Some(2)),
        woken(20, SLEEP, OTHER_SPIN, -3 * MS, None),
        woken(30, THREAD, OTHER_SPIN, 45 * MS, Some(2)),
        woken(99, SLEEP, THREAD, 12 * MS, Some(0)),
        woken(100, SLEEP, SPIN, 99 * MS, Some(99)),
        woken(200, SLEEP, SPIN, MS, None),
    ]);
    let found = PlacementsSummary::of(&spec, &series, 0).unwrap();
    assert_eq!((found.wakeups, found.preemptions), (5, 4));
    assert_eq!(found.preempting_ppm, Some(Ppm::new(800_000.0)));
    let of = |of: Distribution<Placed, i64>| [of.min, of.p50, of.max].map(Option::unwrap);
    assert_eq!(of(found.ahead_ns), [-3, 20, 45].map(|ms| ms * MS));
    assert_eq!(of(found.ahead_of_average_ns), [-4, 19, 44].map(|ms| ms * MS));
    assert_eq!(found.granularity_ns, Some(ms(10)));
    let mean = Some(Nanos::from_micros(2_750));
    assert_eq!((found.lost_ns, found.lost_ns_mean), (ms(11), mean));
    let victims = [
        loss(Some("spin/0"), 1, 7, 7_000),
        loss(Some("spin/1"), 2, 4, 2_000),
        loss(None, 1, 0, 0),
    ];
    assert_eq!(found.victims, victims);
    assert_eq!(found.by, [loss(Some("sleep/0"), 3, 9, 3_000), loss(None, 1, 2, 2_000)]);
}

/// Check that a variant has its own wake-ups, and nothing is made up where none woke up or none
/// preempted.
#[test]
fn variants() {
    let (spec, series) = recorded(vec![woken(200, SLEEP, SPIN, MS, None)]);
    let changed = PlacementsSummary::of(&spec, &series, 1).unwrap();
    assert_eq!((changed.wakeups, changed.preemptions), (1, 0));
    assert_eq!(changed.preempting_ppm, Some(Ppm::new(0.0)));
    assert_eq!((changed.lost_ns, changed.lost_ns_mean), (Nanos::ZERO, None));
    assert!(changed.victims.is_empty() && changed.largest.is_empty());
    let unmodified = PlacementsSummary::of(&spec, &series, 0).unwrap();
    assert_eq!((unmodified.preempting_ppm, unmodified.ahead_ns.p50), (None, None));
    let (spec, series) = example::slices(vec![turn(0, 0)], None);
    assert_eq!(PlacementsSummary::of(&spec, &series, 0), None);
}

/// Check that the largest losses are listed in order, of equal ones the earliest, with both names.
#[test]
fn largest_losses() {
    let all = [3, 9, 1, 9, 5, 2, 4];
    let wakeups = all
        .iter()
        .zip(0..)
        .map(|(lost, at)| woken(at, SLEEP, u32::from(at % 2 == 1), 40 * MS, Some(*lost)));
    let (spec, series) = recorded(wakeups.collect());
    let found = PlacementsSummary::of(&spec, &series, 0).unwrap().largest;
    let order: Vec<_> = found.iter().map(|of| (of.at_ns, of.lost_ns)).collect();
    let expected = [(1, 9), (3, 9), (4, 5), (6, 4), (0, 3)];
    assert_eq!(order, expected.map(|(at, lost)| (ms(at), ms(lost))));
    let names = found.iter().map(|of| (of.name.as_deref(), of.by.as_deref()));
    let first = (Some("spin/1"), Some("sleep/0"));
    assert_eq!(names.collect::<Vec<_>>()[..2], [first, first]);
}

/// Check that a variant that sets the granularity has its own, and that the one of others is unknown if
/// the last round was of such a variant.
#[test]
fn own_granularity() {
    let (mut spec, mut series) = recorded(Vec::new());
    let step = |name: &str| {
        let setting = StepSetting { name: name.to_owned(), value: "3000000".to_owned() };
        Step { settings: vec![setting] }
    };
    let found = |spec: &SlicesSpec, series: &SlicesSeries| {
        let of = |step| PlacementsSummary::of(spec, series, step).unwrap().granularity_ns;
        [of(0), of(1)]
    };
    spec.steps = vec![step("wakeup_granularity_ns")];
    assert_eq!(found(&spec, &series), [None, Some(ms(3))]);
    series.turns.push(turn(0, 400));
    assert_eq!(found(&spec, &series), [Some(ms(10)), Some(ms(3))]);
    spec.steps = vec![step("latency_ns")];
    assert_eq!(found(&spec, &series), [Some(ms(10)); 2]);
    series.placements.as_mut().unwrap().granularity_ns = None;
    assert_eq!(found(&spec, &series), [None, None]);
}

/// Check that a picture without traced switches has the wake-ups in the middle of the middle round, from
/// the start of the window on.
#[test]
fn window_without_switches() {
    let wakeups = [24, 25, 74, 75, 225].map(|at| woken(at, SLEEP, SPIN, MS, Some(1)));
    let (spec, series) = recorded(wakeups.to_vec());
    let found = PlacementsPicture::of(&spec, &series, None).unwrap();
    assert_eq!(found.window, ms(50));
    let at = |step: usize| found.steps[step].iter().map(|of| of.at).collect::<Vec<_>>();
    assert_eq!((at(0), at(1)), (vec![ms(0), ms(49)], vec![ms(0)]));
    let first = PlacedTask {
        at: ms(0),
        cpu: Cpu::new(0),
        name: Some("sleep/0".to_owned()),
        running: Some("spin/0".to_owned()),
        ahead_ns: MS,
        lost: Some(ms(1)),
    };
    assert_eq!(found.steps[1][0], first);
    let (spec, series) = example::slices(vec![turn(0, 0)], None);
    assert_eq!(PlacementsPicture::of(&spec, &series, None), None);
}
