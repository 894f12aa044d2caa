//! What was seen during a run, and whom its gaps are blamed on.

use std::collections::BTreeMap;

use recording::{
    Blamed, Body, Code, CpuBusy, CpuNoise, Culprit, Doubt, Event, NoiseSeries, Recording,
    RunSeries, Source, TicksSeries,
};
use units::{Cpu, Nanos, Span};

use crate::error::Error;
use crate::interruptions::{busy, interruptions};
use crate::join::join;
use crate::names::Names;
use crate::seen::Lane;

/// More than this between the kernel's clocks, in parts of a million, and events may be
/// blamed for their neighbours' gaps.
const DRIFT_PPM: u64 = 200;

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
    /// How many events were not kept.
    pub fn lost(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.lost).sum()
    }

    /// Blames the gaps of a recording, if it has any, and adds what there is to doubt. With a
    /// `trace` the events themselves are kept, too.
    pub fn blame_in(&self, recording: &mut Recording, trace: bool) {
        let doubts = match &mut recording.body {
            Body::Run { spec, series } => Some(self.interrupted(spec.cpu, series)),
            Body::Ticks { series, .. } => Some(self.busy(series)),
            body => body.noise_mut().map(|series| self.blame(series, trace)),
        };
        recording.doubts.extend(doubts.into_iter().flatten());
    }

    /// Finds the interruptions of a program that ran on that CPU, and says what there is to
    /// doubt.
    fn interrupted(&self, cpu: Cpu, series: &mut RunSeries) -> Vec<Doubt> {
        series.source = Some(self.source);
        let Some(lane) = self.lanes.iter().find(|lane| lane.cpu == cpu) else {
            return self.unwatched().into_iter().collect();
        };
        // Both clocks are CLOCK_MONOTONIC.
        let ran = Span { start: series.began_ns, length: series.elapsed_ns };
        series.interruptions = Some(interruptions(lane, &self.names, ran));
        self.doubts()
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
        self.doubts()
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
        clock.doubts().into_iter().chain(idled).chain(self.doubts()).collect()
    }

    fn blamed(&self, lane: &Lane, cpu: &CpuNoise, clock: Clock, trace: bool) -> Blamed {
        let mut known = Known::default();
        let ran = cpu.ran();
        let mut events = Vec::with_capacity(lane.records.len());
        for record in &lane.records {
            let ends = (record.start, record.end);
            let Some(span) = clock.span(ends, cpu.began_ns) else { continue };
            if !ran.iter().any(|ran| span.start < ran.end() && ran.start <= span.end()) {
                continue;
            }
            let culprit = known.saw(self.names.culprit(record));
            events.push(Event { span, culprit });
        }
        let losses = lane.losses.iter().copied();
        let losses: Vec<Span> =
            losses.filter_map(|ends| clock.span(ends, cpu.began_ns)).collect();
        let steal = cpu.meanwhile.steal_ns.unwrap_or_default();
        let (mut culprits, mut counts) = known.into_parts();
        let shares = join(&cpu.gaps, &events, &losses, steal, &mut culprits);
        counts.resize(culprits.len(), 0);
        let trace = trace.then(|| {
            events.sort_by_key(|event| event.span);
            events
        });
        Blamed { culprits, shares, events: counts, lost: lane.lost, trace }
    }

    /// Where single events were not watched although nobody asked for that: why.
    fn unwatched(&self) -> Option<Doubt> {
        let why: Vec<String> = self.why_not.iter().map(Error::to_string).collect();
        let text = format!("who took it is not known: {}", why.join("; "));
        (!why.is_empty()).then(|| Doubt::new(Code::Unwatched, text))
    }

    fn doubts(&self) -> Vec<Doubt> {
        let lost = self.lanes.iter().filter(|lane| lane.lost > 0).map(|lane| {
            let text = format!(
                "CPU {}: {} events came faster than they could be read, or were too many to \
                 keep; what they took is unexplained",
                lane.cpu, lane.lost
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

/// Says where a CPU had nothing to do although its loop never sleeps.
fn idled(lane: &Lane, series: &NoiseSeries, clock: Clock) -> Option<Doubt> {
    let cpu = series.cpus.iter().find(|cpu| cpu.cpu == lane.cpu)?;
    let idle = lane.records.iter().filter(|record| record.is_idle());
    let ends = idle.map(|record| (record.start, record.end));
    let spans = ends.filter_map(|ends| clock.span(ends, cpu.began_ns));
    let ran = cpu.ran();
    let within = spans.flat_map(|span| {
        let part = move |ran: &Span| {
            ran.end().min(span.end()).saturating_sub(ran.start.max(span.start))
        };
        ran.iter().map(part).collect::<Vec<_>>()
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

/// Everyone that was seen, and how often.
#[derive(Default)]
pub(crate) struct Known {
    places: BTreeMap<Culprit, usize>,
    culprits: Vec<Culprit>,
    events: Vec<u64>,
}

impl Known {
    /// Counts an event; its culprit's place.
    pub(crate) fn saw(&mut self, culprit: Culprit) -> usize {
        let place = *self.places.entry(culprit).or_insert_with_key(|culprit| {
            self.culprits.push(culprit.clone());
            self.events.push(0);
            self.culprits.len() - 1
        });
        self.events[place] += 1;
        place
    }

    /// Everyone, and how often each was seen.
    pub(crate) fn into_parts(self) -> (Vec<Culprit>, Vec<u64>) {
        (self.culprits, self.events)
    }
}

/// The events' clock on that of the gaps: two moments of both.
#[derive(Debug, Clone, Copy)]
struct Clock {
    begin: (i128, i128),
    end: (i128, i128),
}

impl Clock {
    fn of(pairs: [(Nanos, Nanos); 2]) -> Self {
        let [begin, end] =
            pairs.map(|(ours, theirs)| (ours.get().into(), theirs.get().into()));
        Self { begin, end }
    }

    /// A time of the events' clock, since the recording's beginning, in nanoseconds.
    fn since_beginning(self, time: Nanos) -> i128 {
        let (ours, theirs) = (self.end.0 - self.begin.0, self.end.1 - self.begin.1);
        let passed = i128::from(time.get()) - self.begin.1;
        if theirs <= 0 {
            return self.begin.0 + passed;
        }
        self.begin.0 + passed * ours / theirs
    }

    /// What lies between two times of the events' clock, counted from the loop's first
    /// reading; `None` where it ended before that. What began before is cut.
    fn span(self, (start, end): (u64, u64), first: Nanos) -> Option<Span> {
        let since_first = |time| {
            let since = self.since_beginning(Nanos::from_nanos(time));
            let since = (since - i128::from(first.get())).max(0);
            u64::try_from(since).unwrap_or(u64::MAX)
        };
        let (start, end) = (since_first(start), since_first(end));
        let length = end.checked_sub(start).filter(|length| *length > 0)?;
        Some(Span { start: Nanos::from_nanos(start), length: Nanos::from_nanos(length) })
    }

    fn doubts(self) -> Option<Doubt> {
        let (ours, theirs) = (self.end.0 - self.begin.0, self.end.1 - self.begin.1);
        let apart = (ours - theirs).unsigned_abs();
        if apart * 1_000_000 <= theirs.unsigned_abs() * u128::from(DRIFT_PPM) {
            return None;
        }
        let text = "the kernel steered its clock during the run: events may be blamed for \
                    their neighbours' gaps";
        Some(Doubt::new(Code::ClockDrift, text))
    }
}
