//! The numbers of one run, or of one block of it, that are compared.

use recording::{Blamed, Body, CulpritKind, NoiseSeries, Recording, Share};
use units::{Nanos, Ppm};

use crate::comparison::quantity::Quantity;
use crate::metrics::definition::Metric;
use crate::metrics::read::metrics;
use crate::noise::culprits::CulpritSummary;
use crate::noise::{CpuNoiseSummary, NoiseSummary, total};
use crate::run::InterruptionsSummary;
use crate::summary::Summary;
use crate::ticks::TicksSummary;

/// Metrics, and the time lost to culprits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Observation {
    pub(crate) metrics: Vec<Metric>,
    /// The share of its time that each culprit took from the CPUs; `None` if single events were not
    /// traced.
    pub(crate) culprits: Option<Vec<(Quantity, Ppm)>>,
}

impl Observation {
    pub(crate) fn of(recording: &Recording) -> Self {
        Self::of_gaps(recording)
            .unwrap_or_else(|| Self::of_summary(&Summary::of(recording)))
    }

    /// The same of a recording whose summary is known.
    pub(crate) fn with_summary(recording: &Recording, summary: &Summary) -> Self {
        Self::of_gaps(recording).unwrap_or_else(|| Self::of_summary(summary))
    }

    /// Of a recording with gaps of busy CPUs: without the parts of a summary that are not compared.
    fn of_gaps(recording: &Recording) -> Option<Self> {
        let noise = Self::of_noise(recording.body.noise()?);
        let Body::Check { series, .. } = &recording.body else { return Some(noise) };
        let ticks = Summary::Ticks(TicksSummary::of_series(&series.rest));
        Some(Self { metrics: [metrics(&ticks), noise.metrics].concat(), ..noise })
    }

    pub(crate) fn of_noise(series: &NoiseSeries) -> Self {
        let cpus = series.cpus.iter().map(|cpu| {
            CpuNoiseSummary::for_metrics(cpu.cpu, cpu.elapsed_ns, total(cpu), &cpu.gaps)
        });
        let summary = NoiseSummary::of_cpus(cpus.collect());
        let culprits = NoiseSummary::is_source(series.source).then(|| {
            let blamed = series.cpus.iter().filter_map(|cpu| cpu.blamed.as_ref());
            let shares = blamed.map(|blamed| (blamed, blamed.shares.as_slice()));
            let lost = series.cpus.iter().filter_map(|cpu| cpu.lost);
            let time = series.cpus.iter().map(|cpu| cpu.elapsed_ns).sum();
            culprits(shares, lost.map(|lost| lost.ns).sum(), time)
        });
        Self { metrics: metrics(&Summary::Noise(summary)), culprits }
    }

    /// A summary of a kind without gaps of busy CPUs.
    pub(crate) fn of_summary(summary: &Summary) -> Self {
        let culprits = if let Summary::Run(run) = summary {
            run.interruptions.as_ref().map(of_interruptions)
        } else {
            None
        };
        Self { metrics: metrics(summary), culprits }
    }
}

/// The times of culprits.
#[derive(Default)]
struct Times(Vec<(Quantity, Nanos)>);

impl Times {
    fn of(culprits: &[CulpritSummary]) -> Self {
        let mut times = Self::default();
        culprits.iter().for_each(|one| times.add(one.kind, &one.name, one.ns));
        times
    }

    fn add(&mut self, kind: CulpritKind, name: &str, ns: Nanos) {
        if ns.is_zero() {
            return; // a culprit of other blocks or of no gap
        }
        let of = quantity(kind, name);
        match self.0.iter_mut().find(|(other, _)| *other == of) {
            Some((_, sum)) => *sum = *sum + ns,
            None => self.0.push((of, ns)),
        }
    }

    /// As shares of the time of all CPUs.
    fn shares(self, time: Nanos) -> Vec<(Quantity, Ppm)> {
        let share = |(of, ns)| Some((of, Ppm::of(ns, time)?));
        self.0.into_iter().filter_map(share).collect()
    }
}

/// The causes of a program's interruptions, and the time that the hypervisor took besides.
fn of_interruptions(found: &InterruptionsSummary) -> Vec<(Quantity, Ppm)> {
    let mut times = Times::of(&found.culprits);
    times.add(CulpritKind::Steal, "hypervisor", found.steal_ns.unwrap_or(Nanos::ZERO));
    times.shares(found.ready_ns)
}

/// The share of their time that each culprit took from all CPUs. Gaps that were not stored are
/// unexplained.
pub(crate) fn culprits<'a>(
    shares: impl Iterator<Item = (&'a Blamed, &'a [Share])>,
    lost: Nanos,
    time: Nanos,
) -> Vec<(Quantity, Ppm)> {
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
pub(crate) fn quantity(kind: CulpritKind, name: &str) -> Quantity {
    let is_worker = kind == CulpritKind::Thread && name.starts_with("kworker/");
    let name = match name.split_once(':') {
        Some((pool, _)) if is_worker => pool,
        _ => name,
    };
    Quantity::Culprit { kind, name: name.to_owned() }
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
        let expected = Times::of(&summary.culprits).shares(Nanos::from_secs(1));
        assert_eq!(found.metrics, metrics(&Summary::Noise(summary)));
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
