//! The probability that a job meets a gap, by the length of the job: what a picture of it shows.

use std::collections::BTreeMap;

use recording::CpuNoise;
use units::{Nanos, Ppm};

use crate::noise::free::{self, Risk};

/// The shortest job.
const SHORTEST: u64 = 1_000;
/// The lengths in each power of ten.
const STEPS: [u64; 6] = [10, 15, 20, 30, 50, 70];

/// The risks of jobs from a microsecond up to a tenth of the measurement, six lengths in each power of ten.
pub fn job_hits(cpu: &CpuNoise) -> Vec<Risk> {
    let window = cpu.window();
    let powers = std::iter::successors(Some(SHORTEST), |power| power.checked_mul(10));
    let lengths =
        powers.flat_map(|power| STEPS.map(|step| power.saturating_mul(step) / 10));
    let jobs = lengths.take_while(|job| *job <= window.get() / 10).map(Nanos::from_nanos);
    free::risks(window, &cpu.gaps, &jobs.collect::<Vec<_>>())
}

/// The risks of jobs of one length on several CPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HitRange {
    /// The length of the job.
    pub job_ns: Nanos,
    /// The smallest, the mean and the largest risk of all CPUs that were measured for long enough.
    pub min_mean_max: [Ppm; 3],
}

/// The risks of [`job_hits`] on all of these CPUs.
pub fn job_hit_ranges(cpus: &[CpuNoise]) -> Vec<HitRange> {
    let mut all: BTreeMap<Nanos, Vec<f64>> = BTreeMap::new();
    for risk in cpus.iter().flat_map(job_hits) {
        all.entry(risk.job_ns).or_default().extend(risk.hit_ppm.map(Ppm::get));
    }
    let range = |(job_ns, risks): (Nanos, Vec<f64>)| {
        let min = risks.iter().copied().reduce(f64::min)?;
        let max = risks.iter().copied().reduce(f64::max)?;
        let mean = risks.iter().sum::<f64>() / risks.len() as f64;
        Some(HitRange { job_ns, min_mean_max: [min, mean, max].map(Ppm::new) })
    };
    all.into_iter().filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use units::Span;

    use super::*;
    use crate::example;

    /// Check that the risk rises with the length of the job, and is that of the summary.
    #[test]
    fn rising() {
        let gap = |start| Span {
            start: Nanos::from_millis(start),
            length: Nanos::from_micros(5),
        };
        let cpu = example::cpu_noise(&[gap(1), gap(300), gap(700)]);
        let hits = job_hits(&cpu);
        let risk = |risk: &Risk| risk.hit_ppm.map_or(0.0, Ppm::get);
        assert!(hits.windows(2).all(|pair| risk(&pair[0]) < risk(&pair[1])), "{hits:?}");
        assert_eq!(hits.last().unwrap().job_ns, Nanos::from_millis(100));
        let summary = crate::CpuNoiseSummary::of(Nanos::ZERO, &cpu);
        assert!(hits.iter().filter(|hit| summary.risk.contains(hit)).count() == 5);
        let other = CpuNoise { gaps: vec![], ..cpu.clone() };
        let ranges = job_hit_ranges(&[cpu.clone(), other]);
        assert_eq!(ranges.len(), hits.len());
        let [min, mean, max] = ranges[0].min_mean_max.map(Ppm::get);
        assert_eq!([min, mean * 2.0, max], [0.0, max, risk(&hits[0])]);
        let none = CpuNoise { elapsed_ns: Nanos::ZERO, gaps: vec![], ..cpu };
        assert_eq!(job_hits(&none), []);
    }
}
