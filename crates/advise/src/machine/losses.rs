//! The time that a machine lost, by source.

use std::collections::BTreeMap;
use std::fmt;

use recording::ThreadOwner;
use summary::{CheckSummary, CpuNoiseSummary, CulpritSummary, NoiseSummary, Summary};
use units::{Nanos, Ppm};

use crate::rule::noise_source::NoiseSource;

/// The noise that was measured.
#[derive(Debug, Clone)]
pub struct Losses {
    noise: NoiseSummary,
    /// Timer interrupts per second of the idle CPU with the most.
    pub(crate) idle_hz: Option<f64>,
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

/// The largest part of what a source took: one program, thread or interrupt.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LargestPart {
    /// The name of the program, or else that of the event.
    pub name: String,
    /// The unit of systemd or the container of the program; null if it is in none, or if that is not known.
    pub unit: Option<String>,
    /// Its time, of all CPUs, as a share of the lost time.
    pub lost_ppm: Option<Ppm>,
}

impl fmt::Display for LargestPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.unit {
            Some(unit) => write!(f, "{} ({unit})", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl Losses {
    /// Those of a measurement of OS noise.
    pub fn of(summary: &Summary) -> Option<Self> {
        if let Summary::Check(check) = summary {
            return Some(Self::of_check(check));
        }
        Some(Self { noise: summary.noise()?.clone(), idle_hz: None })
    }

    /// Those of `check`.
    pub fn of_check(check: &CheckSummary) -> Self {
        let rates = check.rest.cpus.iter().filter_map(|cpu| cpu.timer_hz);
        let idle_hz = rates.map(|rate| rate.get()).reduce(f64::max);
        Self { noise: check.noise.clone(), idle_hz }
    }

    /// The longest gap, in microseconds.
    pub(crate) fn longest_us(&self) -> Option<f64> {
        let longest = self.noise.cpus.iter().filter_map(|cpu| cpu.gap_ns.max).max()?;
        #[expect(clippy::cast_precision_loss, reason = "less than a minute")]
        Some(longest.get() as f64 / 1e3)
    }

    /// Whether events were traced, so that each source is known.
    pub(crate) fn are_traced(&self) -> bool {
        self.noise.own.is_some()
    }

    /// What a source took of all CPUs.
    pub(crate) fn taken_by(&self, source: &NoiseSource) -> Option<Taken> {
        let ns = self
            .noise
            .cpus
            .iter()
            .map(|cpu| self.of_cpu(cpu, source))
            .sum::<Option<Nanos>>()?;
        let (lost, elapsed) = (self.noise.lost(), self.noise.elapsed());
        let ns = ns.min(lost);
        Some(Taken { ns, lost_ppm: Ppm::of(ns, lost), ppm: Ppm::of(ns, elapsed) })
    }

    /// The largest part of what a source took, if that can have several.
    pub(crate) fn largest_of(&self, source: &NoiseSource) -> Option<LargestPart> {
        let mut parts: BTreeMap<(&str, Option<String>), Nanos> = BTreeMap::new();
        let culprits = self.noise.cpus.iter().flat_map(|cpu| &cpu.culprits);
        for culprit in culprits.filter(|culprit| source.has(culprit)) {
            let thread = culprit.thread.as_ref();
            let name = match thread.and_then(|thread| thread.owner.as_ref()) {
                Some(ThreadOwner::Program(program)) => program,
                Some(ThreadOwner::Kernel) | None => &culprit.name,
            };
            let unit = thread.and_then(|thread| thread.unit.as_ref());
            let part = parts.entry((name, unit.map(ToString::to_string))).or_default();
            *part = *part + culprit.ns;
        }
        let ((name, unit), ns) = parts.into_iter().max_by_key(|(_, ns)| *ns)?;
        let lost_ppm = Ppm::of(ns, self.noise.lost());
        let is_all = !source.has_several() || ns.is_zero();
        (!is_all).then(|| LargestPart { name: name.to_owned(), unit, lost_ppm })
    }

    /// The share of the worst CPU's time that a source took, in ppm.
    pub(crate) fn of_source(&self, name: &str) -> Option<f64> {
        let source = NoiseSource::try_from(name.to_owned()).ok()?;
        let shares =
            self.noise.cpus.iter().map(|cpu| {
                Some(Ppm::of(self.of_cpu(cpu, &source)?, cpu.elapsed_ns)?.get())
            });
        shares.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
    }

    /// What a source took of one CPU. Without traced events, only the time of other programs is known, from
    /// the scheduler's count.
    fn of_cpu(&self, cpu: &CpuNoiseSummary, source: &NoiseSource) -> Option<Nanos> {
        match (self.are_traced(), source.is_noise(), source.is_programs()) {
            (true, true, _) => Some(sum(&cpu.culprits, source)),
            (false, _, true) => cpu.proc.waited_ns,
            (true, false, _) | (false, _, false) => None,
        }
    }
}

fn sum(culprits: &[CulpritSummary], source: &NoiseSource) -> Nanos {
    culprits.iter().filter(|culprit| source.has(culprit)).map(|culprit| culprit.ns).sum()
}
