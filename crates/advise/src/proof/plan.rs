//! What a proof measures in the time that it has.
//!
//! Settings that have one measurement are tried in batches: in each round, every setting of a batch and the current
//! settings have one run, in balanced order. So they share the runs of the current settings, and the first settings
//! of the list have their result before the last ones begin.

use units::Nanos;

use crate::proof::method::Method;

/// The most settings of a batch.
const BATCH: usize = 4;
/// Fewer runs of each variant show only differences that are several times their spread,
const ROUNDS_MIN: u32 = 6;
/// and more of them hardly narrow the interval: its width decreases with the square root of their number.
const ROUNDS_MAX: u32 = 30;
/// The limits of a run's duration: rare events occur in long ones.
const RUN_MIN: Nanos = Nanos::from_secs(1);
const RUN_MAX: Nanos = Nanos::from_secs(5);
/// The runs in a budget, if their duration is within these limits.
const RUNS: u64 = 240;

/// Settings that are tried in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Their measurement.
    pub method: Method,
    /// Their places in the list.
    pub settings: Vec<usize>,
}

impl Batch {
    /// The number of runs in a round: one of each setting, and one of the current settings.
    pub fn runs(&self) -> u32 {
        u32::try_from(self.settings.len() + 1).unwrap_or(u32::MAX)
    }
}

/// What is measured, and what is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofPlan {
    /// The batches, in the order of their first settings.
    pub batches: Vec<Batch>,
    /// The places of the settings for which there is no time.
    pub left_out: Vec<usize>,
}

impl ProofPlan {
    /// The plan for settings with these measurements, the most useful first, of which one run takes this long.
    pub fn of(settings: &[Method], time: Nanos, run: Nanos) -> Self {
        let fits = |count: &usize| {
            let runs = batches(&settings[..*count]).iter().map(Batch::runs).sum();
            rounds(time, runs, run).is_some()
        };
        let fitting = (1..=settings.len()).take_while(fits).last().unwrap_or(0);
        Self {
            batches: batches(&settings[..fitting]),
            left_out: (fitting..settings.len()).collect(),
        }
    }

    /// The duration of each measurement.
    pub fn duration(budget: Nanos) -> Nanos {
        let millis = budget.get() / RUNS / Nanos::from_millis(1).get();
        Nanos::from_millis(millis).clamp(RUN_MIN, RUN_MAX)
    }
}

/// The number of rounds of so many runs that fit into the time; `None` if that is too few for a result.
pub fn rounds(time: Nanos, runs: u32, run: Nanos) -> Option<u32> {
    let round = run.get().saturating_mul(u64::from(runs)).max(1);
    let rounds = u32::try_from(time.get() / round).unwrap_or(u32::MAX);
    (rounds >= ROUNDS_MIN).then_some(rounds.min(ROUNDS_MAX))
}

fn batches(settings: &[Method]) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    for (place, method) in settings.iter().enumerate() {
        let is_open =
            |one: &&mut Batch| one.method == *method && one.settings.len() < BATCH;
        match batches.iter_mut().find(is_open) {
            Some(batch) => batch.settings.push(place),
            None => batches.push(Batch { method: *method, settings: vec![place] }),
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    /// Check that settings with one measurement are tried together, at most four, and the first ones first.
    #[test]
    fn batches_in_order() {
        use Method::{Latency, Noise};
        let settings = [Noise, Latency, Noise, Noise, Noise, Noise, Latency];
        let plan = ProofPlan::of(&settings, Nanos::from_secs(1_000), SECOND);
        let found: Vec<_> = plan.batches.iter().map(|one| &one.settings[..]).collect();
        assert_eq!(found, [&[0, 2, 3, 4][..], &[1, 6], &[5]]);
        assert!(plan.left_out.is_empty());
    }

    /// Check that what does not fit is the end of the list, and that nothing fits into no time.
    #[test]
    fn budget() {
        let settings = [Method::Noise; 10];
        let fitting = |secs| {
            let plan = ProofPlan::of(&settings, Nanos::from_secs(secs), SECOND);
            let tried: Vec<usize> =
                plan.batches.into_iter().flat_map(|one| one.settings).collect();
            assert!((0..10).eq(tried.iter().copied().chain(plan.left_out)));
            tried.len()
        };
        // Six rounds of one setting and the current one take 12 s, those of four 30 s.
        assert_eq!([0, 11, 12, 29, 30].map(fitting), [0, 0, 1, 3, 4]);
        // A further batch has runs of the current settings, too.
        assert_eq!([41, 42, 78].map(fitting), [4, 5, 10]);
    }

    /// Check that rounds fill the time, within limits, and that runs last longer with a larger budget.
    #[test]
    fn limits() {
        let of = |secs| rounds(Nanos::from_secs(secs), 2, SECOND);
        assert_eq!([11, 12, 30, 1_000].map(of), [None, Some(6), Some(15), Some(30)]);
        let duration = |secs| ProofPlan::duration(Nanos::from_secs(secs));
        let expected = [1_000, 2_500, 5_000].map(Nanos::from_millis);
        assert_eq!([20, 600, 9_999].map(duration), expected);
        assert_eq!(rounds(SECOND, u32::MAX, Nanos::from_nanos(u64::MAX)), None);
        assert_eq!(rounds(SECOND, 0, Nanos::ZERO), Some(30));
    }
}
