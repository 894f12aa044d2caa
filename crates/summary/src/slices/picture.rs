//! What the picture of `slices` shows of traced switches, besides the numbers of the summary: for each
//! variant a short window of what ran on each CPU, and the distribution of the spinners' slices.
//!
//! Slices are those of the summary: stretches of spinners that ended within a round. Cannot see the
//! time of interrupts in a stretch.

use recording::{
    CpuSwitches, End, Role, SlicesSeries, SlicesSpec, SlicesTurn, Stretch, SwitchedTask,
    Switches,
};
use units::{Nanos, Span};

use crate::slices::bins::SliceBin;
use crate::slices::tasks;
use crate::slices::window::{PictureRow, begun_in, ended_in, place};

/// The window of each variant.
pub(super) const WINDOW: Nanos = Nanos::from_millis(50);

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
}

struct Shown<'a> {
    /// The number of variants.
    steps: usize,
    turns: Vec<Turn>,
    tasks: Vec<PictureTask>,
    cpus: &'a [CpuSwitches],
    /// The longest window.
    window: Nanos,
}

/// The traced switches of a variant.
#[derive(Debug, Clone, PartialEq)]
pub struct PictureStep {
    /// The start of the window in the recording; `None` if no round was traced.
    pub began: Option<Nanos>,
    /// Each CPU in the window; empty without a window.
    pub rows: Vec<PictureRow>,
    /// Slices of all rounds by length: 8 bins per decade from 10 µs to 100 ms, one for shorter and one for longer.
    pub bins: Vec<SliceBin>,
}

/// The data of the picture.
#[derive(Debug, Clone, PartialEq)]
pub struct SlicesPicture {
    /// The length of all windows; zero without one.
    pub window: Nanos,
    /// The tasks.
    pub tasks: Vec<PictureTask>,
    /// The unmodified settings, and the variants.
    pub steps: Vec<PictureStep>,
    /// The number of lost stretches.
    pub lost: u64,
}

impl SlicesPicture {
    /// Prepares the data of a recording; `None` if switches were not traced.
    pub fn of(spec: &SlicesSpec, series: &SlicesSeries) -> Option<Self> {
        let switches = series.switches.as_ref()?;
        Some(Self::of_shown(&Shown {
            steps: spec.steps.len() + 1,
            turns: series.turns.iter().filter_map(Turn::of).collect(),
            tasks: picture_tasks(spec, series, switches),
            cpus: &switches.cpus,
            window: WINDOW,
        }))
    }

    fn of_shown(input: &Shown<'_>) -> Self {
        let chosen: Vec<Option<Span>> =
            (0..input.steps).map(|step| chosen_turn(input, step)).collect();
        let shortest = chosen.iter().flatten().map(|turn| turn.length).min();
        let window = shortest.map_or(Nanos::ZERO, |shortest| shortest.min(input.window));
        let steps = chosen.iter().enumerate();
        let steps = steps.map(|(step, turn)| PictureStep::of(input, step, *turn, window));
        Self {
            window,
            tasks: input.tasks.clone(),
            steps: steps.collect(),
            lost: input.cpus.iter().map(|cpu| cpu.lost).fold(0, u64::saturating_add),
        }
    }
}

impl Turn {
    /// `None` for a round without samples.
    fn of(turn: &SlicesTurn) -> Option<Self> {
        let (first, last) = (turn.samples.first()?, turn.samples.last()?);
        let (start, end) = (first.start_ns, last.start_ns + last.wall_ns);
        let span = Span { start, length: end.saturating_sub(start) };
        Some(Self { step: usize::try_from(turn.step).ok()?, span })
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
        let began = turn.map(|turn| began(input, turn, window));
        let rows = began.map_or_else(Vec::new, |start| {
            let window = Span { start, length: window };
            input.cpus.iter().map(|cpu| PictureRow::of(cpu, window)).collect()
        });
        let slices = slices(input, step);
        let lengths = |is_counted: fn(&Stretch) -> bool| {
            let counted = slices.iter().filter(|slice| is_counted(slice));
            let mut lengths: Vec<Nanos> = counted.map(|slice| slice.ns).collect();
            lengths.sort_unstable();
            lengths
        };
        let woken = lengths(|slice| slice.end == End::Wakeup);
        Self { began, rows, bins: SliceBin::all(&lengths(|_| true), &woken) }
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
        let cpus = input.cpus.iter();
        cpus.flat_map(|cpu| begun_in(&cpu.stretches, turn.start, turn.end()))
            .any(|stretch| is_spinner(input, stretch))
    };
    let distance = |(at, _): &(usize, &Span)| at.abs_diff(middle);
    let traced = turns.iter().enumerate().filter(|(_, turn)| is_traced(turn));
    traced.min_by_key(distance).map(|(_, turn)| *turn)
}

/// The start of the window: where a spinner starts in the middle of the round, on the first CPU
/// with one.
fn began(input: &Shown<'_>, turn: Span, window: Nanos) -> Nanos {
    let latest = turn.length.saturating_sub(window);
    let middle = turn.start + Nanos::from_nanos(latest.get() / 2);
    let after_last = turn.start + latest + Nanos::from_nanos(1);
    let first_in = |from: Nanos, before: Nanos| {
        let cpus = input.cpus.iter();
        let each = cpus.map(move |cpu| begun_in(&cpu.stretches, from, before));
        let mut firsts =
            each.filter_map(|all| all.iter().find(|stretch| is_spinner(input, stretch)));
        firsts.next().map(|stretch| stretch.start_ns)
    };
    first_in(middle, after_last)
        .or_else(|| first_in(turn.start, middle))
        .unwrap_or(middle)
}

fn slices(input: &Shown<'_>, step: usize) -> Vec<Stretch> {
    let turns = input.turns.iter().filter(|turn| turn.step == step);
    let of_turn = |turn: &Turn| {
        let (from, to) = (turn.span.start, turn.span.end());
        let cpus = input.cpus.iter();
        let ended = cpus.flat_map(move |cpu| ended_in(&cpu.stretches, from, to));
        ended.filter(|stretch| is_spinner(input, stretch)).copied().collect::<Vec<_>>()
    };
    turns.flat_map(of_turn).collect()
}

#[cfg(test)]
mod tests;
