//! Noise beside an injector, and its attribution.

use blame::Watcher;
use facts::{Facts, Root};
use measure::Control;
use recording::Spec;
use recording::{
    Blamed, Body, Code, CpuNoise, CulpritKind, NoiseSeries, NoiseSpec, Share, Source,
    Trigger,
};
use units::{Cpu, CpuSet, Nanos, Span};

use crate::injector::{Burst, Injector};

/// Some thirty bursts, one every 10 ms; emulated guests take many times longer.
const RUN: Nanos = Nanos::from_millis(300);
/// Above ordinary tasks.
const SPINNER: u8 = 5;

/// A run, and the injector's bursts in it.
pub(crate) struct NoiseRun {
    series: NoiseSeries,
    /// Whether there is no other CPU.
    pub(crate) on_only_cpu: bool,
    /// Those within the run, on the clock of the gaps.
    bursts: Vec<(Span, Burst)>,
}

/// The length of a burst: measured, and known otherwise.
#[derive(Debug)]
pub(crate) struct Made {
    /// The time of its threads on the CPU inside their tracepoints, in the gaps that overlap it.
    pub(crate) inside: Nanos,
    /// By its injector's clock.
    pub(crate) took: Nanos,
    /// Its computing time according to its injector.
    pub(crate) burnt: Nanos,
    /// Its CPU time: the kernel's count, and the stolen time, which the kernel does not count. The
    /// kernel may include interrupts.
    pub(crate) ran: Nanos,
}

impl Made {
    /// The measured value, in percent of a known time.
    pub(crate) fn percent_of(&self, known: Nanos) -> u64 {
        self.inside.get() * 100 / known.get()
    }
}

/// Numbers in rising order.
pub(crate) fn rising(numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    numbers
}

/// The median of numbers in rising order.
pub(crate) fn typical(rising: &[u64]) -> u64 {
    rising[rising.len() / 2]
}

/// The CPU to measure.
pub(crate) fn cpu(facts: &Facts) -> Cpu {
    facts.cpus.allowed.get().unwrap().iter().last().unwrap()
}

pub(crate) fn seen_beside(
    source: Source,
    make: fn(Cpu) -> Injector,
) -> Result<NoiseRun, String> {
    let facts = Facts::read(&Root::live());
    let cpu = cpu(&facts);
    let cpus: CpuSet = [cpu].into_iter().collect();
    let injector = make(cpu);
    if let Injector::None(why) = injector {
        return Err(why.to_owned());
    }
    let fifo = Some(SPINNER);
    let spec = NoiseSpec {
        cpus,
        duration_ns: RUN,
        threshold_ns: None,
        fifo,
        trigger: Trigger::default(),
        phases: None,
        at_scale: None,
    };
    let cpus = spec.cpus.clone();
    let control = Control::new().unwrap();
    let watcher = Watcher::open(&cpus, Some(source), &facts);
    let watcher = watcher.map_err(|error| units::chain(&error));
    let watched = watcher.map(|watcher| {
        let watching = watcher.begin();
        let spec = Spec::Noise(spec);
        let recording = measure::run(&spec, &facts, &control, &mut measure::ignore);
        (recording, watching.end())
    });
    let bursts = injector.stop();
    let (recording, events) = watched?;
    let Body::Noise { mut series, .. } =
        recording.map_err(|error| units::chain(&error))?.body
    else {
        unreachable!("asked for noise")
    };
    let mut doubts = events.blame(&mut series, false);
    // The kernel reserves a share of each second even for the idle task.
    doubts.retain(|doubt| doubt.code != Code::Idled);
    assert_eq!(doubts, [], "nothing is lost, and the clock was not adjusted");
    let bursts = on_our_clock(&series, bursts);
    let on_only_cpu = facts.cpus.allowed.get().is_some_and(|cpus| cpus.len() == 1);
    Ok(NoiseRun { series, on_only_cpu, bursts })
}

fn on_our_clock(series: &NoiseSeries, bursts: Vec<Burst>) -> Vec<(Span, Burst)> {
    let (ours, theirs) = series.monotonic.unwrap()[0];
    let cpu = &series.cpus[0];
    let since =
        |time: Nanos| (ours + time).get().checked_sub((theirs + cpu.began_ns).get());
    let placed = |burst: Burst| {
        let start = Nanos::from_nanos(since(burst.begin)?);
        let length = burst.end.saturating_sub(burst.begin);
        let span = Span { start, length };
        (span.end() < cpu.elapsed_ns).then_some((span, burst))
    };
    bursts.into_iter().filter_map(placed).collect()
}

impl NoiseRun {
    fn cpu(&self) -> &CpuNoise {
        &self.series.cpus[0]
    }

    fn blamed(&self) -> &Blamed {
        self.cpu().blamed.as_ref().unwrap()
    }

    pub(crate) fn source(&self) -> Option<Source> {
        self.series.source
    }

    pub(crate) fn elapsed(&self) -> Nanos {
        self.cpu().elapsed_ns
    }

    pub(crate) fn noise(&self) -> Nanos {
        self.cpu().gaps.iter().map(|gap| gap.length).sum()
    }

    /// For each burst's gap, in rising order: the percentage that is not that of threads of that
    /// name; 100 if they have no share in it.
    pub(crate) fn percent_of_others(&self, name: &str) -> Vec<u64> {
        let gaps = &self.cpu().gaps;
        let percent = |(burst, _): &(Span, Burst)| {
            let middle = burst.start + Nanos::from_nanos(burst.length.get() / 2);
            let meets = |gap: &&Span| gap.start < middle && middle < gap.end();
            let of_gap = |gap: Span| {
                let shares = self.blamed().shares.iter();
                let theirs = shares.filter(|share| {
                    gaps[share.gap].start == gap.start
                        && self.is(share, CulpritKind::Thread, name)
                });
                let theirs: Nanos = theirs.map(|share| share.ns).sum();
                100 - theirs.get() * 100 / gap.length.get()
            };
            gaps.iter().find(meets).map_or(100, |gap| of_gap(*gap))
        };
        rising(self.bursts.iter().map(percent))
    }

    pub(crate) fn shares(&self) -> Nanos {
        self.blamed().shares.iter().map(|share| share.ns).sum()
    }

    /// The number of bursts, without the last one, which may be incomplete.
    pub(crate) fn bursts(&self) -> usize {
        self.bursts.len().saturating_sub(1)
    }

    fn is(&self, share: &Share, kind: CulpritKind, name: &str) -> bool {
        let culprit = &self.blamed().culprits[share.culprit];
        culprit.kind == kind && culprit.name.contains(name)
    }

    /// The number of the bursts' gaps in which that culprit has a share.
    pub(crate) fn gaps_of_bursts(&self, kind: CulpritKind, name: &str) -> usize {
        let gaps = &self.cpu().gaps;
        let has_share = |burst: &Span| {
            let middle = burst.start + Nanos::from_nanos(burst.length.get() / 2);
            let mut shares = self.blamed().shares.iter();
            shares.any(|share| {
                let gap = gaps[share.gap];
                gap.start < middle && middle < gap.end() && self.is(share, kind, name)
            })
        };
        self.bursts[..self.bursts()].iter().filter(|(span, _)| has_share(span)).count()
    }

    /// The time of all threads inside their tracepoints.
    pub(crate) fn inside_of_threads(&self) -> Nanos {
        let shares = self.blamed().shares.iter();
        let theirs = shares.filter(|share| self.is(share, CulpritKind::Thread, ""));
        theirs.map(|share| share.inside_ns).sum()
    }

    /// The time that the loop waited for the CPU, according to the kernel.
    pub(crate) fn waited(&self) -> Nanos {
        self.cpu().proc.waited_ns.unwrap()
    }

    /// Each burst of threads of that name, without the last one.
    pub(crate) fn made(&self, name: &str) -> Vec<Made> {
        let gaps = &self.cpu().gaps;
        let made = |pair: &[(Span, Burst)]| {
            let ((span, burst), (_, next)) = (pair[0], pair[1]);
            let theirs = self.blamed().shares.iter().filter(|share| {
                let gap = gaps[share.gap];
                let meets = gap.start < span.end() && span.start < gap.end();
                meets && self.is(share, CulpritKind::Thread, name)
            });
            let inside = theirs.map(|share| share.inside_ns).sum();
            let away = span.length.saturating_sub(burst.burnt);
            let ran = next.ran.saturating_sub(burst.ran) + away;
            Made { inside, took: span.length, burnt: burst.burnt, ran }
        };
        self.bursts.windows(2).map(made).collect()
    }

    /// For each gap in which that culprit has a share, in rising order: the unexplained percentage.
    pub(crate) fn unexplained_beside(&self, kind: CulpritKind, name: &str) -> Vec<u64> {
        let shares = &self.blamed().shares;
        let of = shares.iter().filter(|share| self.is(share, kind, name));
        let mut gaps: Vec<usize> = of.map(|share| share.gap).collect();
        gaps.dedup();
        let unexplained = |gap: &usize| {
            let of_gap = shares.iter().filter(|share| share.gap == *gap);
            let unexplained =
                of_gap.filter(|share| self.is(share, CulpritKind::Unexplained, ""));
            let unexplained: Nanos = unexplained.map(|share| share.ns).sum();
            unexplained.get() * 100 / self.cpu().gaps[*gap].length.get()
        };
        rising(gaps.iter().map(unexplained))
    }

    /// The part of the time between two readings of `/proc` that is outside of the loop, in
    /// thousandths.
    pub(crate) fn besides_the_loop(&self) -> u64 {
        let span = self.cpu().proc.span_ns;
        let besides = span.saturating_sub(self.elapsed());
        besides.get() * 1_000 / span.get().max(1)
    }

    /// The number of events of that kind and name.
    pub(crate) fn events(&self, kind: CulpritKind, name: &str) -> u64 {
        let blamed = self.blamed();
        let culprits = blamed.culprits.iter().zip(&blamed.events);
        let named = culprits
            .filter(|(culprit, _)| culprit.kind == kind && culprit.name.contains(name));
        named.map(|(_, events)| events).sum()
    }

    /// The number of an interrupt in `/proc/interrupts`.
    pub(crate) fn interrupts(&self, line: &str) -> u64 {
        let lines = self.cpu().proc.interrupts.as_ref().unwrap();
        lines.iter().filter(|found| found.line == line).map(|found| found.count).sum()
    }

    /// The number of timer interrupts in `/proc/interrupts`.
    pub(crate) fn timer_interrupts(&self) -> u64 {
        let lines = self.cpu().proc.interrupts.as_ref().unwrap();
        lines.iter().filter(|found| found.timer).map(|found| found.count).sum()
    }

    /// The number of a softirq in `/proc/softirqs`.
    pub(crate) fn softirqs(&self, name: &str) -> u64 {
        let lines = self.cpu().proc.softirqs.as_ref().unwrap();
        lines.iter().filter(|found| found.name == name).map(|found| found.count).sum()
    }

    /// All culprits, for messages.
    pub(crate) fn told(&self) -> impl std::fmt::Debug {
        let blamed = self.blamed();
        let culprits = blamed.culprits.iter().zip(&blamed.events);
        let told = culprits.map(|(culprit, events)| (culprit.name.clone(), *events));
        told.collect::<Vec<_>>()
    }
}
