//! The time that CPUs lost over the time of a measurement, by source: what a picture of it shows.
//!
//! Time is divided into equal bins; a gap that reaches into several counts in each as far as it does, and
//! so do the shares of its culprits. Cannot see gaps that were only counted: their bins have too little.

use std::collections::BTreeMap;

use recording::{Blamed, CpuNoise, NoiseSeries};
use units::{Nanos, Span};

use crate::noise::largest::{Source, SourceShares, Times};
use crate::noise::verdict::source_of;

/// The time that all CPUs lost, over time.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseOverTime {
    /// The bins of time since the loops began.
    pub bins: Vec<Span>,
    /// The sources with their share of the measured time of each bin, the largest first, and the sum of
    /// all others.
    pub sources: Vec<SourceShares>,
    /// The longest gap that began in each bin.
    pub longest: Vec<Option<Nanos>>,
    /// Since when gaps of some CPU were only counted.
    pub incomplete_since: Option<Nanos>,
}

impl NoiseOverTime {
    /// The time lost in `count` bins, to `most` sources and all others.
    pub fn of(series: &NoiseSeries, count: u64, most: usize) -> Self {
        let bins = bins(series, count.max(1));
        let measured = measured(series, &bins);
        let mut times: Times<'_> = BTreeMap::new();
        let mut longest = vec![None; bins.len()];
        for cpu in &series.cpus {
            for gap in &cpu.gaps {
                if let Some(at) =
                    place(&bins, gap.start).and_then(|at| longest.get_mut(at))
                {
                    *at = (*at).max(Some(gap.length));
                }
            }
            each_share(cpu, |gap, key, ns| {
                let sums =
                    times.entry(key).or_insert_with(|| vec![Nanos::ZERO; bins.len()]);
                spread(&bins, gap, ns, sums);
            });
        }
        let since =
            series.cpus.iter().filter_map(|cpu| cpu.lost.map(|lost| lost.since_ns));
        Self {
            sources: SourceShares::largest(times, most, &measured),
            longest,
            incomplete_since: since.min(),
            bins,
        }
    }
}

fn bins(series: &NoiseSeries, count: u64) -> Vec<Span> {
    let ends = series.cpus.iter().flat_map(CpuNoise::ran).map(|ran| ran.end());
    let whole = ends.max().unwrap_or_default().get();
    let each = whole.div_ceil(count).max(1);
    let bin = |at: u64| {
        let start = at.saturating_mul(each);
        let length = whole.saturating_sub(start).min(each);
        Span { start: Nanos::from_nanos(start), length: Nanos::from_nanos(length) }
    };
    (0..count).map(bin).filter(|bin| !bin.length.is_zero()).collect()
}

/// The time in each bin that was measured, of all CPUs.
fn measured(series: &NoiseSeries, bins: &[Span]) -> Vec<Nanos> {
    let ran: Vec<Span> = series.cpus.iter().flat_map(CpuNoise::ran).collect();
    bins.iter().map(|bin| ran.iter().map(|ran| common(*bin, *ran)).sum()).collect()
}

/// The time that both have in common.
pub(crate) fn common(a: Span, b: Span) -> Nanos {
    a.end().min(b.end()).saturating_sub(a.start.max(b.start))
}

/// The bin of a time; the last one is the only one that can be shorter than the first.
fn place(bins: &[Span], at: Nanos) -> Option<usize> {
    let (last, each) = (bins.len().checked_sub(1)?, bins.first()?.length.get());
    Some(usize::try_from(at.get() / each).unwrap_or(last).min(last))
}

/// Calls `add` with each gap, its sources, and the time that each took of it.
fn each_share<'a>(cpu: &'a CpuNoise, mut add: impl FnMut(Span, Source<'a>, Nanos)) {
    let Some(blamed) = &cpu.blamed else {
        cpu.gaps.iter().for_each(|gap| add(*gap, None, gap.length));
        return;
    };
    let keys: Vec<Source<'_>> =
        (0..blamed.culprits.len()).map(|culprit| key(blamed, culprit)).collect();
    for share in &blamed.shares {
        let key = keys.get(share.culprit).copied().flatten();
        if let (Some(gap), Some(_)) = (cpu.gaps.get(share.gap), key) {
            add(*gap, key, share.ns);
        }
    }
}

fn key(blamed: &Blamed, culprit: usize) -> Source<'_> {
    let culprit = blamed.culprits.get(culprit)?;
    let thread = culprit.thread.as_ref();
    let (category, _, name) = source_of(culprit.kind, &culprit.name, thread);
    Some((category, name))
}

/// Adds a part of a gap to the bins that the gap reaches into.
fn spread(bins: &[Span], gap: Span, ns: Nanos, sums: &mut [Nanos]) {
    let Some(first) = place(bins, gap.start) else { return };
    if gap.end() <= bins[first].end() {
        // Most are inside of one, and a division of 128 bits takes long.
        sums[first] = sums[first].saturating_add(ns);
        return;
    }
    let (length, ns) = (u128::from(gap.length.get().max(1)), u128::from(ns.get()));
    for (bin, sum) in bins.iter().zip(sums).skip(first) {
        let inside = u128::from(common(*bin, gap).get());
        if inside == 0 {
            break;
        }
        let part = u64::try_from(ns * inside / length).unwrap_or(u64::MAX);
        *sum = sum.saturating_add(Nanos::from_nanos(part));
    }
}

#[cfg(test)]
mod tests {
    use recording::CulpritKind;
    use units::Ppm;

    use super::*;
    use crate::example;

    fn span(start: u64, length: u64) -> Span {
        Span { start: Nanos::from_millis(start), length: Nanos::from_millis(length) }
    }

    /// Check by hand: a gap that reaches into the next bin counts in both, and small sources are added up.
    #[test]
    fn by_hand() {
        let ms = 1_000_000;
        let share =
            |gap, name: &str, ns| example::share(gap, CulpritKind::Irq, name, None, ns);
        let mut cpu = example::cpu_noise(&[span(100, 2), span(490, 20), span(999, 1)]);
        cpu.blamed = Some(example::blamed(&[
            share(0, "disk", 2 * ms),
            share(1, "net", 20 * ms),
            share(2, "usb", ms),
        ]));
        let series = example::noise(None, vec![cpu.clone()]);
        let found = NoiseOverTime::of(&series, 2, 1);
        assert_eq!(found.bins, [span(0, 500), span(500, 500)]);
        let shares = |at: usize| {
            let shares = found.sources[at].shares.iter();
            shares.map(|share| share.unwrap().get().round()).collect::<Vec<_>>()
        };
        assert_eq!(found.sources[0].name.as_deref(), Some("net"));
        assert_eq!((shares(0), shares(1)), (vec![2e4, 2e4], vec![4e3, 2e3]));
        assert_eq!(found.sources[1].name, None);
        assert_eq!(found.longest, [20, 1].map(|ms| Some(Nanos::from_millis(ms))));
        cpu.blamed = None;
        cpu.phases = vec![span(0, 250)];
        let found = NoiseOverTime::of(&example::noise(None, vec![cpu]), 5, 9);
        assert_eq!((found.sources.len(), found.bins.len()), (1, 5));
        assert_eq!(found.sources[0].shares[2], Some(Ppm::new(4e4)));
    }

    /// Check that nothing measured has no bins.
    #[test]
    fn of_nothing() {
        let found = NoiseOverTime::of(&example::noise(None, vec![]), 9, 9);
        assert_eq!((found.bins.len(), found.sources.len()), (0, 0));
    }
}
