//! What the picture of placements shows: the wake-ups of each variant in a short window, which is that of
//! the picture of slices, if switches were traced.
//!
//! Without traced switches, it is the middle of the variant's middle round.

use recording::{Placement, SlicesSeries, SlicesSpec};
use units::{Cpu, Nanos, Span};

use crate::slices::picture::{PictureStep, SlicesPicture, WINDOW};
use crate::slices::placements::{between, name};
use crate::slices::turns::{turns, wall};

/// A task that woke up while another one ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedTask {
    /// From the start of the window.
    pub at: Nanos,
    /// The CPU.
    pub cpu: Cpu,
    /// The task; `None` if it was not measured, as a kernel thread.
    pub name: Option<String>,
    /// The running task; `None` if it was not measured.
    pub running: Option<String>,
    /// How far it was placed before the running one, in nanoseconds of virtual time; negative: behind it.
    pub ahead_ns: i64,
    /// What the running task lost of its slice; `None`: it was not preempted.
    pub lost: Option<Nanos>,
}

/// The wake-ups in the window of each variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementsPicture {
    /// The length of all windows; zero without one.
    pub window: Nanos,
    /// The unmodified settings, and the variants.
    pub steps: Vec<Vec<PlacedTask>>,
}

impl PlacementsPicture {
    /// Prepares the data of a recording; `None` if placements were not stored. `slices` is its picture of
    /// slices.
    pub fn of(
        spec: &SlicesSpec,
        series: &SlicesSeries,
        slices: Option<&SlicesPicture>,
    ) -> Option<Self> {
        let placements = series.placements.as_ref()?;
        let rounds: Vec<Option<Span>> =
            (0..=spec.steps.len()).map(|step| middle_round(series, step)).collect();
        let shortest = rounds.iter().flatten().map(|round| round.length).min();
        let shortest = shortest.map_or(Nanos::ZERO, |shortest| shortest.min(WINDOW));
        let traced = slices.map(|slices| slices.window).filter(|all| !all.is_zero());
        let window = traced.unwrap_or(shortest);
        let wakeups = |(step, round): (usize, &Option<Span>)| {
            let traced = slices.and_then(|slices| slices.steps.get(step));
            let began = |step: &PictureStep| step.began;
            let from =
                traced.and_then(began).or(round.map(|round| middle(round, window)));
            let from = from.unwrap_or(Nanos::MAX);
            let all = between(&placements.wakeups, from, from + window).iter();
            all.map(|of| PlacedTask::of(series, from, of)).collect()
        };
        let steps = rounds.iter().enumerate().map(wakeups).collect();
        Some(Self { window, steps })
    }
}

impl PlacedTask {
    fn of(series: &SlicesSeries, began: Nanos, of: &Placement) -> Self {
        Self {
            at: of.at_ns.saturating_sub(began),
            cpu: of.cpu,
            name: name(series, of.task),
            running: name(series, of.running),
            ahead_ns: of.ahead_ns,
            lost: of.lost_ns,
        }
    }
}

fn middle_round(series: &SlicesSeries, step: usize) -> Option<Span> {
    let rounds: Vec<Span> = turns(series, step)
        .filter_map(|turn| {
            let start = turn.samples.first()?.start_ns;
            Some(Span { start, length: wall(turn) })
        })
        .collect();
    rounds.get(rounds.len() / 2).copied()
}

/// The start of a window in the middle of a round.
fn middle(round: Span, window: Nanos) -> Nanos {
    let before = round.length.saturating_sub(window).get() / 2;
    round.start + Nanos::from_nanos(before)
}
