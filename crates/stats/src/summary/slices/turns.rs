//! What tasks did in the turns of a step, added up.

use recording::{SlicesSeries, SlicesTurn, TaskTime};
use units::Nanos;

/// The turns of a step, counted from 1; 0: with the settings as they were found.
pub(super) fn turns(
    series: &SlicesSeries,
    step: usize,
) -> impl Iterator<Item = &SlicesTurn> {
    series.turns.iter().filter(move |turn| usize::try_from(turn.step) == Ok(step))
}

/// How long a turn was.
pub(super) fn wall(turn: &SlicesTurn) -> Nanos {
    turn.samples.iter().map(|sample| sample.wall_ns).sum()
}

/// One task's time, or several tasks', added up.
pub(super) fn sum<'a>(times: impl IntoIterator<Item = &'a TaskTime>) -> TaskTime {
    times.into_iter().fold(TaskTime::default(), |sum, time| TaskTime {
        cpu_ns: sum.cpu_ns + time.cpu_ns,
        involuntary: sum.involuntary + time.involuntary,
        voluntary: sum.voluntary + time.voluntary,
        passes: sum.passes.saturating_add(time.passes),
    })
}

/// The mean slice; `None` where the task never had to leave the CPU.
pub(super) fn mean_slice(time: &TaskTime) -> Option<Nanos> {
    time.cpu_ns.get().checked_div(time.involuntary).map(Nanos::from_nanos)
}
