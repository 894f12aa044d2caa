//! What a picture of `slices` shows: of each step the same short window of what ran on each
//! CPU, how long the spinners' slices were, and what one was on average.
//!
//! What ran comes from the scheduler's switches, the mean from what the kernel accounts for the
//! spinners; without switches only the mean is known. A slice is a spinner's stretch on a CPU
//! that ended within a turn, as in the summary, which has the same mean and quantiles. Cannot see
//! how much of a stretch interrupts took.

use recording::{
    CpuSwitches, End, Role, SlicesSeries, SlicesSpec, SlicesTurn, Stretch, SwitchedTask,
    Switches,
};
use units::{Nanos, PerSecond, Ppm, Span};

use crate::distribution::quantile;

use super::bins::SliceBin;
use super::turns::wall;
use super::window::{PictureRow, begun_in, ended_in, place};
use super::{step_words, tasks};

/// How much is shown of each step.
const WINDOW: Nanos = Nanos::from_millis(50);

/// What a task of a picture is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureRole {
    /// A measured task that uses all the time that it gets.
    Spinner,
    /// A measured task that sleeps again and again.
    Sleeper,
    /// Another task.
    Other,
    /// No task: the CPU had nothing to do.
    Idle,
}

/// A task of a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureTask {
    /// Its name.
    pub name: String,
    /// What it is.
    pub role: PictureRole,
    /// Tasks that follow each other have different shades: the next shade for each next number.
    pub shade: usize,
}

/// A stretch of time with one step's settings, and what the spinners did in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    step: usize,
    span: Span,
    /// How long its samples were together.
    wall: Nanos,
    used: Nanos,
    preempted: u64,
}

/// What is shown.
struct Shown<'a> {
    steps: Vec<String>,
    turns: Vec<Turn>,
    tasks: Vec<PictureTask>,
    /// `None` where switches were not traced.
    cpus: Option<&'a [CpuSwitches]>,
    /// How much of each step, at most.
    window: Nanos,
}

/// What the switches show of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct PictureSwitches {
    /// Where the window begins, from the recording's beginning; `None` where none of the step's
    /// turns was seen.
    pub began: Option<Nanos>,
    /// Each CPU in the window; none without one.
    pub rows: Vec<PictureRow>,
    /// How many slices there were, in all turns.
    pub slices: u64,
    /// Half of them were not longer; `None` where there was none.
    pub p50: Option<Nanos>,
    /// 99 of 100 were not longer; `None` where there was none.
    pub p99: Option<Nanos>,
    /// The slices by their length: 10 µs to 100 ms in 8 bins a decade, one for those that are
    /// shorter and one for those that are longer.
    pub bins: Vec<SliceBin>,
}

/// A step.
#[derive(Debug, Clone, PartialEq)]
pub struct PictureStep {
    /// What was changed.
    pub text: String,
    /// How long spinners ran before they had to leave the CPU: their CPU time by how often they
    /// had to; `None` where they never had to.
    pub mean: Option<Nanos>,
    /// How often a second they had to, all together; `None` where no time passed.
    pub slices_hz: Option<PerSecond>,
    /// What the switches show; `None` without tracing.
    pub switches: Option<PictureSwitches>,
}

/// What a picture of `slices` shows.
#[derive(Debug, Clone, PartialEq)]
pub struct SlicesPicture {
    /// How long the window of each step is; zero where no step has one.
    pub window: Nanos,
    /// The tasks that ran.
    pub tasks: Vec<PictureTask>,
    /// The steps.
    pub steps: Vec<PictureStep>,
    /// The longest of their means; `None` where there is none.
    pub longest_mean: Option<Nanos>,
    /// The largest share of all their bins; `None` where there is no slice.
    pub largest_share: Option<Ppm>,
    /// How many stretches were lost; `None` without tracing.
    pub lost: Option<u64>,
}

impl SlicesPicture {
    /// What there is to see.
    pub fn of(spec: &SlicesSpec, series: &SlicesSeries) -> Self {
        let unmodified = std::iter::once("unmodified".to_owned());
        let switches = series.switches.as_ref();
        let turn = |turn| Turn::of(series, turn);
        Self::of_shown(&Shown {
            steps: unmodified.chain(spec.steps.iter().map(step_words)).collect(),
            turns: series.turns.iter().filter_map(turn).collect(),
            tasks: switches.map_or_else(Vec::new, |s| picture_tasks(spec, series, s)),
            cpus: switches.map(|switches| switches.cpus.as_slice()),
            window: WINDOW,
        })
    }

    fn of_shown(input: &Shown<'_>) -> Self {
        let chosen: Vec<Option<Span>> =
            (0..input.steps.len()).map(|step| chosen_turn(input, step)).collect();
        let shortest = chosen.iter().flatten().map(|turn| turn.length).min();
        let window = shortest.map_or(Nanos::ZERO, |shortest| shortest.min(input.window));
        let steps: Vec<PictureStep> = chosen
            .iter()
            .enumerate()
            .map(|(step, turn)| PictureStep::of(input, step, *turn, window))
            .collect();
        let switches = || steps.iter().filter_map(|step| step.switches.as_ref());
        let shares = switches().flat_map(|seen| &seen.bins).filter_map(|bin| bin.share);
        let larger = |a: Ppm, b: Ppm| if b.get() > a.get() { b } else { a };
        let lost = |cpus: &[CpuSwitches]| {
            cpus.iter().map(|cpu| cpu.lost).fold(0, u64::saturating_add)
        };
        Self {
            window,
            tasks: input.tasks.clone(),
            longest_mean: steps.iter().filter_map(|step| step.mean).max(),
            largest_share: shares.reduce(larger),
            lost: input.cpus.map(lost),
            steps,
        }
    }
}

impl Turn {
    /// `None` of a turn without a sample.
    fn of(series: &SlicesSeries, turn: &SlicesTurn) -> Option<Self> {
        let (first, last) = (turn.samples.first()?, turn.samples.last()?);
        let end = last.start_ns + last.wall_ns;
        let is_spinner = |at: usize| {
            series.tasks.get(at).is_some_and(|task| task.role == Role::Spinner)
        };
        let times =
            turn.samples.iter().flat_map(|sample| sample.tasks.iter().enumerate());
        let spun =
            || times.clone().filter(|(at, _)| is_spinner(*at)).map(|(_, time)| time);
        Some(Self {
            step: usize::try_from(turn.step).ok()?,
            span: Span {
                start: first.start_ns,
                length: end.saturating_sub(first.start_ns),
            },
            wall: wall(turn),
            used: spun().map(|time| time.cpu_ns).sum(),
            preempted: spun().map(|time| time.involuntary).fold(0, u64::saturating_add),
        })
    }
}

/// What the tasks that ran are.
fn picture_tasks(
    spec: &SlicesSpec,
    series: &SlicesSeries,
    seen: &Switches,
) -> Vec<PictureTask> {
    let places = tasks::measured(spec, series, seen);
    let names = tasks::names(series, seen, &places);
    let each = if spec.pinned { spec.cpus.len().max(1) } else { 1 };
    let task = |((task, place), name): ((&SwitchedTask, Option<usize>), String)| {
        let measured = place.and_then(|at| series.tasks.get(at));
        let role = match measured.map(|task| task.role) {
            _ if task.tid == 0 => PictureRole::Idle,
            Some(Role::Spinner) => PictureRole::Spinner,
            Some(Role::Sleeper) => PictureRole::Sleeper,
            None => PictureRole::Other,
        };
        // Of tasks that stay on CPUs in turns, those on the same one follow each other.
        let shade =
            place.map_or(0, |at| at / each + if each > 1 { at % each } else { 0 });
        PictureTask { name, role, shade }
    };
    seen.tasks.iter().zip(places).zip(names).map(task).collect()
}

impl PictureStep {
    fn of(input: &Shown<'_>, step: usize, turn: Option<Span>, window: Nanos) -> Self {
        let turns = || input.turns.iter().filter(move |turn| turn.step == step);
        let used: Nanos = turns().map(|turn| turn.used).sum();
        let preempted = turns().map(|turn| turn.preempted).fold(0, u64::saturating_add);
        let mean = used.get().checked_div(preempted).map(Nanos::from_nanos);
        let switches = |cpus: &[CpuSwitches]| {
            let began = turn.map(|turn| began(input, cpus, turn, window));
            let rows = began.map_or_else(Vec::new, |start| {
                let window = Span { start, length: window };
                cpus.iter().map(|cpu| PictureRow::of(cpu, window)).collect()
            });
            PictureSwitches::of(began, rows, &slices(input, cpus, step))
        };
        Self {
            text: input.steps.get(step).cloned().unwrap_or_default(),
            mean,
            slices_hz: PerSecond::of(preempted, turns().map(|turn| turn.wall).sum()),
            switches: input.cpus.map(switches),
        }
    }
}

impl PictureSwitches {
    fn of(began: Option<Nanos>, rows: Vec<PictureRow>, slices: &[Stretch]) -> Self {
        let lengths = |is_told: &dyn Fn(&Stretch) -> bool| {
            let told = slices.iter().filter(|slice| is_told(slice));
            let mut lengths: Vec<Nanos> = told.map(|slice| slice.ns).collect();
            lengths.sort_unstable();
            lengths
        };
        let all = lengths(&|_| true);
        let woken = lengths(&|slice| slice.end == End::Wakeup);
        Self {
            began,
            rows,
            slices: u64::try_from(all.len()).unwrap_or(u64::MAX),
            p50: quantile(&all, 500_000),
            p99: quantile(&all, 990_000),
            bins: SliceBin::all(&all, &woken),
        }
    }
}

fn is_spinner(input: &Shown<'_>, seen: &Stretch) -> bool {
    let task = input.tasks.get(place(seen));
    task.is_some_and(|task| task.role == PictureRole::Spinner)
}

/// The turn to show of a step: of those in which a spinner was seen to begin a stretch the one
/// that is closest to the middle one.
fn chosen_turn(input: &Shown<'_>, step: usize) -> Option<Span> {
    let turns: Vec<Span> = input
        .turns
        .iter()
        .filter(|turn| turn.step == step)
        .map(|turn| turn.span)
        .collect();
    let middle = turns.len() / 2;
    let seen = |turn: &Span| {
        let cpus = input.cpus.into_iter().flatten();
        cpus.flat_map(|cpu| begun_in(&cpu.stretches, turn.start, turn.end()))
            .any(|stretch| is_spinner(input, stretch))
    };
    let by_nearness = |(at, _): &(usize, &Span)| at.abs_diff(middle);
    let seen = turns.iter().enumerate().filter(|(_, turn)| seen(turn));
    seen.min_by_key(by_nearness).map(|(_, turn)| *turn)
}

/// Where the window in a turn begins: where a spinner begins in the turn's middle, on the first
/// CPU on which one does.
fn began(input: &Shown<'_>, cpus: &[CpuSwitches], turn: Span, window: Nanos) -> Nanos {
    let room = turn.length.saturating_sub(window);
    let middle = turn.start + Nanos::from_nanos(room.get() / 2);
    let after_last = turn.start + room + Nanos::from_nanos(1);
    let first_in = |from: Nanos, before: Nanos| {
        let each = cpus.iter().map(move |cpu| begun_in(&cpu.stretches, from, before));
        let mut firsts =
            each.filter_map(|seen| seen.iter().find(|seen| is_spinner(input, seen)));
        firsts.next().map(|seen| seen.start_ns)
    };
    first_in(middle, after_last)
        .or_else(|| first_in(turn.start, middle))
        .unwrap_or(middle)
}

/// Each slice of a step.
fn slices(input: &Shown<'_>, cpus: &[CpuSwitches], step: usize) -> Vec<Stretch> {
    let turns = input.turns.iter().filter(|turn| turn.step == step);
    let of_turn = |turn: &Turn| {
        let (from, to) = (turn.span.start, turn.span.end());
        let ended = cpus.iter().flat_map(move |cpu| ended_in(&cpu.stretches, from, to));
        ended.filter(|seen| is_spinner(input, seen)).copied().collect::<Vec<_>>()
    };
    turns.flat_map(of_turn).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::Cpu;

    use super::*;
    use crate::PictureStretch;
    use End::{Sleep, Tick, Wakeup};

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
        let span = span(start, length);
        let (wall, used) = (span.length, span.length);
        Turn { step, span, wall, used, preempted: length / 1_000 }
    }

    /// Two spinners and a sleeper, on one CPU.
    fn cpu(stretches: Vec<Stretch>) -> [CpuSwitches; 1] {
        [CpuSwitches { cpu: Cpu::new(3), stretches, loose_ends: Vec::new(), lost: 0 }]
    }

    fn shown(turns: Vec<Turn>, cpus: Option<&[CpuSwitches]>) -> Shown<'_> {
        use PictureRole::{Sleeper, Spinner};
        let task = |(shade, (name, role)): (usize, (&str, _))| PictureTask {
            name: name.to_owned(),
            role,
            shade,
        };
        let tasks = [("spin/0", Spinner), ("spin/1", Spinner), ("sleep/0", Sleeper)];
        Shown {
            steps: vec!["as found".to_owned(), "WAKEUP_PREEMPTION=off".to_owned()],
            turns,
            tasks: tasks.into_iter().enumerate().map(task).collect(),
            cpus,
            window: us(4_000),
        }
    }

    /// Slices of a millisecond, each cut by the sleeper, from there on.
    fn cut(start: u64, slices: u64) -> Vec<Stretch> {
        let slice = |at: u64| {
            let (start, task) = (start + at * 1_000, u32::from(at % 2 == 1));
            [ran(start, 990, task, Wakeup), ran(start + 990, 10, 2, Sleep)]
        };
        (0..slices).flat_map(slice).collect()
    }

    /// Check the window of a turn by hand: it is the middle turn's, begins at a switch, is cut
    /// at its end, and says who came next and who was preempted.
    #[test]
    fn window() {
        let turns =
            vec![turn(0, 0, 9_500), turn(0, 20_000, 9_500), turn(0, 40_000, 9_500)];
        let stretches = [cut(0, 9), cut(20_000, 9), cut(40_000, 9)].concat();
        let found = SlicesPicture::of_shown(&shown(turns, Some(&cpu(stretches))));
        assert_eq!(found.window, us(4_000));
        let seen = found.steps[0].switches.as_ref().unwrap();
        assert_eq!(seen.began, Some(us(23_000)));
        let [row] = seen.rows.as_slice() else { panic!("{seen:?}") };
        assert_eq!((row.cpu, row.stretches.len(), row.unseen.len()), (Cpu::new(3), 8, 0));
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
        let none = found.steps[1].switches.as_ref().unwrap();
        assert_eq!((none.began, none.rows.len(), none.slices), (None, 0, 0));
    }

    /// Check that a turn of which nothing is left is not shown, but the nearest to the middle
    /// of those that were seen, and that all steps' windows are as long as the shortest turn.
    #[test]
    fn turns_that_were_lost() {
        let turns = vec![
            turn(0, 0, 9_000),
            turn(1, 10_000, 2_500),
            turn(0, 20_000, 9_000),
            turn(0, 40_000, 9_000),
        ];
        let stretches = [cut(0, 9), cut(10_000, 2)].concat();
        let found = SlicesPicture::of_shown(&shown(turns, Some(&cpu(stretches))));
        let began = |step: usize| found.steps[step].switches.as_ref().unwrap().began;
        assert_eq!((began(0), began(1)), (Some(us(4_000)), Some(us(10_000))));
        assert_eq!(found.window, us(2_500));
    }

    /// Check means, rates and percentiles by hand, and that slices which end after the turn and
    /// those of a sleeper are not among them.
    #[test]
    fn figures() {
        let turns = vec![turn(0, 500, 10_000), turn(1, 20_000, 8_000)];
        let off = vec![ran(20_000, 3_000, 0, Tick), ran(23_000, 4_000, 1, Tick)];
        let found = SlicesPicture::of_shown(&shown(
            turns,
            Some(&cpu([cut(0, 12), off].concat())),
        ));
        let [as_found, changed] = found.steps.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            (as_found.mean, as_found.text.as_str()),
            (Some(us(1_000)), "as found")
        );
        assert_eq!(as_found.slices_hz, Some(PerSecond::new(1_000.0)));
        let seen = as_found.switches.as_ref().unwrap();
        assert_eq!((seen.slices, seen.p50, seen.p99), (10, Some(us(990)), Some(us(990))));
        let woken: f64 = seen.bins.iter().filter_map(|bin| Some(bin.woken?.get())).sum();
        assert_eq!(woken, 1e6);
        let seen = changed.switches.as_ref().unwrap();
        let figures = (seen.slices, seen.p50, seen.p99);
        assert_eq!(figures, (2, Some(us(3_000)), Some(us(4_000))));
        assert!(seen.bins.iter().all(|bin| bin.woken == Some(Ppm::new(0.0))));
        assert_eq!(found.longest_mean, Some(us(1_000)));
        assert_eq!(found.largest_share, Some(Ppm::new(1e6)));
    }

    /// Check that where nobody watched the means are known, and nothing else is.
    #[test]
    fn nobody_watched() {
        let found = SlicesPicture::of_shown(&shown(vec![turn(0, 0, 2_000)], None));
        assert_eq!(
            (found.window, found.lost, found.largest_share),
            (Nanos::ZERO, None, None)
        );
        assert_eq!(
            (found.steps[0].mean, &found.steps[0].switches),
            (Some(us(1_000)), &None)
        );
        assert_eq!((found.steps[1].mean, found.steps[1].slices_hz), (None, None));
    }

    proptest! {
        /// Check that a window's stretches and what was not seen fill it without overlap,
        /// whatever ran, and that the shares of slices are a whole.
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
            let shown = Shown { window: us(longest), ..shown(turns.collect(), Some(&cpus)) };
            let found = SlicesPicture::of_shown(&shown);
            prop_assert!(found.window <= us(longest));
            for seen in found.steps.iter().filter_map(|step| step.switches.as_ref()) {
                for row in &seen.rows {
                    check_row(row, found.window);
                }
                let slices: u64 = seen.bins.iter().map(|bin| bin.slices).sum();
                prop_assert_eq!(slices, seen.slices);
                let shares: f64 = seen.bins.iter().filter_map(|bin| bin.share).map(Ppm::get).sum();
                let whole = if slices == 0 { 0.0 } else { 1e6 };
                prop_assert!((shares - whole).abs() < 1e-3, "{shares}");
            }
        }
    }

    fn check_row(row: &PictureRow, window: Nanos) {
        let shown = row.stretches.iter().map(|shown| shown.span);
        let mut spans: Vec<Span> = shown.chain(row.unseen.iter().copied()).collect();
        spans.sort_unstable();
        let mut until = Nanos::ZERO;
        for span in spans {
            assert_eq!(span.start, until, "{row:?}");
            until = span.end();
        }
        assert_eq!(until, window, "{row:?}");
    }
}
