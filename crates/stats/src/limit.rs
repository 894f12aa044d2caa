//! Limits on noise and lateness, and which CPUs exceed them.

use units::{Cpu, Nanos, Ppm};

use crate::{NoiseSummary, Summary};

/// What no CPU may exceed; `None`: anything goes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    /// The share of its time a CPU may lose.
    pub noise: Option<Ppm>,
    /// The longest gap it may show.
    pub gap: Option<Nanos>,
    /// How late a timer may wake a thread.
    pub late: Option<Nanos>,
}

/// A CPU that exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Excess {
    /// It lost a larger share of its time.
    Noise {
        /// The CPU.
        cpu: Cpu,
        /// What it lost.
        seen: Ppm,
        /// What it might have.
        limit: Ppm,
    },
    /// It showed a longer gap.
    Gap {
        /// The CPU.
        cpu: Cpu,
        /// Its longest gap.
        seen: Nanos,
        /// The longest it might have shown.
        limit: Nanos,
    },
    /// A timer woke a thread later.
    Late {
        /// The CPU.
        cpu: Cpu,
        /// The latest it was.
        seen: Nanos,
        /// The latest it might have been.
        limit: Nanos,
    },
}

impl Limits {
    /// The CPUs that exceed a limit, in the summary's order; none of a measurement that the
    /// limits are not about. A limit itself is no excess.
    pub fn exceeded(&self, summary: &Summary) -> Vec<Excess> {
        match summary {
            Summary::Noise(noise) => self.exceeded_by(noise),
            Summary::Check(check) => self.exceeded_by(&check.noise),
            Summary::Latency(latency) => {
                self.late.map(|limit| latency.later_than(limit)).unwrap_or_default()
            }
            Summary::Ticks(_)
            | Summary::Calls(_)
            | Summary::Run(_)
            | Summary::Wakers(_)
            | Summary::NohzTest(_)
            | Summary::NohzStress(_)
            | Summary::Jitter(_)
            | Summary::Slices(_) => Vec::new(),
        }
    }

    fn exceeded_by(&self, summary: &NoiseSummary) -> Vec<Excess> {
        let cpus = summary.cpus.iter().flat_map(|noise| {
            let cpu = noise.cpu;
            let lost =
                self.noise.zip(noise.noise_ppm).filter(|(limit, seen)| seen > limit);
            let gap = self.gap.zip(noise.gap_ns.max).filter(|(limit, seen)| seen > limit);
            let lost = lost.map(|(limit, seen)| Excess::Noise { cpu, seen, limit });
            let gap = gap.map(|(limit, seen)| Excess::Gap { cpu, seen, limit });
            lost.into_iter().chain(gap)
        });
        cpus.collect()
    }
}

#[cfg(test)]
mod tests {
    use recording::CpuNoise;
    use units::Span;

    use super::*;
    use crate::example::{cpu_noise, noise};

    fn summary() -> NoiseSummary {
        let gap =
            |length| Span { start: Nanos::ZERO, length: Nanos::from_micros(length) };
        let (quiet, noisy) = ([gap(1)], [gap(900)]);
        let cpu = |cpu, gaps: &[Span]| CpuNoise {
            cpu: Cpu::new(cpu),
            elapsed_ns: Nanos::from_millis(1),
            ..cpu_noise(gaps)
        };
        NoiseSummary::of(&noise(None, vec![cpu(0, &quiet), cpu(1, &noisy)]))
    }

    /// Check that only what is above a limit exceeds it, and that no limit allows all.
    #[test]
    fn above_the_limit() {
        let with = |noise: Option<f64>, gap: Option<u64>| {
            let (noise, gap) = (noise.map(Ppm::new), gap.map(Nanos::from_micros));
            let limits = Limits { noise, gap, late: None };
            limits.exceeded(&Summary::Noise(summary())).len()
        };
        assert_eq!(with(None, None), 0);
        assert_eq!(with(Some(900_000.0), Some(900)), 0);
        assert_eq!(with(Some(899_999.0), None), 1);
        assert_eq!(with(Some(0.0), Some(0)), 4);
    }
}
