//! The times of tasks in the rounds of a variant, added up.

use recording::{SlicesSeries, SlicesTurn, TaskTime};
use units::Nanos;

/// The rounds of a variant, counted from 1; 0 is the unmodified one.
pub(super) fn turns(
    series: &SlicesSeries,
    step: usize,
) -> impl Iterator<Item = &SlicesTurn> {
    series.turns.iter().filter(move |turn| usize::try_from(turn.step) == Ok(step))
}

/// The duration of a round.
pub(super) fn wall(turn: &SlicesTurn) -> Nanos {
    turn.samples.iter().map(|sample| sample.wall_ns).sum()
}

/// The sum of the times of one task or of several.
pub(super) fn sum<'a>(times: impl IntoIterator<Item = &'a TaskTime>) -> TaskTime {
    times.into_iter().fold(TaskTime::default(), |sum, time| TaskTime {
        cpu_ns: sum.cpu_ns + time.cpu_ns,
        involuntary: sum.involuntary + time.involuntary,
        voluntary: sum.voluntary + time.voluntary,
        passes: sum.passes.saturating_add(time.passes),
    })
}

/// The mean slice; `None` without an involuntary switch.
pub(super) fn mean_slice(time: &TaskTime) -> Option<Nanos> {
    time.cpu_ns.get().checked_div(time.involuntary).map(Nanos::from_nanos)
}
