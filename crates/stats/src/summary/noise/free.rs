//! How likely a job is hit by a gap: exact, from the gaps themselves.
//!
//! A job of length `job` that runs inside the window starts at a moment t, uniform over
//! `[0, window - job]`. It is spared if `[t, t + job)` lies in one stretch without gaps;
//! a stretch of length L spares `L - job` of the starts, or none. So the chance of a hit
//! needs only the lengths of the stretches between the gaps, and is a ratio of two sums
//! of whole nanoseconds.
//!
//! Cannot see: gaps shorter than the threshold, and jobs that would themselves provoke
//! gaps.

use units::{Nanos, Ppm, Span};

/// The stretches of a window in which no gap was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FreeTime {
    window: Nanos,
    stretches: Vec<Nanos>,
}

impl FreeTime {
    /// The stretches that `gaps`, counted from the window's beginning, leave of it. The
    /// gaps may come in any order, overlap, touch or stick out of the window; a gap of no
    /// length takes nothing.
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
        Self { window, stretches }
    }

    /// The chance that a job of that length is hit. `None` where it does not fit into
    /// the window; where it fills the window it has one moment to start, and the chance
    /// is all or nothing.
    pub(crate) fn hit(&self, job: Nanos) -> Option<Ppm> {
        if job > self.window || self.window.is_zero() {
            return None;
        }
        let starts = self.window.saturating_sub(job);
        if starts.is_zero() {
            let spared = self.stretches.contains(&self.window);
            return Some(Ppm::new(if spared { 0.0 } else { 1e6 }));
        }
        let spared: Nanos =
            self.stretches.iter().map(|stretch| stretch.saturating_sub(job)).sum();
        Ppm::of(starts.saturating_sub(spared), starts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(start: u64, length: u64) -> Span {
        Span { start: Nanos::from_nanos(start), length: Nanos::from_nanos(length) }
    }

    fn hit(window: u64, gaps: &[Span], job: u64) -> Option<f64> {
        let free = FreeTime::new(Nanos::from_nanos(window), gaps);
        free.hit(Nanos::from_nanos(job)).map(Ppm::get)
    }

    /// Tries every start. Starts between two whole nanoseconds k and k + 1 all fare the
    /// same, so the moment in the middle, 2k + 1 half nanoseconds, speaks for them.
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

    /// Check cases that can be worked out by hand.
    #[test]
    fn by_hand() {
        // One gap of 10 in the middle of 100: a job of 10 is hit by starts in (35, 55).
        assert!(is_close(hit(100, &[span(45, 10)], 10), 20.0 / 90.0 * 1e6));
        // At the very edges half of the gap's reach falls outside.
        assert!(is_close(hit(100, &[span(0, 10)], 10), 10.0 / 90.0 * 1e6));
        assert!(is_close(hit(100, &[span(90, 10)], 10), 10.0 / 90.0 * 1e6));
        // Two gaps whose reaches overlap do not count twice: (10, 40).
        assert!(is_close(hit(100, &[span(20, 10), span(32, 8)], 10), 30.0 / 90.0 * 1e6));
    }

    /// Check that no gap is no risk, and a gap that covers everything is certainty.
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

    /// Check that a job that does not fit has no risk, and one that just fits is hit by
    /// any gap there is.
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
        /// Check against trying every start, with gaps in any order that overlap, touch,
        /// have no length and stick out of the window.
        #[test]
        fn as_brute_force(gaps in any_gaps(), window in 1u64..100, job in 0u64..100) {
            if let Some(expected) = brute_force(window, &gaps, job) {
                let found = hit(window, &gaps, job);
                prop_assert!(is_close(found, expected), "{:?} {}", found, expected);
            }
        }

        /// Check that a longer job is never safer.
        #[test]
        fn monotone(gaps in any_gaps(), window in 1u64..100) {
            let risks: Vec<f64> =
                (0..=window).map(|job| hit(window, &gaps, job).unwrap()).collect();
            prop_assert!(risks.windows(2).all(|pair| pair[0] <= pair[1]), "{:?}", risks);
        }
    }
}
