//! Where tasks that woke up were placed in the scheduler's queue, in virtual time, and what the tasks
//! that they preempted lost of their slices, for each variant.
//!
//! Only simulations store that. Wake-ups on an idle CPU have no running task, and are not included. The
//! recording has one granularity, that of its last round; a variant that sets it has its own.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use recording::{Placement, Placements, SlicesSeries, SlicesSpec};
use serde::Serialize;
use stats::{Distribution, Placed};
use units::{Cpu, Nanos, Ppm};

use crate::slices::turns::{turns, wall};

pub(crate) mod picture;

/// The number of the largest losses that are listed.
const LARGEST: usize = 5;
/// The setting that changes the granularity; before 5.13 it has a prefix.
const GRANULARITY: [&str; 2] = ["wakeup_granularity_ns", "sched_wakeup_granularity_ns"];

/// The slices that one task lost, or that were lost to one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskLoss {
    /// The task; null for all that were not measured, as kernel threads.
    pub name: Option<String>,
    /// The number of preemptions at wake-ups.
    pub preemptions: u64,
    /// What the preempted tasks had left of their slices.
    pub lost_ns: Nanos,
    /// That of each preemption.
    pub lost_ns_mean: Option<Nanos>,
}

/// A slice that a wake-up ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SliceLoss {
    /// From the recording's beginning.
    pub at_ns: Nanos,
    /// The CPU.
    pub cpu: Cpu,
    /// The preempted task; null if it was not measured.
    pub name: Option<String>,
    /// The task that woke up; null if it was not measured.
    pub by: Option<String>,
    /// How far that was placed before the preempted one, in virtual time.
    pub ahead_ns: i64,
    /// What the preempted task had left of its slice.
    pub lost_ns: Nanos,
}

/// The wake-ups of one variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacementsSummary {
    /// Wake-ups while another task ran.
    pub wakeups: u64,
    /// Those that preempted it.
    pub preemptions: u64,
    /// Their share.
    pub preempting_ppm: Option<Ppm>,
    /// How far tasks were placed before the running one, in virtual time; negative: behind it.
    pub ahead_ns: Distribution<Placed, i64>,
    /// The same for the average of all other tasks.
    pub ahead_of_average_ns: Distribution<Placed, i64>,
    /// How far a task of nice 0 has to be placed before the running one to preempt it; null: not decided
    /// by that (EEVDF), or unknown because another variant changes it.
    pub granularity_ns: Option<Nanos>,
    /// What the preempted tasks had left of their slices.
    pub lost_ns: Nanos,
    /// That of each preemption.
    pub lost_ns_mean: Option<Nanos>,
    /// The preempted tasks, the largest loss first.
    pub victims: Vec<TaskLoss>,
    /// The tasks that preempted them, the largest loss first.
    pub by: Vec<TaskLoss>,
    /// The largest losses.
    pub largest: Vec<SliceLoss>,
}

impl PlacementsSummary {
    /// The wake-ups in the rounds of a variant; `None` if they were not stored.
    pub(super) fn of(
        spec: &SlicesSpec,
        series: &SlicesSeries,
        step: usize,
    ) -> Option<Self> {
        let placements = series.placements.as_ref()?;
        let wakeups = within(placements, series, step);
        let losses: Vec<Loss<'_>> =
            wakeups.iter().filter_map(|of| Loss::of(of)).collect();
        let [all, preemptions] = [wakeups.len(), losses.len()].map(|count| count as u64);
        let lost_ns = losses.iter().map(|loss| loss.lost).sum();
        let share = preemptions as f64 / all as f64 * 1e6;
        Some(Self {
            wakeups: all,
            preemptions,
            preempting_ppm: (all > 0).then(|| Ppm::new(share)),
            ahead_ns: Distribution::of(wakeups.iter().map(|of| of.ahead_ns)),
            ahead_of_average_ns: Distribution::of(
                wakeups.iter().map(|of| of.ahead_of_average_ns),
            ),
            granularity_ns: granularity(spec, series, placements, step),
            lost_ns,
            lost_ns_mean: mean(lost_ns, preemptions),
            victims: by_task(series, &losses, |of| of.running),
            by: by_task(series, &losses, |of| of.task),
            largest: largest(series, losses),
        })
    }
}

/// A wake-up that preempted a task, and what that lost.
#[derive(Debug, Clone, Copy)]
struct Loss<'a> {
    of: &'a Placement,
    lost: Nanos,
}

impl<'a> Loss<'a> {
    fn of(of: &'a Placement) -> Option<Self> {
        Some(Self { of, lost: of.lost_ns? })
    }
}

/// The wake-ups in the rounds of a variant.
fn within<'a>(
    placements: &'a Placements,
    series: &SlicesSeries,
    step: usize,
) -> Vec<&'a Placement> {
    let of_turn = |start: Nanos, end: Nanos| between(&placements.wakeups, start, end);
    let turns = turns(series, step).filter_map(|turn| {
        let start = turn.samples.first()?.start_ns;
        Some(of_turn(start, start + wall(turn)))
    });
    turns.flatten().collect()
}

/// The wake-ups in `[from, before)`.
fn between(wakeups: &[Placement], from: Nanos, before: Nanos) -> &[Placement] {
    let at = |time| wakeups.partition_point(|wakeup| wakeup.at_ns < time);
    wakeups.get(at(from)..at(before)).unwrap_or_default()
}

/// The name of a measured task.
fn name(series: &SlicesSeries, task: u32) -> Option<String> {
    let task = series.tasks.get(usize::try_from(task).ok()?)?;
    Some(task.name.clone())
}

fn mean(sum: Nanos, count: u64) -> Option<Nanos> {
    sum.get().checked_div(count).map(Nanos::from_nanos)
}

/// The granularity of a variant, which may set it. That of the last round is known, and so that of all
/// variants without an own one, unless the last round has its own.
fn granularity(
    spec: &SlicesSpec,
    series: &SlicesSeries,
    placements: &Placements,
    step: usize,
) -> Option<Nanos> {
    let of_last = placements.granularity_ns?;
    let own = |step: usize| {
        let settings = &spec.steps.get(step.checked_sub(1)?)?.settings;
        settings.iter().rfind(|setting| GRANULARITY.contains(&setting.name.as_str()))
    };
    let last = usize::try_from(series.turns.last()?.step).ok()?;
    match own(step) {
        Some(setting) => setting.value.parse().ok().map(Nanos::from_nanos),
        None => Some(of_last).filter(|_| own(last).is_none()),
    }
}

/// The losses of each task, the largest first.
fn by_task(
    series: &SlicesSeries,
    losses: &[Loss<'_>],
    task: fn(&Placement) -> u32,
) -> Vec<TaskLoss> {
    let mut sums: BTreeMap<Option<u32>, (u64, Nanos)> = BTreeMap::new();
    for loss in losses {
        let is_measured = |task: &u32| {
            usize::try_from(*task).is_ok_and(|task| task < series.tasks.len())
        };
        let sum = sums.entry(Some(task(loss.of)).filter(is_measured)).or_default();
        *sum = (sum.0 + 1, sum.1 + loss.lost);
    }
    let of_task =
        |(task, (preemptions, lost_ns)): (Option<u32>, (u64, Nanos))| TaskLoss {
            name: task.and_then(|task| name(series, task)),
            preemptions,
            lost_ns,
            lost_ns_mean: mean(lost_ns, preemptions),
        };
    let mut all: Vec<TaskLoss> = sums.into_iter().map(of_task).collect();
    all.sort_by_key(|of| Reverse(of.lost_ns));
    all
}

/// The largest losses, of equal ones the earliest.
fn largest(series: &SlicesSeries, mut losses: Vec<Loss<'_>>) -> Vec<SliceLoss> {
    losses.sort_by_key(|loss| Reverse(loss.lost));
    let loss = |Loss { of, lost }: Loss<'_>| SliceLoss {
        at_ns: of.at_ns,
        cpu: of.cpu,
        name: name(series, of.running),
        by: name(series, of.task),
        ahead_ns: of.ahead_ns,
        lost_ns: lost,
    };
    losses.into_iter().take(LARGEST).map(loss).collect()
}

#[cfg(test)]
mod tests;
