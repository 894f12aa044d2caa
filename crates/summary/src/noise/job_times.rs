//! The run times of jobs of a fixed CPU time on CPUs with gaps, from the gaps themselves.
//!
//! Jobs run back to back from the start of the window; each takes its CPU time and the gaps that it
//! meets. If many CPUs wait for the slowest of them after each step, a step takes the longest of as
//! many job times. The mean of a step follows exactly from the distribution of the job times, if they
//! are independent (as in Hoefler, Schneider and Lumsdaine, "Characterizing the influence of system
//! noise on large-scale applications by simulation", SC10, which also covers the trees of collective
//! operations).
//!
//! Cannot see jobs longer than the measurement, and times longer than the longest measured one.

use std::time::Duration;

use units::{Nanos, Ppm, Span};

/// The run times of jobs of one length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobTimes {
    job: Nanos,
    /// In ascending order.
    times: Vec<Nanos>,
}

impl JobTimes {
    /// The run times on several CPUs, each with its window and the gaps, whose starts are relative to
    /// that of the window.
    pub(crate) fn new<'a>(
        job: Nanos,
        cpus: impl Iterator<Item = (Nanos, &'a [Span])>,
    ) -> Self {
        let mut times: Vec<Nanos> =
            cpus.flat_map(|(window, gaps)| times(job, window, gaps)).collect();
        times.sort_unstable();
        Self { job, times }
    }

    pub(crate) fn count(&self) -> usize {
        self.times.len()
    }

    /// Half of the range of the times, as a share of their median; `None` for fewer than two.
    pub(crate) fn spread(&self) -> Option<Ppm> {
        let [first, .., last] = self.times.as_slice() else { return None };
        let median = self.times.get(self.times.len() / 2)?;
        let half = Nanos::from_nanos(last.saturating_sub(*first).get() / 2);
        Ppm::of(half, *median)
    }

    /// The mean of the longest of `drawn` random times; `None` without times.
    pub(crate) fn mean_of_longest(&self, drawn: u32) -> Option<Nanos> {
        let count = self.times.len() as f64;
        let power = f64::from(drawn);
        // The longest is at most the n-th in ascending order if each of the drawn ones is: with the
        // probability (n / count)^drawn. The difference to that of n - 1 is the weight of the n-th.
        let up_to = |number: usize| (number as f64 / count).powf(power);
        let parts = self.times.iter().zip(1..).map(|(time, number)| {
            time.as_secs_f64() * (up_to(number) - up_to(number - 1))
        });
        let mean = || Nanos::from(Duration::from_secs_f64(parts.sum()));
        (!self.times.is_empty()).then(mean)
    }

    /// The additional time of a step, as a share of the job.
    pub(crate) fn slowdown(&self, longest: Nanos) -> Option<Ppm> {
        Ppm::of(longest.saturating_sub(self.job), self.job)
    }
}

/// The run times of the jobs that end within the window.
fn times(job: Nanos, window: Nanos, gaps: &[Span]) -> Vec<Nanos> {
    let mut sorted: Vec<Span> = gaps.to_vec();
    sorted.sort_unstable();
    let mut gaps = sorted.iter().peekable();
    let (mut found, mut start) = (Vec::new(), Nanos::ZERO);
    while !job.is_zero() {
        let (mut at, mut left) = (start, job);
        // A gap that began before the job counts only from the job's start.
        while let Some(gap) = gaps.peek() {
            let free = gap.start.saturating_sub(at);
            if free >= left {
                break;
            }
            left = left.saturating_sub(free);
            at = at.max(gap.end());
            gaps.next();
        }
        let end = at + left;
        if end > window {
            break;
        }
        found.push(end.saturating_sub(start));
        start = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nanos(nanos: u64) -> Nanos {
        Nanos::from_nanos(nanos)
    }

    fn span(start: u64, length: u64) -> Span {
        Span { start: nanos(start), length: nanos(length) }
    }

    /// Check the times of jobs that meet a gap at their start, in their middle, at their end, and that
    /// meet none.
    #[test]
    fn gaps_make_jobs_longer() {
        let gaps = [span(0, 5), span(12, 3), span(28, 100)];
        let found = times(nanos(10), nanos(1_000), &gaps);
        // 5..18 and its 10 end at 18; the next job ends at 28, where a gap begins.
        assert_eq!(found[..3], [nanos(18), nanos(10), nanos(110)]);
        assert!(found[3..].iter().all(|time| *time == nanos(10)));
    }

    /// Check the mean of the longest against the definition, for two times and for one CPU.
    #[test]
    fn longest_of_many() {
        let of = |times: &[u64]| JobTimes {
            job: nanos(10),
            times: times.iter().copied().map(nanos).collect(),
        };
        assert_eq!(of(&[10, 20]).mean_of_longest(1), Some(nanos(15)));
        // Both are 10 with a probability of 1/4.
        assert_eq!(of(&[10, 20]).mean_of_longest(2), Some(nanos(18)));
        assert_eq!(of(&[10, 10, 10, 20]).mean_of_longest(1_000), Some(nanos(20)));
        assert_eq!(of(&[]).mean_of_longest(7), None);
        let slower = of(&[10, 20]).slowdown(nanos(15)).unwrap();
        assert!((slower.get() - 500_000.0).abs() < 1e-6);
        let spread = of(&[10, 20, 30]).spread().unwrap();
        assert!((spread.get() - 500_000.0).abs() < 1e-6);
        assert_eq!(of(&[10]).spread(), None);
    }

    proptest! {
        /// Compare with a count of single nanoseconds.
        #[test]
        fn like_brute_force(
            pairs in prop::collection::vec((0u64..300, 0u64..20), 0..12),
            job in 1u64..40,
        ) {
            let gaps: Vec<Span> = pairs.iter().map(|(start, length)| span(*start, *length)).collect();
            let is_gap = |at: u64| pairs.iter().any(|(s, l)| (*s..s + l).contains(&at));
            let (mut expected, mut start) = (Vec::new(), 0);
            let (mut at, mut done) = (0, 0);
            while at < 400 {
                done += u64::from(!is_gap(at));
                at += 1;
                if done == job {
                    expected.push(nanos(at - start));
                    (start, done) = (at, 0);
                }
            }
            prop_assert_eq!(times(nanos(job), nanos(400), &gaps), expected);
        }
    }
}
