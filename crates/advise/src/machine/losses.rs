//! The time that a machine lost, by source.

use summary::{CulpritSummary, NoiseSummary, Summary};
use units::{Nanos, Ppm};

use crate::rule::noise_source::NoiseSource;

/// The noise that was measured.
#[derive(Debug)]
pub(crate) struct Losses {
    noise: NoiseSummary,
    /// Timer interrupts per second of the idle CPU with the most.
    pub(crate) idle_hz: Option<f64>,
    /// The longest gap, in microseconds.
    pub(crate) longest_us: Option<f64>,
}

/// What a source took.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Taken {
    /// The time, of all CPUs.
    pub ns: Nanos,
    /// That as a share of the lost time.
    pub lost_ppm: Option<Ppm>,
    /// That as a share of the CPUs' time.
    pub ppm: Option<Ppm>,
}

impl Losses {
    /// Those of a measurement of OS noise.
    pub(crate) fn of(summary: &Summary) -> Option<Self> {
        let noise = summary.noise()?.clone();
        let idle_hz = if let Summary::Check(check) = summary {
            let rates = check.rest.cpus.iter().filter_map(|cpu| cpu.timer_hz);
            rates.map(|rate| rate.get()).reduce(f64::max)
        } else {
            None
        };
        let longest = noise.cpus.iter().filter_map(|cpu| cpu.gap_ns.max).max();
        let longest_us = longest.map(|longest| longest.get() as f64 / 1e3);
        Some(Self { noise, idle_hz, longest_us })
    }

    /// Whether events were traced, so that each source is known.
    pub(crate) fn are_traced(&self) -> bool {
        self.noise.own.is_some()
    }

    /// What a source took of all CPUs.
    pub(crate) fn taken_by(&self, source: &NoiseSource) -> Option<Taken> {
        if !self.are_traced() || !source.is_noise() {
            return None;
        }
        let ns = sum(&self.noise.culprits, source);
        let lost: Nanos = self.noise.cpus.iter().map(|cpu| cpu.noise_ns).sum();
        let elapsed: Nanos = self.noise.cpus.iter().map(|cpu| cpu.elapsed_ns).sum();
        Some(Taken { ns, lost_ppm: Ppm::of(ns, lost), ppm: Ppm::of(ns, elapsed) })
    }

    /// The share of the worst CPU's time that a source took, in ppm.
    pub(crate) fn of_source(&self, name: &str) -> Option<f64> {
        let source = NoiseSource::try_from(name.to_owned()).ok()?;
        if !self.are_traced() || !source.is_noise() {
            return None;
        }
        let shares = self.noise.cpus.iter().filter_map(|cpu| {
            Some(Ppm::of(sum(&cpu.culprits, &source), cpu.elapsed_ns)?.get())
        });
        shares.reduce(f64::max)
    }
}

fn sum(culprits: &[CulpritSummary], source: &NoiseSource) -> Nanos {
    culprits.iter().filter(|culprit| source.has(culprit)).map(|culprit| culprit.ns).sum()
}
