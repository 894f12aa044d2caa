//! The numbers of one run, or of one block of it, that are compared.

use std::collections::BTreeMap;

use recording::{Blamed, Body, CulpritKind, NoiseSeries, Recording, Share};
use serde::{Deserialize, Serialize};
use stats::{Better, Unit};
use units::{Cpu, Nanos, Ppm};

use crate::metrics::benchmark_key::BenchmarkKey;
use crate::metrics::definition;
use crate::metrics::definition::Metric;
use crate::metrics::read::{gaps, metrics};
use crate::metrics::table::GapNumbers;
use crate::noise::{NoiseSummary, total};
use crate::run::InterruptionsSummary;
use crate::summary::Summary;
use crate::ticks::TicksSummary;

/// A metric of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricNumber {
    /// Its key.
    pub metric: String,
    /// The CPU; null for a metric that is not of a CPU.
    pub cpu: Option<Cpu>,
    /// Its value.
    pub value: f64,
    /// Which values are better, of a benchmark; missing of other metrics, whose key says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
}

/// The share of its time that a run lost to a culprit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CulpritNumber {
    /// The kind of event.
    pub kind: CulpritKind,
    /// The name of the interrupt, the thread, ...
    pub name: String,
    /// The share.
    pub ppm: Ppm,
}

impl MetricNumber {
    pub(crate) fn key(&self) -> (&str, Option<Cpu>) {
        (&self.metric, self.cpu)
    }

    /// Its unit, and which values are better; `None` for a metric that is not known.
    pub(crate) fn meaning(&self) -> Option<(Unit, Better)> {
        if let Some(key) = BenchmarkKey::of(&self.metric) {
            return Some((key.metric_unit(), self.better.unwrap_or(Better::Neither)));
        }
        definition(&self.metric).map(|about| (about.unit, about.better))
    }
}

impl From<Metric> for MetricNumber {
    fn from(metric: Metric) -> Self {
        let is_benchmark = BenchmarkKey::of(&metric.key).is_some();
        Self {
            better: is_benchmark.then_some(metric.about.better),
            metric: metric.key,
            cpu: metric.cpu,
            value: metric.value,
        }
    }
}

impl CulpritNumber {
    pub(crate) fn key(&self) -> (CulpritKind, &str) {
        (self.kind, &self.name)
    }
}

/// Metrics, and the time lost to culprits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Observation {
    pub(crate) metrics: Vec<MetricNumber>,
    /// `None` if single events were not traced.
    pub(crate) culprits: Option<Vec<CulpritNumber>>,
}

impl Observation {
    pub(crate) fn new(
        metrics: Vec<Metric>,
        culprits: Option<Vec<CulpritNumber>>,
    ) -> Self {
        Self { metrics: metrics.into_iter().map(MetricNumber::from).collect(), culprits }
    }

    /// The numbers of a recording, whose summary may be known. Of gaps of busy CPUs, the parts of a
    /// summary that are not compared are not computed.
    pub(crate) fn of(recording: &Recording, summary: Option<&Summary>) -> Self {
        let Some(series) = recording.body.noise() else {
            return summary.map_or_else(
                || Self::of_summary(&Summary::of(recording)),
                Self::of_summary,
            );
        };
        let noise = Self::of_noise(series);
        let Body::Check { series, .. } = &recording.body else { return noise };
        let ticks = Summary::Ticks(TicksSummary::of_series(&series.rest));
        let Self { metrics, .. } = Self::of_summary(&ticks);
        Self { metrics: [metrics, noise.metrics].concat(), ..noise }
    }

    pub(crate) fn of_noise(series: &NoiseSeries) -> Self {
        let numbers = series
            .cpus
            .iter()
            .map(|cpu| (cpu.cpu, GapNumbers::of(cpu.elapsed_ns, total(cpu), &cpu.gaps)));
        let culprits = NoiseSummary::is_source(series.source).then(|| {
            let blamed = series.cpus.iter().filter_map(|cpu| cpu.blamed.as_ref());
            let shares = blamed.map(|blamed| (blamed, blamed.shares.as_slice()));
            let lost = series.cpus.iter().filter_map(|cpu| cpu.lost);
            let time = series.cpus.iter().map(|cpu| cpu.elapsed_ns).sum();
            culprits(shares, lost.map(|lost| lost.ns).sum(), time)
        });
        Self::new(gaps(numbers), culprits)
    }

    /// A summary of a kind without gaps of busy CPUs.
    pub(crate) fn of_summary(summary: &Summary) -> Self {
        let culprits = if let Summary::Run(run) = summary {
            run.interruptions.as_ref().map(of_interruptions)
        } else {
            None
        };
        Self::new(metrics(summary), culprits)
    }
}

/// The times of culprits.
#[derive(Default)]
struct Times<'a>(BTreeMap<(CulpritKind, &'a str), Nanos>);

impl<'a> Times<'a> {
    fn add(&mut self, kind: CulpritKind, name: &'a str, ns: Nanos) {
        if ns.is_zero() {
            return; // a culprit of other blocks or of no gap
        }
        let sum = self.0.entry((kind, known_name(kind, name))).or_default();
        *sum = *sum + ns;
    }

    /// As shares of the time of all CPUs.
    fn shares(self, time: Nanos) -> Vec<CulpritNumber> {
        let share = |((kind, name), ns): ((_, &str), _)| {
            let ppm = Ppm::of(ns, time)?;
            Some(CulpritNumber { kind, name: name.to_owned(), ppm })
        };
        self.0.into_iter().filter_map(share).collect()
    }
}

/// The causes of a program's interruptions, and the time that the hypervisor took besides.
fn of_interruptions(found: &InterruptionsSummary) -> Vec<CulpritNumber> {
    let mut times = Times::default();
    found.culprits.iter().for_each(|one| times.add(one.kind, &one.name, one.ns));
    times.add(CulpritKind::Steal, "hypervisor", found.steal_ns.unwrap_or(Nanos::ZERO));
    times.shares(found.ready_ns)
}

/// The share of their time that each culprit took from all CPUs. Gaps that were not stored are
/// unexplained.
pub(crate) fn culprits<'a>(
    shares: impl Iterator<Item = (&'a Blamed, &'a [Share])>,
    lost: Nanos,
    time: Nanos,
) -> Vec<CulpritNumber> {
    let mut times = Times::default();
    for (blamed, shares) in shares {
        let mut own = vec![Nanos::ZERO; blamed.culprits.len()];
        for share in shares {
            if let Some(sum) = own.get_mut(share.culprit) {
                *sum = *sum + share.ns;
            }
        }
        for (culprit, ns) in blamed.culprits.iter().zip(own) {
            times.add(culprit.kind, &culprit.name, ns);
        }
    }
    times.add(CulpritKind::Unexplained, "unexplained", lost);
    times.shares(time)
}

/// Threads of one name are one culprit in all runs. The numbers of the kernel's workers change:
/// `kworker/1:2-events` is any worker of CPU 1, `kworker/u8:3` any that is not bound to one.
fn known_name(kind: CulpritKind, name: &str) -> &str {
    let is_worker = kind == CulpritKind::Thread && name.starts_with("kworker/");
    match name.split_once(':') {
        Some((pool, _)) if is_worker => pool,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use recording::{CpuNoise, Lost, Source};
    use units::Span;

    use super::*;
    use crate::example::{blamed, cpu_noise, noise, share};

    /// Check that an observation has the metrics of the whole summary, and its culprits' time.
    #[test]
    fn as_the_summary() {
        let gap = |n: u64| Span {
            start: Nanos::from_millis(n),
            length: Nanos::from_micros(n + 1),
        };
        let gaps: Vec<Span> = (0..9).map(gap).collect();
        let lost = Lost {
            since_ns: Nanos::from_millis(500),
            gaps: 3,
            ns: Nanos::from_micros(700),
            max_ns: Nanos::from_micros(400),
        };
        let share = |(n, gap): (usize, &Span)| {
            let kind = if n % 2 == 0 { CulpritKind::Timer } else { CulpritKind::Irq };
            share(n, kind, "x", None, gap.length.get())
        };
        let blamed = blamed(&gaps.iter().enumerate().map(share).collect::<Vec<_>>());
        let cpu = CpuNoise { lost: Some(lost), blamed: Some(blamed), ..cpu_noise(&gaps) };
        let series = noise(Some(Source::Bpf), vec![cpu]);
        let summary = NoiseSummary::of(&series);
        let found = Observation::of_noise(&series);
        let mut expected = Times::default();
        summary.culprits.iter().for_each(|one| expected.add(one.kind, &one.name, one.ns));
        let expected = expected.shares(Nanos::from_secs(1));
        let metrics = metrics(&Summary::Noise(summary.clone()));
        assert_eq!(found.metrics, Observation::new(metrics, None).metrics);
        let culprits = found.culprits.unwrap();
        assert_eq!(culprits.len(), 3);
        assert!(expected.iter().all(|one| culprits.contains(one)), "{culprits:?}");
    }

    /// Check that `proc` has no single events.
    #[test]
    fn untraced() {
        let series = noise(Some(Source::Proc), vec![cpu_noise(&[])]);
        assert_eq!(Observation::of_noise(&series).culprits, None);
    }
}
