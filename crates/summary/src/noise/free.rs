//! The probability that a job meets a gap: exact, from the gaps themselves.
//!
//! A job of length `job` inside the window starts at a time t, uniform over `[0, window - job]`. It
//! meets no gap if `[t, t + job)` lies in one stretch without gaps; a stretch of length L contains
//! `L - job` of such starts, or none if it is shorter. So the probability depends only on the number
//! and the sum of the stretches between the gaps that are at least as long as the job.
//!
//! Cannot see gaps shorter than the threshold, and gaps that the job itself would cause.

use std::borrow::Cow;

use serde::Serialize;
use units::{Nanos, Ppm, Span};

/// The risk of a job.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Risk {
    /// The length of the job.
    pub job_ns: Nanos,
    /// The chance of at least one gap during the job, started at a random moment; null if the run was
    /// shorter than the job.
    pub hit_ppm: Option<Ppm>,
}

/// The number and the sum of stretches without gaps.
#[derive(Debug, Clone, Copy, Default)]
struct FreeTime {
    stretches: u64,
    sum: Nanos,
}

impl FreeTime {
    fn and(self, other: Self) -> Self {
        Self {
            stretches: self.stretches + other.stretches,
            sum: self.sum.saturating_add(other.sum),
        }
    }

    /// The probability that a job meets a gap, if these are all stretches that are at least as long;
    /// `None` if it is longer than the window. If it is as long as the window, it has one possible
    /// start, and the probability is 0 or 1.
    fn hit(self, window: Nanos, job: Nanos) -> Option<Ppm> {
        if job > window || window.is_zero() {
            return None;
        }
        let starts = window.saturating_sub(job);
        if starts.is_zero() {
            return Some(Ppm::new(if self.stretches > 0 { 0.0 } else { 1e6 }));
        }
        let free = self.sum.saturating_sub(job.saturating_mul(self.stretches));
        Ppm::of(starts.saturating_sub(free), starts)
    }
}

/// The probability that each job meets a gap; jobs are in rising order. The starts of gaps are relative
/// to that of the window. They may be in any order, overlap, touch or exceed the window; a gap of length
/// zero has no effect.
pub(crate) fn risks(window: Nanos, gaps: &[Span], jobs: &[Nanos]) -> Vec<Risk> {
    // There can be millions of stretches, and few jobs. The first entry is of those that are shorter
    // than all jobs.
    let mut by_longest_job = vec![FreeTime::default(); jobs.len() + 1];
    each_stretch(window, gaps, |sum| {
        let longest_job = jobs.partition_point(|job| *job <= sum);
        let free = &mut by_longest_job[longest_job];
        *free = free.and(FreeTime { stretches: 1, sum });
    });
    let mut free = FreeTime::default();
    let mut risks = Vec::with_capacity(jobs.len());
    for (job_ns, more) in jobs.iter().zip(&by_longest_job[1..]).rev() {
        free = free.and(*more);
        risks.push(Risk { job_ns: *job_ns, hit_ppm: free.hit(window, *job_ns) });
    }
    risks.reverse();
    risks
}

/// Calls `add` with the length of each stretch without gaps.
fn each_stretch(window: Nanos, gaps: &[Span], mut add: impl FnMut(Nanos)) {
    let mut free_since = Nanos::ZERO;
    let gaps = in_order(gaps);
    for gap in gaps.iter().filter(|gap| !gap.length.is_zero()) {
        let until = gap.start.min(window);
        if until > free_since {
            add(until.saturating_sub(free_since));
        }
        free_since = free_since.max(gap.end());
    }
    if window > free_since {
        add(window.saturating_sub(free_since));
    }
}

/// Gaps in the order of their start, as recordings have them.
fn in_order(gaps: &[Span]) -> Cow<'_, [Span]> {
    match gaps.is_sorted_by_key(|gap| gap.start) {
        true => Cow::Borrowed(gaps),
        false => {
            let mut sorted = gaps.to_vec();
            sorted.sort_unstable();
            Cow::Owned(sorted)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn span(start: u64, length: u64) -> Span {
        Span { start: Nanos::from_nanos(start), length: Nanos::from_nanos(length) }
    }

    fn hits(window: u64, gaps: &[Span], jobs: &[u64]) -> Vec<Option<f64>> {
        let jobs: Vec<Nanos> = jobs.iter().copied().map(Nanos::from_nanos).collect();
        let risks = risks(Nanos::from_nanos(window), gaps, &jobs).into_iter();
        risks.map(|risk| risk.hit_ppm.map(Ppm::get)).collect()
    }

    fn hit(window: u64, gaps: &[Span], job: u64) -> Option<f64> {
        hits(window, gaps, &[job])[0]
    }

    /// Tests every start. All starts between two whole nanoseconds k and k + 1 have the same result,
    /// so the one in the middle, 2k + 1 half nanoseconds, is tested for all of them.
    fn brute_force(window: u64, gaps: &[Span], job: u64) -> Option<f64> {
        let starts = window.checked_sub(job).filter(|&starts| starts > 0)?;
        let is_hit = |k: &u64| {
            let (from, until) = (2 * k + 1, 2 * (k + job) + 1);
            gaps.iter().any(|gap| {
                let (start, end) = (2 * gap.start.get(), 2 * gap.end().get());
                start < end && start < until && from < end
            })
        };
        let hits = (0..starts).filter(is_hit).count();
        Some(hits as f64 / starts as f64 * 1e6)
    }

    fn is_close(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-6)
    }

    /// Check cases by hand.
    #[test]
    fn by_hand() {
        // One gap of 10 in the middle of 100: a job of 10 is hit by starts in (35, 55).
        assert!(is_close(hit(100, &[span(45, 10)], 10), 20.0 / 90.0 * 1e6));
        // At the edges of the window, half of these starts are outside.
        assert!(is_close(hit(100, &[span(0, 10)], 10), 10.0 / 90.0 * 1e6));
        assert!(is_close(hit(100, &[span(90, 10)], 10), 10.0 / 90.0 * 1e6));
        // Starts that meet two gaps count once: (10, 40).
        assert!(is_close(hit(100, &[span(20, 10), span(32, 8)], 10), 30.0 / 90.0 * 1e6));
    }

    /// Check that the probability is 0 without gaps, and 1 for a gap of the whole window.
    #[test]
    fn nothing_and_everything() {
        for job in [1, 50, 99, 100] {
            assert_eq!(hit(100, &[], job), Some(0.0));
            assert_eq!(hit(100, &[span(50, 0)], job), Some(0.0));
            assert_eq!(hit(100, &[span(200, 5)], job), Some(0.0));
            assert_eq!(hit(100, &[span(0, 100)], job), Some(1e6));
            assert_eq!(hit(100, &[span(0, 500)], job), Some(1e6));
        }
    }

    /// Check that the probability is unknown for a job longer than the window, and 1 for one as long
    /// as it, with any gap.
    #[test]
    fn jobs_at_the_windows_size() {
        assert_eq!(hit(100, &[span(5, 1)], 101), None);
        assert_eq!(hit(100, &[span(5, 1)], 100), Some(1e6));
        assert_eq!(hit(0, &[], 0), None);
    }

    prop_compose! {
        fn any_gaps()(pairs in prop::collection::vec((0u64..120, 0u64..20), 0..12))
            -> Vec<Span>
        {
            pairs.into_iter().map(|(start, length)| span(start, length)).collect()
        }
    }

    proptest! {
        /// Compare with a test of every start, with gaps in any order that overlap, touch, have length
        /// zero and exceed the window.
        #[test]
        fn as_brute_force(gaps in any_gaps(), window in 1u64..100, job in 0u64..100) {
            if let Some(expected) = brute_force(window, &gaps, job) {
                let found = hit(window, &gaps, job);
                prop_assert!(is_close(found, expected), "{:?} {}", found, expected);
            }
        }

        /// Check that the probability is not smaller for a longer job, and that of each job is the same
        /// alone and among others.
        #[test]
        fn monotone(gaps in any_gaps(), window in 1u64..100) {
            let jobs: Vec<u64> = (0..=window).collect();
            let risks = hits(window, &gaps, &jobs);
            prop_assert!(risks.windows(2).all(|pair| pair[0] <= pair[1]), "{:?}", risks);
            let alone: Vec<_> = jobs.iter().map(|job| hit(window, &gaps, *job)).collect();
            prop_assert_eq!(alone, risks);
        }
    }
}
