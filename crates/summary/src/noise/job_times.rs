//! The run times of jobs of a fixed CPU time on CPUs with gaps, from the gaps themselves.
//!
//! Jobs run back to back from the start of the window; each takes its CPU time and the gaps that it
//! meets.
//!
//! Cannot see jobs longer than the measurement, and times longer than the longest measured one.

use units::{Nanos, Ppm, Span};

/// The run times of jobs of one length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobTimes {
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
        Self { times }
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

    /// Check the spread of a few times, and of one.
    #[test]
    fn spread_of_few() {
        let of = |times: &[u64]| JobTimes {
            times: times.iter().copied().map(nanos).collect(),
        };
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
