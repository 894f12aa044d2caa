//! Tests of `picture`.

use End::{Sleep, Tick, Wakeup};
use proptest::prelude::*;
use units::{Cpu, Ppm};

use super::*;
use crate::slices::window::PictureStretch;

fn us(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

fn span(start: u64, length: u64) -> Span {
    Span { start: us(start), length: us(length) }
}

fn ran(start: u64, length: u64, task: u32, end: End) -> Stretch {
    Stretch { start_ns: us(start), ns: us(length), task, end }
}

fn turn(step: usize, start: u64, length: u64) -> Turn {
    Turn { step, span: span(start, length) }
}

/// Two spinners and a sleeper, on one CPU.
fn cpu(stretches: Vec<Stretch>) -> [CpuSwitches; 1] {
    [CpuSwitches { cpu: Cpu::new(3), stretches, loose_ends: Vec::new(), lost: 0 }]
}

fn shown(turns: Vec<Turn>, cpus: &[CpuSwitches]) -> Shown<'_> {
    use PictureRole::{Sleeper, Spinner};
    let task = |(shade, (name, role)): (usize, (&str, _))| PictureTask {
        name: name.to_owned(),
        role,
        shade,
    };
    let tasks = [("spin/0", Spinner), ("spin/1", Spinner), ("sleep/0", Sleeper)];
    Shown {
        steps: 2,
        turns,
        tasks: tasks.into_iter().enumerate().map(task).collect(),
        cpus,
        window: us(4_000),
    }
}

/// Slices of a millisecond from `start` on, each ended by the sleeper.
fn cut(start: u64, slices: u64) -> Vec<Stretch> {
    let slice = |at: u64| {
        let (start, task) = (start + at * 1_000, u32::from(at % 2 == 1));
        [ran(start, 990, task, Wakeup), ran(start + 990, 10, 2, Sleep)]
    };
    (0..slices).flat_map(slice).collect()
}

/// Check a window by hand: it is that of the middle round, begins at a switch, is cut at its end,
/// and names the next and the preempted task.
#[test]
fn window() {
    let turns = vec![turn(0, 0, 9_500), turn(0, 20_000, 9_500), turn(0, 40_000, 9_500)];
    let stretches = [cut(0, 9), cut(20_000, 9), cut(40_000, 9)].concat();
    let found = SlicesPicture::of_shown(&shown(turns, &cpu(stretches)));
    assert_eq!(found.window, us(4_000));
    let traced = &found.steps[0];
    assert_eq!(traced.began, Some(us(23_000)));
    let [row] = traced.rows.as_slice() else { panic!("{traced:?}") };
    assert_eq!((row.cpu, row.stretches.len(), row.untraced.len()), (Cpu::new(3), 8, 0));
    let first = PictureStretch {
        span: span(0, 990),
        whole: us(990),
        task: 1,
        end: Wakeup,
        next: Some(2),
        preempted: None,
    };
    assert_eq!(row.stretches[0], first);
    let second = PictureStretch {
        span: span(990, 10),
        whole: us(10),
        task: 2,
        end: Sleep,
        next: Some(0),
        preempted: Some(1),
    };
    assert_eq!(row.stretches[1], second);
    let none = &found.steps[1];
    assert_eq!((none.began, none.rows.len(), slices(none)), (None, 0, 0));
}

/// Check that the traced round nearest to the middle is shown, and that all windows are as long
/// as the shortest round.
#[test]
fn turns_that_were_lost() {
    let turns = vec![
        turn(0, 0, 9_000),
        turn(1, 10_000, 2_500),
        turn(0, 20_000, 9_000),
        turn(0, 40_000, 9_000),
    ];
    let stretches = [cut(0, 9), cut(10_000, 2)].concat();
    let found = SlicesPicture::of_shown(&shown(turns, &cpu(stretches)));
    let began = |step: usize| found.steps[step].began;
    assert_eq!((began(0), began(1)), (Some(us(4_000)), Some(us(10_000))));
    assert_eq!(found.window, us(2_500));
}

/// The number of slices in all bins.
fn slices(step: &PictureStep) -> u64 {
    step.bins.iter().map(|bin| bin.slices).sum()
}

/// Check bins by hand, without slices that end after the round and those of sleepers.
#[test]
fn lengths_of_slices() {
    let turns = vec![turn(0, 500, 10_000), turn(1, 20_000, 8_000)];
    let off = vec![ran(20_000, 3_000, 0, Tick), ran(23_000, 4_000, 1, Tick)];
    let found = SlicesPicture::of_shown(&shown(turns, &cpu([cut(0, 12), off].concat())));
    let [as_found, changed] = found.steps.as_slice() else { panic!("{found:?}") };
    let bins = |step: &PictureStep| {
        let filled = step.bins.iter().filter(|bin| bin.slices > 0);
        filled.map(|bin| (bin.from, bin.slices)).collect::<Vec<_>>()
    };
    assert_eq!(bins(as_found), [(Nanos::from_nanos(749_890), 10)]);
    let woken: f64 = as_found.bins.iter().filter_map(|bin| Some(bin.woken?.get())).sum();
    assert_eq!(woken, 1e6);
    let long = [2_371_400, 3_162_300].map(|from| (Nanos::from_nanos(from), 1));
    assert_eq!(bins(changed), long);
    assert!(changed.bins.iter().all(|bin| bin.woken == Some(Ppm::new(0.0))));
}

proptest! {
    /// Check that stretches and untraced times fill a window without overlap, and that the shares of
    /// slices add up.
    #[test]
    fn fills_the_window(
        ran_for in prop::collection::vec((0u64..3_000, 0u64..9, 0u32..3), 0..60),
        turns in prop::collection::vec((0usize..2, 0u64..9_000, 0u64..9_000), 0..6),
        longest in 0u64..9_000,
    ) {
        let (mut now, mut stretches) = (0, Vec::new());
        for (length, missing, task) in ran_for {
            now += missing.saturating_sub(5) * 100;
            stretches.push(ran(now, length, task, Wakeup));
            now += length;
        }
        let mut began = 0;
        let turns = turns.into_iter().map(|(step, pause, length)| {
            began += pause + length;
            turn(step, began - length, length)
        });
        let cpus = cpu(stretches);
        let shown = Shown { window: us(longest), ..shown(turns.collect(), &cpus) };
        let found = SlicesPicture::of_shown(&shown);
        prop_assert!(found.window <= us(longest));
        for traced in &found.steps {
            for row in &traced.rows {
                check_row(row, found.window);
            }
            let slices = slices(traced);
            let shares: f64 = traced.bins.iter().filter_map(|bin| bin.share).map(Ppm::get).sum();
            let whole = if slices == 0 { 0.0 } else { 1e6 };
            prop_assert!((shares - whole).abs() < 1e-3, "{shares}");
        }
    }
}

fn check_row(row: &PictureRow, window: Nanos) {
    let shown = row.stretches.iter().map(|shown| shown.span);
    let mut spans: Vec<Span> = shown.chain(row.untraced.iter().copied()).collect();
    spans.sort_unstable();
    let mut until = Nanos::ZERO;
    for span in spans {
        assert_eq!(span.start, until, "{row:?}");
        until = span.end();
    }
    assert_eq!(until, window, "{row:?}");
}
