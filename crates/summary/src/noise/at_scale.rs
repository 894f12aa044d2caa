//! What the noise of these CPUs would do to many ranks that wait for each other after each step.
//!
//! The mean of the longest delay of independent ranks, from all gaps (`stats::StepDelays`, as in `scale`);
//! communication takes no time. The interval is that of resamples of tenths of the measurement. Its upper end
//! includes gaps that are too rare to be seen: three of twice the longest gap, since what has not happened in
//! a time is rarer than that with a probability of 95 %. If the ranks have more CPU time in each step than a
//! third of what was measured, so many unseen gaps are possible in each step that there is no upper end.

use std::time::Duration;

use recording::{AtScaleSpec, CpuNoise};
use serde::Serialize;
use stats::{StepDelays, quantile};
use units::{Nanos, Ppm, Span};

/// Parts of the measurement, and resamples of them.
const PARTS: u64 = 10;
const RESAMPLES: usize = 100;
/// The ends of the interval, in millionths.
const ENDS: [u32; 2] = [25_000, 975_000];
/// More than so many gaps of a kind are seen with a probability of 95 %.
const UNSEEN: u64 = 3;

/// The effect on so many ranks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AtScale {
    /// The number of ranks.
    pub ranks: u64,
    /// The CPU time of a step.
    pub step_ns: Nanos,
    /// The probability that at least one rank is delayed in a step.
    pub hit_ppm: Ppm,
    /// The mean additional time of a step, as a share of its CPU time.
    pub slowdown_ppm: Ppm,
    /// The lower end of the interval; null if the measurement is too short for one.
    pub low_ppm: Option<Ppm>,
    /// The upper end; null if it is not known.
    pub high_ppm: Option<Ppm>,
}

impl AtScale {
    /// For each number of ranks; empty if nothing was measured, or if a CPU lost all of its time.
    pub(crate) fn of(asked: &AtScaleSpec, cpus: &[CpuNoise]) -> Vec<Self> {
        let Some(parts) = parts(asked.step_ns, cpus) else { return Vec::new() };
        let all = StepDelays::sum(parts.iter());
        let resamples = match parts.len() {
            1 => Vec::new(),
            _ => StepDelays::resamples(&parts, RESAMPLES),
        };
        let of = |ranks: &u64| Self::of_ranks(*ranks, asked.step_ns, &all, &resamples);
        asked.ranks.iter().filter_map(of).collect()
    }

    /// The mean duration of a step.
    pub(crate) fn mean_ns(&self) -> Nanos {
        let seconds = self.step_ns.as_secs_f64() * (1.0 + self.slowdown_ppm.get() / 1e6);
        Nanos::from(Duration::from_secs_f64(seconds))
    }

    fn of_ranks(
        ranks: u64,
        step: Nanos,
        all: &StepDelays,
        resamples: &[StepDelays],
    ) -> Option<Self> {
        let slowdown = |of: &StepDelays| {
            let ppm = Ppm::of(of.mean_of_longest(ranks)?, step)?;
            Some(ppm.get())
        };
        let end = |of: &dyn Fn(&StepDelays) -> Option<f64>, millionths| {
            let mut values: Vec<f64> = resamples.iter().filter_map(of).collect();
            values.sort_unstable_by(f64::total_cmp);
            quantile(&values, millionths).map(Ppm::new)
        };
        let twice = all.longest()?.saturating_mul(2);
        let unseen = |of: &StepDelays| slowdown(&of.with_unseen(UNSEEN, twice, step));
        let own = slowdown(all)?;
        let is_known = step.saturating_mul(ranks).saturating_mul(UNSEEN) <= all.time();
        Some(Self {
            ranks,
            step_ns: step,
            hit_ppm: all.hit(ranks)?,
            slowdown_ppm: Ppm::new(own),
            low_ppm: end(&slowdown, ENDS[0]).map(|low| Ppm::new(low.get().min(own))),
            high_ppm: is_known.then(|| end(&unseen, ENDS[1])).flatten(),
        })
    }
}

/// The delays in each part of the time, of all CPUs together; one part if it is short. `None` without a CPU.
fn parts(step: Nanos, cpus: &[CpuNoise]) -> Option<Vec<StepDelays>> {
    let shortest = cpus.iter().map(CpuNoise::window).min()?.get();
    let count = (shortest / step.get().saturating_mul(10).max(1)).clamp(1, PARTS);
    let mut parts = vec![StepDelays::default(); usize::try_from(count).unwrap_or(1)];
    for cpu in cpus {
        let gaps = cpu.gaps_without_own();
        let window = cpu.window();
        let (mut start, mut from) = (Nanos::ZERO, 0);
        for (part, number) in parts.iter_mut().zip(1..) {
            // A part ends where no gap is.
            let nominal = Nanos::from_nanos(window.get() / count * number);
            let until = if number == count { window } else { nominal };
            let next = from + gaps[from..].partition_point(|gap| gap.start < until);
            let last = gaps[from..next].last().map_or(Nanos::ZERO, |gap| gap.end());
            let end = until.max(last).max(start);
            let span = Span { start, length: end.saturating_sub(start) };
            if let Some(delays) = StepDelays::of(span, &gaps[from..next], step) {
                part.add(&delays);
            }
            (start, from) = (end, next);
        }
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::cpu_noise;

    fn asked(ranks: &[u64]) -> AtScaleSpec {
        AtScaleSpec { ranks: ranks.to_vec(), step_ns: Nanos::from_millis(1) }
    }

    /// A gap of 100 µs each 10 ms, in 1 s.
    fn gaps() -> Vec<Span> {
        let gap = |at: u64| Span {
            start: Nanos::from_millis(10 * at),
            length: Nanos::from_micros(100),
        };
        (0..100).map(gap).collect()
    }

    /// Check the slowdown of periodic noise, which is bounded by its longest gap, and that few ranks have an
    /// upper end that includes rarer ones, many ranks none.
    #[test]
    fn periodic() {
        let found = AtScale::of(&asked(&[1, 100, 1_000_000]), &[cpu_noise(&gaps())]);
        let [one, some, many] = found[..] else { panic!("{found:?}") };
        // (0.1 * 1 + 0.1 * 0.1 / 2) / 10, of 1 ms.
        assert!((one.slowdown_ppm.get() - 10_500.0).abs() < 200.0, "{one:?}");
        assert!((one.hit_ppm.get() - 110_000.0).abs() < 1.0, "{one:?}");
        assert!(
            some.slowdown_ppm > one.slowdown_ppm
                && some.high_ppm > Some(some.slowdown_ppm)
        );
        assert!((many.slowdown_ppm.get() - 100_000.0).abs() < 2_000.0, "{many:?}");
        assert_eq!(many.high_ppm, None);
        assert!(many.low_ppm <= Some(many.slowdown_ppm));
    }

    /// Check a measurement without a gap, one that is shorter than ten steps, and one without time.
    #[test]
    fn degenerate() {
        let quiet = AtScale::of(&asked(&[5]), &[cpu_noise(&[])])[0];
        assert_eq!((quiet.slowdown_ppm, quiet.hit_ppm), (Ppm::new(0.0), Ppm::new(0.0)));
        let short =
            CpuNoise { elapsed_ns: Nanos::from_millis(5), ..cpu_noise(&gaps()[..1]) };
        let found = AtScale::of(&asked(&[5]), &[short])[0];
        assert_eq!((found.low_ppm, found.high_ppm), (None, None));
        let none = CpuNoise { elapsed_ns: Nanos::ZERO, ..cpu_noise(&[]) };
        assert_eq!(AtScale::of(&asked(&[5]), &[none]), []);
        assert_eq!(AtScale::of(&asked(&[5]), &[]), []);
    }
}
