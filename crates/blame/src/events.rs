//! What was seen during a run, and whom its gaps are blamed on.

use recording::{
    Blamed, Body, Code, CpuBusy, CpuNoise, Doubt, Event, NoiseSeries, Recording,
    RunSeries, Source, Steal, TicksSeries,
};
use units::{Cpu, CpuSet, Nanos, Span, chain};

use crate::clock::Clock;
use crate::error::Error;
use crate::interruptions::{busy, interruptions};
use crate::join::{Joined, join};
use crate::names::Names;
use crate::seen::Lane;
use crate::steal::common;
use crate::steal_clock;
use crate::tally::Tally;

/// The tracepoints without which much stays unexplained. Others belong to parts that not all
/// kernels have.
const NEEDED: &[&str] = &[
    #[cfg(target_arch = "x86_64")]
    "local_timer_entry",
    "irq_handler_entry",
    "softirq_entry",
    "sched_switch",
];

/// What the kernel did on some CPUs while something was measured.
pub struct Events {
    pub(crate) source: Source,
    pub(crate) lanes: Vec<Lane>,
    /// The tracepoints that this kernel does not have.
    pub(crate) missing: Vec<String>,
    /// Why no better source was used.
    pub(crate) why_not: Vec<Error>,
    pub(crate) names: Names,
}

impl Events {
    /// How many events were not kept since watching began.
    pub fn lost(&self) -> u64 {
        self.lanes.iter().flat_map(|lane| &lane.losses).map(|loss| loss.events).sum()
    }

    /// Blames the gaps of a recording, if it has any, and adds what there is to doubt. With a
    /// `trace` the events themselves are kept, too.
    pub fn blame_in(&self, recording: &mut Recording, trace: bool) {
        let doubts = match &mut recording.body {
            Body::Run { spec, series } => Some(self.interrupted(&spec.cpus, series)),
            Body::Ticks { series, .. } => Some(self.busy(series)),
            body => body.noise_mut().map(|series| self.blame(series, trace)),
        };
        recording.doubts.extend(doubts.into_iter().flatten());
    }

    /// Finds the interruptions of a program that ran on these CPUs, and says what there is to
    /// doubt.
    fn interrupted(&self, cpus: &CpuSet, series: &mut RunSeries) -> Vec<Doubt> {
        series.source = Some(self.source);
        let lanes = self.lanes.iter().filter(|lane| cpus.contains(lane.cpu));
        let lanes: Vec<&Lane> = lanes.collect();
        if lanes.is_empty() {
            return self.unwatched().into_iter().collect();
        }
        // Both clocks are CLOCK_MONOTONIC.
        let ran = Span { start: series.began_ns, length: series.elapsed_ns };
        let (found, lost) = interruptions(&lanes, &self.names, ran);
        series.interruptions = Some(found);
        self.doubts(lost)
    }

    /// Finds what ran on the CPUs that were watched while their ticks were counted, and says what
    /// there is to doubt.
    fn busy(&self, series: &mut TicksSeries) -> Vec<Doubt> {
        series.source = Some(self.source);
        if self.lanes.is_empty() {
            return self.unwatched().into_iter().collect();
        }
        let busy = |lane: &Lane| {
            let (spans, blamed) = busy(lane, &self.names, &series.waits);
            CpuBusy { cpu: lane.cpu, spans, blamed }
        };
        series.busy = self.lanes.iter().map(busy).collect();
        self.doubts(series.busy.iter().map(|busy| (busy.cpu, busy.blamed.lost)))
    }

    /// Blames the gaps of a run, and says what there is to doubt. With a `trace` the events
    /// themselves are kept, too.
    pub fn blame(&self, series: &mut NoiseSeries, trace: bool) -> Vec<Doubt> {
        series.source = Some(self.source);
        let (Some(monotonic), false) = (series.monotonic, self.lanes.is_empty()) else {
            return self.unwatched().into_iter().collect();
        };
        let clock = Clock::of(monotonic);
        for lane in &self.lanes {
            let of_lane = series.cpus.iter_mut().find(|cpu| cpu.cpu == lane.cpu);
            if let Some(cpu) = of_lane {
                cpu.blamed = Some(self.blamed(lane, cpu, clock, trace));
            }
        }
        let idled = self.lanes.iter().filter_map(|lane| idled(lane, series, clock));
        let idled: Vec<Doubt> = idled.collect();
        let blamed = series.cpus.iter();
        let blamed = blamed.filter_map(|cpu| Some((cpu.cpu, cpu.blamed.as_ref()?.lost)));
        clock.doubts().into_iter().chain(idled).chain(self.doubts(blamed)).collect()
    }

    fn blamed(&self, lane: &Lane, cpu: &CpuNoise, clock: Clock, trace: bool) -> Blamed {
        let mut known = Tally::default();
        let ran = cpu.ran();
        let mut events = Vec::with_capacity(lane.records.len());
        for record in &lane.records {
            let ends = (record.start, record.end);
            let Some(span) = clock.span(ends, cpu.began_ns) else { continue };
            if !ran.iter().any(|ran| span.start < ran.end() && ran.start <= span.end()) {
                continue;
            }
            let culprit = known.count(self.names.culprit(record));
            events.push(Event { span, culprit });
        }
        let (losses, lost) = losses(lane, cpu, clock);
        let steal = steal_clock::read(lane, cpu, clock);
        let bounds = steal.as_ref().map_or(&[][..], |(_, bounds)| bounds);
        let (mut culprits, mut counts) = known.into_parts();
        let Joined { shares, steal_max } =
            join(&cpu.gaps, &events, &losses, bounds, &mut culprits);
        counts.resize(culprits.len(), 0);
        let trace = trace.then(|| {
            events.sort_by_key(|event| event.span);
            events
        });
        let steal = steal.map(|(clock, bounds)| Steal {
            clock,
            at_least_ns: bounds.iter().map(|bound| bound.at_least).sum(),
            at_most_ns: bounds.iter().map(|bound| bound.at_most).sum(),
            unexplained_max_ns: steal_max,
        });
        Blamed { culprits, shares, events: counts, lost, losses, steal, trace }
    }

    /// Where single events were not watched although nobody asked for that: why.
    fn unwatched(&self) -> Option<Doubt> {
        let why: Vec<String> = self.why_not.iter().map(|why| chain(why)).collect();
        let text = format!("who took it is not known: {}", why.join("; "));
        (!why.is_empty()).then(|| Doubt::new(Code::Unwatched, text))
    }

    /// What there is to doubt where so many events of each CPU are missing.
    fn doubts(&self, lost: impl IntoIterator<Item = (Cpu, u64)>) -> Vec<Doubt> {
        let lost = lost.into_iter().filter(|(_, lost)| *lost > 0).map(|(cpu, lost)| {
            let text = format!(
                "CPU {cpu}: {lost} events came faster than they could be read, or were too many \
                 to keep; what they took is unexplained"
            );
            Doubt::new(Code::EventsLost, text)
        });
        let missing = self.missing.iter().filter(|name| NEEDED.contains(&name.as_str()));
        let missing = missing.map(|name| {
            let text = format!(
                "this kernel has no tracepoint {name}: what is seen there elsewhere is \
                 unexplained here"
            );
            Doubt::new(Code::Unwatched, text)
        });
        lost.chain(missing).collect()
    }
}

/// When events were lost while the loop ran, and how many.
fn losses(lane: &Lane, cpu: &CpuNoise, clock: Clock) -> (Vec<Span>, u64) {
    let ran = cpu.ran();
    let met = lane.losses.iter().filter_map(|loss| {
        let span = clock.span((loss.from, loss.until), cpu.began_ns)?;
        let meets = ran.iter().any(|ran| !common(*ran, span).is_zero());
        meets.then_some((span, loss.events))
    });
    let (spans, events): (Vec<Span>, Vec<u64>) = met.unzip();
    (spans, events.into_iter().fold(0, u64::saturating_add))
}

/// Says where a CPU had nothing to do although its loop never sleeps.
fn idled(lane: &Lane, series: &NoiseSeries, clock: Clock) -> Option<Doubt> {
    let cpu = series.cpus.iter().find(|cpu| cpu.cpu == lane.cpu)?;
    let idle = lane.records.iter().filter(|record| record.is_idle());
    let ends = idle.map(|record| (record.start, record.end));
    let spans = ends.filter_map(|ends| clock.span(ends, cpu.began_ns));
    let ran = cpu.ran();
    let within = spans.flat_map(|span| {
        ran.iter().map(move |ran| common(*ran, span)).collect::<Vec<_>>()
    });
    let nanos: Nanos = within.sum();
    let text = format!(
        "CPU {} was idle for {:.1} ms while its loop should have run (swapper, below thread): \
         something stopped the loop, moved it away or throttled it",
        lane.cpu,
        nanos.as_secs_f64() * 1e3
    );
    (!nanos.is_zero()).then(|| Doubt::new(Code::Idled, text))
}
