//! The probability that a job meets a gap: exact, from the gaps themselves.
//!
//! A job of length `job` inside the window starts at a time t, uniform over `[0, window - job]`. It
//! meets no gap if `[t, t + job)` lies in one stretch without gaps; a stretch of length L contains
//! `L - job` of such starts, or none if it is shorter. So the probability depends only on the lengths
//! of the stretches between the gaps, and is a ratio of two sums of whole nanoseconds.
//!
//! Cannot see gaps shorter than the threshold, and gaps that the job itself would cause.

use units::{Nanos, Ppm, Span};

/// The stretches of a window without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FreeTime {
    window: Nanos,
    /// In rising order of length, each with the sum of it and of all longer ones.
    stretches: Vec<(Nanos, Nanos)>,
}

impl FreeTime {
    /// The stretches between `gaps`, whose starts are relative to that of the window. Gaps may be in any
    /// order, overlap, touch or exceed the window; a gap of length zero has no effect.
    pub(crate) fn new(window: Nanos, gaps: &[Span]) -> Self {
        let mut sorted: Vec<Span> =
            gaps.iter().copied().filter(|gap| !gap.length.is_zero()).collect();
        sorted.sort_unstable();
        let mut stretches = Vec::new();
        let mut free_since = Nanos::ZERO;
        for gap in sorted {
            let until = gap.start.min(window);
            if until > free_since {
                stretches.push(until.saturating_sub(free_since));
            }
            free_since = free_since.max(gap.end());
        }
        if window > free_since {
            stretches.push(window.saturating_sub(free_since));
        }
        stretches.sort_unstable();
        let mut sums: Vec<(Nanos, Nanos)> = Vec::with_capacity(stretches.len());
        for stretch in stretches.into_iter().rev() {
            let longer = sums.last().map_or(Nanos::ZERO, |(_, sum)| *sum);
            sums.push((stretch, stretch.saturating_add(longer)));
        }
        sums.reverse();
        Self { window, stretches: sums }
    }

    /// The probability that a job of this length meets a gap; `None` if it is longer than the window.
    /// If it is as long as the window, it has one possible start, and the probability is 0 or 1.
    pub(crate) fn hit(&self, job: Nanos) -> Option<Ppm> {
        if job > self.window || self.window.is_zero() {
            return None;
        }
        let starts = self.window.saturating_sub(job);
        if starts.is_zero() {
            let is_free = self.stretches.last().is_some_and(|last| last.0 == self.window);
            return Some(Ppm::new(if is_free { 0.0 } else { 1e6 }));
        }
        let longer = self.stretches.partition_point(|(stretch, _)| *stretch < job);
        let longer = self.stretches.get(longer..).unwrap_or_default();
        let each = job.saturating_mul(u64::try_from(longer.len()).unwrap_or(u64::MAX));
        let all = longer.first().map_or(Nanos::ZERO, |(_, sum)| *sum);
        let free = all.saturating_sub(each);
        Ppm::of(starts.saturating_sub(free), starts)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn span(start: u64, length: u64) -> Span {
        Span { start: Nanos::from_nanos(start), length: Nanos::from_nanos(length) }
    }

    fn hit(window: u64, gaps: &[Span], job: u64) -> Option<f64> {
        let free = FreeTime::new(Nanos::from_nanos(window), gaps);
        free.hit(Nanos::from_nanos(job)).map(Ppm::get)
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

        /// Check that the probability is not smaller for a longer job.
        #[test]
        fn monotone(gaps in any_gaps(), window in 1u64..100) {
            let risks: Vec<f64> =
                (0..=window).map(|job| hit(window, &gaps, job).unwrap()).collect();
            prop_assert!(risks.windows(2).all(|pair| pair[0] <= pair[1]), "{:?}", risks);
        }
    }
}
