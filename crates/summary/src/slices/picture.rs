//! The data of the picture of `slices`: for each variant a short window of what ran on each CPU,
//! and the distribution of the spinners' slices.
//!
//! The stretches are those of traced switches, the mean that of the kernel's accounting; without
//! tracing only the mean is known. Slices are those of the summary: stretches of spinners that ended
//! within a round. Cannot see the time of interrupts in a stretch.

use recording::{
    CpuSwitches, End, Role, SlicesSeries, SlicesSpec, SlicesTurn, Stretch, SwitchedTask,
    Switches, TaskTime,
};
use stats::quantile;
use units::{Nanos, PerSecond, Ppm, Span};

use crate::slices::bins::SliceBin;
use crate::slices::turns::{mean_slice, sum, wall};
use crate::slices::window::{PictureRow, begun_in, ended_in, place};
use crate::slices::{step_text, tasks};

/// The window of each variant.
const WINDOW: Nanos = Nanos::from_millis(50);

/// The role of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureRole {
    /// A measured CPU-bound task.
    Spinner,
    /// A measured task that sleeps periodically.
    Sleeper,
    /// Another task.
    Other,
    /// The idle task.
    Idle,
}

/// A task of a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureTask {
    /// The name.
    pub name: String,
    /// The role.
    pub role: PictureRole,
    /// The number of its shade; neighbouring tasks have different ones.
    pub shade: usize,
}

/// A round of one variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    step: usize,
    span: Span,
    /// The sum of its samples.
    wall: Nanos,
    /// The sum of the spinners' times.
    spun: TaskTime,
}

struct Shown<'a> {
    steps: Vec<String>,
    turns: Vec<Turn>,
    tasks: Vec<PictureTask>,
    /// `None` if switches were not traced.
    cpus: Option<&'a [CpuSwitches]>,
    /// The longest window.
    window: Nanos,
}

/// The traced switches of a variant.
#[derive(Debug, Clone, PartialEq)]
pub struct PictureSwitches {
    /// The start of the window in the recording; `None` if no round was traced.
    pub began: Option<Nanos>,
    /// Each CPU in the window; empty without a window.
    pub rows: Vec<PictureRow>,
    /// The number of slices in all rounds.
    pub slices: u64,
    /// Their median length; `None` without slices.
    pub p50: Option<Nanos>,
    /// The length that 99 % do not exceed; `None` without slices.
    pub p99: Option<Nanos>,
    /// Slices by length: 8 bins per decade from 10 µs to 100 ms, one for shorter and one for longer.
    pub bins: Vec<SliceBin>,
}

/// A variant.
#[derive(Debug, Clone, PartialEq)]
pub struct PictureStep {
    /// The settings.
    pub text: String,
    /// The mean slice: the spinners' CPU time divided by their involuntary switches; `None` without one.
    pub mean: Option<Nanos>,
    /// Involuntary switches of all spinners per second; `None` if no time passed.
    pub slices_hz: Option<PerSecond>,
    /// The traced switches; `None` without tracing.
    pub switches: Option<PictureSwitches>,
}

/// The data of the picture.
#[derive(Debug, Clone, PartialEq)]
pub struct SlicesPicture {
    /// The length of all windows; zero without one.
    pub window: Nanos,
    /// The tasks.
    pub tasks: Vec<PictureTask>,
    /// The variants.
    pub steps: Vec<PictureStep>,
    /// The longest mean; `None` without one.
    pub longest_mean: Option<Nanos>,
    /// The largest share of a bin; `None` without slices.
    pub largest_share: Option<Ppm>,
    /// The number of lost stretches; `None` without tracing.
    pub lost: Option<u64>,
}

impl SlicesPicture {
    /// Prepares the data of a recording.
    pub fn of(spec: &SlicesSpec, series: &SlicesSeries) -> Self {
        let unmodified = std::iter::once("unmodified".to_owned());
        let switches = series.switches.as_ref();
        let turn = |turn| Turn::of(series, turn);
        Self::of_shown(&Shown {
            steps: unmodified.chain(spec.steps.iter().map(step_text)).collect(),
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
        let bins = switches().flat_map(|switches| &switches.bins);
        let shares = bins.filter_map(|bin| bin.share);
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
    /// `None` for a round without samples.
    fn of(series: &SlicesSeries, turn: &SlicesTurn) -> Option<Self> {
        let (first, last) = (turn.samples.first()?, turn.samples.last()?);
        let end = last.start_ns + last.wall_ns;
        let is_spinner = |at: usize| {
            series.tasks.get(at).is_some_and(|task| task.role == Role::Spinner)
        };
        let times =
            turn.samples.iter().flat_map(|sample| sample.tasks.iter().enumerate());
        let spun = times.filter(|(at, _)| is_spinner(*at)).map(|(_, time)| time);
        Some(Self {
            step: usize::try_from(turn.step).ok()?,
            span: Span {
                start: first.start_ns,
                length: end.saturating_sub(first.start_ns),
            },
            wall: wall(turn),
            spun: sum(spun),
        })
    }
}

fn picture_tasks(
    spec: &SlicesSpec,
    series: &SlicesSeries,
    switches: &Switches,
) -> Vec<PictureTask> {
    let places = tasks::measured(spec, series, switches);
    let names = tasks::names(series, switches, &places);
    let each = if spec.pinned { spec.cpus.len().max(1) } else { 1 };
    let task = |((task, place), name): ((&SwitchedTask, Option<usize>), String)| {
        let measured = place.and_then(|at| series.tasks.get(at));
        let role = match measured.map(|task| task.role) {
            _ if task.tid == 0 => PictureRole::Idle,
            Some(Role::Spinner) => PictureRole::Spinner,
            Some(Role::Sleeper) => PictureRole::Sleeper,
            None => PictureRole::Other,
        };
        // Pinned tasks are distributed round robin; neighbours are those on the same CPU.
        let shade =
            place.map_or(0, |at| at / each + if each > 1 { at % each } else { 0 });
        PictureTask { name, role, shade }
    };
    switches.tasks.iter().zip(places).zip(names).map(task).collect()
}

impl PictureStep {
    fn of(input: &Shown<'_>, step: usize, turn: Option<Span>, window: Nanos) -> Self {
        let turns = || input.turns.iter().filter(move |turn| turn.step == step);
        let spun = sum(turns().map(|turn| &turn.spun));
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
            mean: mean_slice(&spun),
            slices_hz: PerSecond::of(
                spun.involuntary,
                turns().map(|turn| turn.wall).sum(),
            ),
            switches: input.cpus.map(switches),
        }
    }
}

impl PictureSwitches {
    fn of(began: Option<Nanos>, rows: Vec<PictureRow>, slices: &[Stretch]) -> Self {
        let lengths = |is_counted: &dyn Fn(&Stretch) -> bool| {
            let counted = slices.iter().filter(|slice| is_counted(slice));
            let mut lengths: Vec<Nanos> = counted.map(|slice| slice.ns).collect();
            lengths.sort_unstable();
            lengths
        };
        let all = lengths(&|_| true);
        let woken = lengths(&|slice| slice.end == End::Wakeup);
        Self {
            began,
            rows,
            slices: all.len() as u64,
            p50: quantile(&all, 500_000),
            p99: quantile(&all, 990_000),
            bins: SliceBin::all(&all, &woken),
        }
    }
}

fn is_spinner(input: &Shown<'_>, stretch: &Stretch) -> bool {
    let task = input.tasks.get(place(stretch));
    task.is_some_and(|task| task.role == PictureRole::Spinner)
}

/// The round to show: of those in which a spinner started, the one closest to the middle one.
fn chosen_turn(input: &Shown<'_>, step: usize) -> Option<Span> {
    let turns: Vec<Span> = input
        .turns
        .iter()
        .filter(|turn| turn.step == step)
        .map(|turn| turn.span)
        .collect();
    let middle = turns.len() / 2;
    let is_traced = |turn: &Span| {
        let cpus = input.cpus.into_iter().flatten();
        cpus.flat_map(|cpu| begun_in(&cpu.stretches, turn.start, turn.end()))
            .any(|stretch| is_spinner(input, stretch))
    };
    let distance = |(at, _): &(usize, &Span)| at.abs_diff(middle);
    let traced = turns.iter().enumerate().filter(|(_, turn)| is_traced(turn));
    traced.min_by_key(distance).map(|(_, turn)| *turn)
}

/// The start of the window: where a spinner starts in the middle of the round, on the first CPU
/// with one.
fn began(input: &Shown<'_>, cpus: &[CpuSwitches], turn: Span, window: Nanos) -> Nanos {
    let latest = turn.length.saturating_sub(window);
    let middle = turn.start + Nanos::from_nanos(latest.get() / 2);
    let after_last = turn.start + latest + Nanos::from_nanos(1);
    let first_in = |from: Nanos, before: Nanos| {
        let each = cpus.iter().map(move |cpu| begun_in(&cpu.stretches, from, before));
        let mut firsts =
            each.filter_map(|all| all.iter().find(|stretch| is_spinner(input, stretch)));
        firsts.next().map(|stretch| stretch.start_ns)
    };
    first_in(middle, after_last)
        .or_else(|| first_in(turn.start, middle))
        .unwrap_or(middle)
}

fn slices(input: &Shown<'_>, cpus: &[CpuSwitches], step: usize) -> Vec<Stretch> {
    let turns = input.turns.iter().filter(|turn| turn.step == step);
    let of_turn = |turn: &Turn| {
        let (from, to) = (turn.span.start, turn.span.end());
        let ended = cpus.iter().flat_map(move |cpu| ended_in(&cpu.stretches, from, to));
        ended.filter(|stretch| is_spinner(input, stretch)).copied().collect::<Vec<_>>()
    };
    turns.flat_map(of_turn).collect()
}

#[cfg(test)]
mod tests;
