//! Steal time: its bounds, and where it went.
//!
//! Stolen time is in gaps or in the measured time of threads and interrupts. In gaps it is at most the
//! proven part (the culprit `steal`) and the part of the unexplained time that can be steal time; so
//! the lower bound of all steal time exceeds these by at least the time in threads and interrupts.

use recording::{CulpritKind, Steal, StealClock};
use serde::Serialize;
use units::Nanos;

use crate::noise::culprits::CulpritSummary;

/// Steal time while the loop ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StealSummary {
    /// The clock: `paravirt`, read at each tick and switch, or `proc`, read before and after the run in
    /// steps of 10 ms.
    pub clock: String,
    /// The lower bound, in gaps and in the time of threads and interrupts.
    pub at_least_ns: Nanos,
    /// The upper bound.
    pub at_most_ns: Nanos,
    /// The part that is proven to be in gaps: the culprit `steal`.
    pub proven_ns: Nanos,
    /// The upper bound of steal time in the unexplained time.
    pub unexplained_max_ns: Nanos,
    /// The lower bound of steal time in the time of threads and interrupts.
    pub others_min_ns: Nanos,
}

/// Bounds of the time that the hypervisor took from a CPU while its loop ran: what all reports say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StolenTime {
    /// The upper bound.
    pub at_most: Nanos,
    /// The lower bound.
    pub at_least: Nanos,
}

impl StolenTime {
    /// Those of the traced clock; without one those of `/proc/stat`, of which both readings may be a
    /// step too low. `None` if neither could be read.
    pub(crate) fn of(
        steal: Option<&StealSummary>,
        counted: Option<Nanos>,
    ) -> Option<Self> {
        let traced = steal
            .map(|steal| Self { at_most: steal.at_most_ns, at_least: steal.at_least_ns });
        traced.or_else(|| {
            let counted = counted?;
            Some(Self {
                at_most: counted + StealClock::STEP,
                at_least: counted.saturating_sub(StealClock::STEP),
            })
        })
    }
}

impl StealSummary {
    /// Summarizes the bounds; the proven part is among the culprits.
    pub(crate) fn of(steal: &Steal, culprits: &[CulpritSummary]) -> Self {
        let is_steal = |culprit: &&CulpritSummary| culprit.kind == CulpritKind::Steal;
        let proven = culprits.iter().filter(is_steal).map(|culprit| culprit.ns).sum();
        let in_gaps = proven + steal.unexplained_max_ns;
        Self {
            clock: steal.clock.name().to_owned(),
            at_least_ns: steal.at_least_ns,
            at_most_ns: steal.at_most_ns,
            proven_ns: proven,
            unexplained_max_ns: steal.unexplained_max_ns,
            others_min_ns: steal.at_least_ns.saturating_sub(in_gaps),
        }
    }

    /// The sum of several CPUs; `None` if unknown for one of them, or if their clocks differ.
    pub(crate) fn together<'a>(
        all: impl IntoIterator<Item = Option<&'a Self>>,
    ) -> Option<Self> {
        let mut all = all.into_iter();
        let first = all.next()??.clone();
        all.try_fold(first, |sum, next| {
            let next = next.filter(|next| next.clock == sum.clock)?;
            Some(Self {
                at_least_ns: sum.at_least_ns + next.at_least_ns,
                at_most_ns: sum.at_most_ns + next.at_most_ns,
                proven_ns: sum.proven_ns + next.proven_ns,
                unexplained_max_ns: sum.unexplained_max_ns + next.unexplained_max_ns,
                others_min_ns: sum.others_min_ns + next.others_min_ns,
                clock: sum.clock,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use recording::StealClock;

    use super::*;
    use crate::example;

    fn steal(clock: StealClock, taken: u64, proven: u64) -> StealSummary {
        let nanos = Nanos::from_nanos;
        let share = example::share(0, CulpritKind::Steal, "hypervisor", None, proven);
        let steal = Steal {
            clock,
            at_least_ns: nanos(taken),
            at_most_ns: nanos(taken + 2),
            unexplained_max_ns: nanos(5),
        };
        let blamed = example::blamed(&[share]);
        StealSummary::of(&steal, &CulpritSummary::of(Some(&blamed), None, nanos(proven)))
    }

    /// Check the keys and values of the JSON contract, and the bound for threads and interrupts.
    #[test]
    fn contract() {
        let expected = serde_json::json!({"clock": "paravirt", "at_least_ns": 100, "at_most_ns": 102,
            "proven_ns": 80, "unexplained_max_ns": 5, "others_min_ns": 15});
        assert_eq!(
            serde_json::to_value(steal(StealClock::Paravirt, 100, 80)).unwrap(),
            expected
        );
    }

    /// Check that the traced clock is preferred to `/proc/stat`, which counts in steps.
    #[test]
    fn one_answer() {
        let traced = steal(StealClock::Paravirt, 100, 80);
        let counted = Some(Nanos::from_millis(20));
        let bounds = |steal: Option<&StealSummary>, counted| {
            let found = StolenTime::of(steal, counted)?;
            Some((found.at_least.get(), found.at_most.get()))
        };
        assert_eq!(bounds(Some(&traced), counted), Some((100, 102)));
        assert_eq!(bounds(None, counted), Some((10_000_000, 30_000_000)));
        assert_eq!(bounds(None, Some(Nanos::ZERO)), Some((0, 10_000_000)));
        assert_eq!(bounds(None, None), None);
    }

    /// Check that CPUs add up, and that the sum is unknown if one of them is.
    #[test]
    fn together() {
        let (one, other) =
            (steal(StealClock::Paravirt, 100, 80), steal(StealClock::Paravirt, 10, 0));
        let both = StealSummary::together([Some(&one), Some(&other)]).unwrap();
        let nanos = Nanos::from_nanos;
        assert_eq!((both.at_least_ns, both.at_most_ns), (nanos(110), nanos(114)));
        assert_eq!((both.proven_ns, both.others_min_ns), (nanos(80), nanos(20)));
        assert_eq!(StealSummary::together([Some(&one), None]), None);
        let third = steal(StealClock::Proc, 1, 0);
        assert_eq!(StealSummary::together([Some(&one), Some(&third)]), None);
        assert_eq!(StealSummary::together([]), None);
    }
}
