//! The events of a run, and the attribution of its gaps to them.

use std::sync::Arc;

use recording::{
    Blamed, Body, Code, CpuBusy, CpuNoise, CpuRun, Doubt, Event, FoundMoment,
    JitterSeries, LatencySeries, LatencySpec, MomentCause, NoiseSeries, Recording,
    RunSeries, Source, Steal, TicksSeries,
};
use units::{Cpu, CpuSet, Nanos, Span, chain};

use crate::clock::Clock;
use crate::error::Error;
use crate::interruptions::{busy, interruptions};
use crate::join::edges::TypicalEdges;
use crate::join::firmware;
use crate::join::layers::{Piece, innermost};
use crate::join::steal::common;
use crate::join::{Joined, join, within};
use crate::late_wakeups;
use crate::late_wakeups::{causes, wakeups};
use crate::level::Level;
use crate::life::{Life, elsewhere};
use crate::moments;
use crate::names::Names;
use crate::records::{Lane, Outside, Record};
use crate::slow_loops;
use crate::steal_clock;
use crate::tally::Tally;

/// The tracepoints without which much remains unexplained. Others belong to subsystems that not all
/// kernels have.
const NEEDED: &[&str] = &[
    #[cfg(target_arch = "x86_64")]
    "local_timer_entry",
    "irq_handler_entry",
    "softirq_entry",
    "sched_switch",
];

/// A process that was stopped alone for a shorter time is not worth a doubt.
const PART_MIN: Nanos = Nanos::from_millis(1);

/// The kernel's events on some CPUs during a measurement.
pub struct Events {
    pub(crate) source: Source,
    pub(crate) lanes: Vec<Lane>,
    /// The runs of a program on other CPUs.
    pub(crate) outside: Outside,
    /// The tracepoints that this kernel lacks.
    pub(crate) missing: Vec<String>,
    /// Why no better source was used.
    pub(crate) why_not: Arc<Vec<Error>>,
    pub(crate) names: Names,
}

impl Events {
    fn lane(&self, cpu: Cpu) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.cpu == cpu)
    }

    /// The number of lost events.
    pub fn lost(&self) -> u64 {
        self.lanes.iter().flat_map(|lane| &lane.losses).map(|loss| loss.events).sum()
    }

    /// Attributes the gaps of a recording, if it has any, explains its moments, and adds doubts. With
    /// `trace` the events themselves are stored too: of a measurement with moments those around them.
    /// `edges` are those of the interruptions of a program.
    pub fn blame_in(&self, recording: &mut Recording, trace: bool, edges: &TypicalEdges) {
        let has_limit = recording.body.trigger().stop_above_ns.is_some();
        let mut doubts = if let Body::Run { spec, series } = &mut recording.body {
            let found = self.interrupted(&spec.cpus, series, edges);
            if series.interruptions.is_some() {
                // It is only suspected without events.
                recording.doubts.retain(|doubt| doubt.code != Code::RanElsewhere);
            }
            found
        } else if let Body::Ticks { series, .. } = &mut recording.body {
            self.busy(series)
        } else if let Body::Latency { spec, series } = &mut recording.body {
            self.late(spec, series)
        } else if let Body::Jitter { spec, series } = &mut recording.body {
            self.slow(spec.cpu, series)
        } else if let Some(series) = recording.body.noise_mut() {
            let doubts = self.blame(series, trace && !has_limit);
            if let Some(counts) = &recording.hardware {
                firmware::attribute(&mut series.cpus, counts, &recording.facts);
            }
            doubts
        } else {
            Vec::new()
        };
        let body = &recording.body;
        let causes = |found: &FoundMoment| causes_of_moment(body, found);
        recording.moments =
            moments::moments(body, &self.lanes, &self.names, trace, causes);
        // A CPU that was offline is idle then, and later too: its loop is on another CPU. One whose
        // loop may not run for now has a doubt that says why.
        let offline = offline(&recording.doubts);
        let is_throttled =
            recording.doubts.iter().any(|doubt| doubt.code == Code::Throttled);
        doubts.retain(|doubt| {
            doubt.code != Code::Idled || !(is_throttled || doubt.is_about(&offline))
        });
        recording.doubts.extend(doubts);
        recording.doubts.iter_mut().for_each(|doubt| self.qualify(doubt));
    }

    /// Adds to a doubt about a CPU quota which causes have its time, unless it is a cause of its own.
    fn qualify(&self, doubt: &mut Doubt) {
        let has_quotas = matches!(self.source, Source::Bpf | Source::BpfClassic);
        if doubt.code == Code::Throttled && !has_quotas && !self.lanes.is_empty() {
            let name = self.source.name();
            doubt.text.push_str(&format!(
                "; the events of {name} do not show it: at most that time is attributed to \
                 other threads and to the idle task instead"
            ));
        }
    }

    /// Finds the end of a program that ran on these CPUs, where else it ran, when it was stopped, and its
    /// interruptions; returns doubts.
    fn interrupted(
        &self,
        cpus: &CpuSet,
        series: &mut RunSeries,
        edges: &TypicalEdges,
    ) -> Vec<Doubt> {
        series.source = Some(self.source);
        let lanes = self.lanes.iter().filter(|lane| cpus.contains(lane.cpu));
        let lanes: Vec<&Lane> = lanes.collect();
        if lanes.is_empty() {
            return self.untraced_doubt().into_iter().collect();
        }
        let life = Life::of(&lanes, &self.outside);
        let began = series.began_ns;
        // Its supervisor may have noticed it late.
        let end = life.end().filter(|end| *end > began);
        let length = end.map_or(series.elapsed_ns, |end| end.saturating_sub(began));
        series.elapsed_ns = series.elapsed_ns.min(length);
        let ran = Span { start: began, length: series.elapsed_ns };
        let stops = life.stops(ran);
        series.stopped = stops.all;
        series.elsewhere = elsewhere(&self.outside, ran);
        let (found, lost) = interruptions(&lanes, &self.outside, &self.names, ran, edges);
        series.interruptions = Some(found);
        let doubts = [elsewhere_doubt(cpus, series), partly_stopped_doubt(stops.part)];
        doubts.into_iter().flatten().chain(self.doubts(lost)).collect()
    }

    /// The edges of events in the gaps of this process's busy loop.
    pub fn typical_edges(&self, series: &NoiseSeries) -> TypicalEdges {
        let (Some(monotonic), [cpu]) = (series.monotonic, series.cpus.as_slice()) else {
            return TypicalEdges::default();
        };
        let Some(lane) = self.lane(cpu.cpu) else { return TypicalEdges::default() };
        let clock = Clock::of(monotonic);
        let is_loop =
            |record: &&Record| record.level == Level::Thread && record.mark.is_self;
        let mut known = Tally::default();
        let records = lane.charged();
        let others = records.iter().filter(|record| !is_loop(record));
        let event = |record: &Record| {
            let span = clock.span((record.start, record.end), cpu.began_ns)?;
            let is_during = span.start < cpu.elapsed_ns;
            is_during
                .then(|| Event { span, culprit: known.count(self.names.culprit(record)) })
        };
        let pieces = innermost(&others.filter_map(event).collect::<Vec<_>>());
        let found: Vec<Vec<Piece>> =
            cpu.gaps.iter().map(|gap| within(&pieces, *gap)).collect();
        let gaps = cpu.gaps.iter().copied().zip(found.iter().map(Vec::as_slice));
        TypicalEdges::of(gaps, known.culprits())
    }

    /// Finds what ran on the CPUs while their ticks were counted; returns doubts.
    fn busy(&self, series: &mut TicksSeries) -> Vec<Doubt> {
        series.source = Some(self.source);
        if self.lanes.is_empty() {
            return self.untraced_doubt().into_iter().collect();
        }
        let busy = |lane: &Lane| {
            let (spans, blamed) = busy(lane, &self.names, &series.waits);
            CpuBusy { cpu: lane.cpu, spans, blamed }
        };
        series.busy = self.lanes.iter().map(busy).collect();
        self.doubts(series.busy.iter().map(|busy| (busy.cpu, busy.blamed.lost)))
    }

    /// Finds the causes of late wake-ups; returns doubts.
    fn late(&self, spec: &LatencySpec, series: &mut LatencySeries) -> Vec<Doubt> {
        series.source = Some(self.source);
        if self.lanes.is_empty() {
            return self.untraced_doubt().into_iter().collect();
        }
        for cpu in &mut series.cpus {
            let Some(lane) = self.lane(cpu.cpu) else { continue };
            let wakeups = wakeups(cpu, series.began_ns, spec.interval_ns);
            let (slack, listed) = (cpu.slack_ns, spec.trigger.moments_max());
            cpu.causes = Some(causes(lane, &self.names, wakeups, slack, listed));
        }
        let lost = series.cpus.iter();
        let lost = lost.filter_map(|cpu| Some((cpu.cpu, cpu.causes.as_ref()?.lost)));
        self.doubts(lost)
    }

    /// Finds the causes of jitter; returns doubts.
    fn slow(&self, cpu: Cpu, series: &mut JitterSeries) -> Vec<Doubt> {
        series.source = Some(self.source);
        let Some(lane) = self.lane(cpu) else {
            return self.untraced_doubt().into_iter().collect();
        };
        let blamed = slow_loops::blamed(lane, &self.names, &slow_loops::of(series));
        let lost = blamed.lost;
        series.blamed = Some(blamed);
        self.doubts([(cpu, lost)])
    }

    /// Attributes the gaps of a run; returns doubts. With `trace` the events themselves are stored
    /// too.
    pub fn blame(&self, series: &mut NoiseSeries, trace: bool) -> Vec<Doubt> {
        series.source = Some(self.source);
        let (Some(monotonic), false) = (series.monotonic, self.lanes.is_empty()) else {
            return self.untraced_doubt().into_iter().collect();
        };
        let clock = Clock::of(monotonic);
        for lane in &self.lanes {
            let of_lane = series.cpus.iter_mut().find(|cpu| cpu.cpu == lane.cpu);
            if let Some(cpu) = of_lane {
                cpu.blamed = Some(self.blamed(lane, cpu, clock, trace));
            }
        }
        let idle_doubt =
            self.lanes.iter().filter_map(|lane| idle_doubt(lane, series, clock));
        let idle_doubt: Vec<Doubt> = idle_doubt.collect();
        let blamed = series.cpus.iter();
        let blamed = blamed.filter_map(|cpu| Some((cpu.cpu, cpu.blamed.as_ref()?.lost)));
        clock.doubts().into_iter().chain(idle_doubt).chain(self.doubts(blamed)).collect()
    }

    fn blamed(&self, lane: &Lane, cpu: &CpuNoise, clock: Clock, trace: bool) -> Blamed {
        let mut known = Tally::default();
        let ran = cpu.ran();
        let records = lane.charged();
        let mut events = Vec::with_capacity(records.len());
        for record in records.iter() {
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
        let events = counts;
        Blamed { culprits, shares, events, lost, losses, steal, firmware: None, trace }
    }

    /// The doubt if events were not traced, although that was not requested.
    fn untraced_doubt(&self) -> Option<Doubt> {
        let why: Vec<String> = self.why_not.iter().map(|why| chain(why)).collect();
        let why_not = why.join("; ");
        let text =
            format!("events were not traced, and the causes are unknown: {why_not}");
        (!why.is_empty()).then(|| Doubt::new(Code::Untraced, text))
    }

    /// The doubts about lost events of each CPU, and about missing tracepoints.
    fn doubts(&self, lost: impl IntoIterator<Item = (Cpu, u64)>) -> Vec<Doubt> {
        let outside = (self.outside.lost > 0).then(|| {
            let text = format!(
                "{} runs of the program on CPUs that it was not given were too many to store",
                self.outside.lost
            );
            Doubt::new(Code::EventsLost, text)
        });
        let lost = lost.into_iter().filter(|(_, lost)| *lost > 0).map(|(cpu, lost)| {
            let text = format!(
                "CPU {cpu}: {lost} events were lost, as they were too fast to be read or \
                 too many to store; their time is unexplained"
            );
            Doubt::new(Code::EventsLost, text)
        });
        let missing = self.missing.iter().filter(|name| NEEDED.contains(&name.as_str()));
        let missing = missing.map(|name| {
            let text = format!(
                "this kernel has no tracepoint {name}: its events are unexplained here"
            );
            Doubt::new(Code::Untraced, text)
        });
        lost.chain(outside).chain(missing).collect()
    }
}

/// The periods of the loop's run in which events were lost, and their number.
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

/// The doubt if a program ran on CPUs that it was not given.
fn elsewhere_doubt(cpus: &CpuSet, series: &RunSeries) -> Option<Doubt> {
    let time = |run: &CpuRun| format!("{} on CPU {}", in_words(run.ns), run.cpu);
    let times: Vec<String> = series.elsewhere.iter().map(time).collect();
    let word = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    let text = format!(
        "the program ran for {}, outside of {word} {cpus}: its interruptions there are not known, and \
         neither is its net run time",
        times.join(", ")
    );
    (!times.is_empty()).then(|| Doubt::new(Code::RanElsewhere, text))
}

/// The doubt if a process of a program was stopped for that long while others were not.
fn partly_stopped_doubt(part: Nanos) -> Option<Doubt> {
    let text = format!(
        "a process of the program was stopped for {} while others of its processes were not: that \
         time is part of the net run time",
        in_words(part)
    );
    (part >= PART_MIN).then(|| Doubt::new(Code::PartlyStopped, text))
}

fn in_words(time: Nanos) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 0.1 {
        format!("{:.3} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

/// The CPUs that were offline during a measurement, by its doubts.
fn offline(doubts: &[Doubt]) -> CpuSet {
    let offline = doubts.iter().filter(|doubt| doubt.code == Code::Offline);
    let cpus: Vec<CpuSet> = offline.filter_map(Doubt::cpus).collect();
    cpus.iter().flat_map(CpuSet::iter).collect()
}

/// A doubt if a CPU was idle although its loop never sleeps.
fn idle_doubt(lane: &Lane, series: &NoiseSeries, clock: Clock) -> Option<Doubt> {
    let cpu = series.cpus.iter().find(|cpu| cpu.cpu == lane.cpu)?;
    let records = lane.charged();
    let idle = records.iter().filter(|record| record.is_idle());
    let ends = idle.map(|record| (record.start, record.end));
    let spans = ends.filter_map(|ends| clock.span(ends, cpu.began_ns));
    let ran = cpu.ran();
    let within = spans.flat_map(|span| {
        ran.iter().map(move |ran| common(*ran, span)).collect::<Vec<_>>()
    });
    let nanos: Nanos = within.sum();
    let text = format!(
        "CPU {} was idle for {:.1} ms while its loop should have run (swapper, below \
         thread): the loop was stopped, moved or throttled",
        lane.cpu,
        nanos.as_secs_f64() * 1e3
    );
    (!nanos.is_zero()).then(|| Doubt::new(Code::Idled, text))
}

/// The causes of a moment; `None` if its value was not attributed.
fn causes_of_moment(body: &Body, found: &FoundMoment) -> Option<Vec<MomentCause>> {
    let (cpu, place) = (found.moment.cpu, found.place);
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others have no moments")]
    match body {
        Body::Noise { series, .. } => {
            let cpu = series.cpus.iter().find(|own| own.cpu == cpu)?;
            Some(moments::of_shares(cpu.blamed.as_ref()?, place))
        }
        Body::Jitter { series, .. } => {
            Some(moments::of_shares(series.blamed.as_ref()?, place))
        }
        Body::Run { series, .. } => {
            Some(moments::of_shares(&series.interruptions.as_ref()?.blamed, place))
        }
        Body::Latency { series, .. } => {
            let cpu = series.cpus.iter().find(|own| own.cpu == cpu)?;
            let causes = cpu.causes.as_ref()?;
            let late = causes.latest.iter().find(|late| late.wakeup == place)?;
            let shares = late_wakeups::shares(late, &causes.culprits);
            Some(moments::summed(shares.into_iter(), &causes.culprits))
        }
        _ => None,
    }
}
