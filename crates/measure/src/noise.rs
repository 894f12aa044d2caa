//! Noise: one pinned thread per CPU runs the busy loop, all at once, and records its gaps.
//!
//! The counter's frequency is measured over the whole run, from before the threads start until
//! after they end; lengths are converted to nanoseconds only then.

pub(crate) mod calibrate;
pub(crate) mod caller;

use std::sync::mpsc::channel;
use std::thread;

use facts::Facts;
use recording::{
    Code, CpuNoise, Doubt, Lost, NoiseSeries, NoiseSpec, Phases, ProcCounts,
};
use units::{Cpu, Nanos, Span, Tsc, TscDelta, TscHz};

use crate::clock::Clock;
use crate::control::moments::check_trigger;
use crate::control::observer::Watch;
use crate::doubts;
use crate::proc_counters::ProcCounters;
use crate::spinner::{self, Config, SpinResult, Spinner, Start};
use crate::time::counter::{self, Moment};
use crate::time::phase;
use crate::{Error, Kind, LoopCost, check_length, check_priority};

/// Capacity for that many gaps per second; a busy machine has a few thousand.
const GAPS_PER_SECOND: u64 = 20_000;
/// The smallest and the largest capacity for the gaps of one CPU (16 bytes each).
const GAPS_MIN: u64 = 1 << 16;
const GAPS_MAX: u64 = 1 << 22;
/// The capacity for the gaps of all CPUs together: 256 MiB.
const GAPS_ALL: u64 = 1 << 24;

/// Measures all requested CPUs at once.
pub(crate) fn run(
    spec: &NoiseSpec,
    facts: &Facts,
    watch: &mut Watch<'_>,
    doubts: &mut Vec<Doubt>,
) -> Result<NoiseSeries, Error> {
    refuse(spec, facts)?;
    let clock = Clock::calibrate()?;
    let part = NoiseSpec {
        duration_ns: spec.phases.map_or(spec.duration_ns, |p| p.share(spec.duration_ns)),
        ..spec.clone()
    };
    let (first, further) = spin_parts(&part, clock.estimate(), watch)?;
    let (hz, of_clock) = clock.finish(facts);
    doubts.extend(of_clock);
    let last = further.last().unwrap_or(&first);
    doubts.extend(last.after.doubts());
    let stopped = watch.control.stop.is_requested();
    for whole in std::iter::once(&first).chain(&further) {
        let more = doubts::of_spinners(&whole.results, &part, hz, facts, stopped);
        // A part may be too short while the whole is not.
        let is_of_whole = |doubt: &Doubt| {
            doubt.code != Code::TooShort || spec.duration_ns < doubts::BRIEF
        };
        for doubt in more.into_iter().filter(is_of_whole) {
            if !doubts.contains(&doubt) {
                doubts.push(doubt);
            }
        }
    }
    Ok(series(&first, &further, hz, facts))
}

/// Measures the requested number of parts, one after the other, each as long as `spec` says: the
/// first, and the others.
fn spin_parts(
    spec: &NoiseSpec,
    estimate: TscHz,
    watch: &mut Watch<'_>,
) -> Result<(RawRun, Vec<RawRun>), Error> {
    let Some(phases) = &spec.phases else {
        return Ok((spin_all(spec, None, estimate, watch)?, Vec::new()));
    };
    let first = spin_all(spec, Some((phases, 0)), estimate, watch)?;
    let mut further = Vec::new();
    for number in 1..phases.count {
        if watch.control.stop.is_requested() {
            break;
        }
        further.push(spin_all(spec, Some((phases, number)), estimate, watch)?);
    }
    Ok((first, further))
}

/// The series if no CPU is measured.
pub(crate) fn none() -> Result<NoiseSeries, Error> {
    let clock = Clock::calibrate()?;
    Ok(NoiseSeries {
        clock: counter::NAME.to_owned(),
        clock_hz: clock.estimate(),
        began_raw_ns: clock.began(),
        monotonic: None,
        source: None,
        threshold_ns: Nanos::ZERO,
        cpus: Vec::new(),
    })
}

/// Pins a thread to each CPU, starts them together and waits until all have ended.
fn spin_all(
    spec: &NoiseSpec,
    phase: Option<(&Phases, u32)>,
    estimate: TscHz,
    watch: &mut Watch<'_>,
) -> Result<RawRun, Error> {
    let control = watch.control;
    thread::scope(|scope| {
        let (done, finished) = channel();
        let seated = spec
            .cpus
            .iter()
            .map(|cpu| spinner::seat(scope, place(spec, cpu), control, done.clone()));
        let spinners = seated.collect::<Result<Vec<_>, _>>()?;
        // Only the threads hold a sender now, so that the wait ends even if all of them die.
        drop(done);
        let ordinary = spinners.iter().map(|spinner| spinner.ready);
        let threshold = threshold(spec, ordinary, estimate);
        if let Some((phases, number)) = phase {
            phase::wait(phases, number);
        }
        let before = ProcCounters::now();
        let began = Moment::now();
        let steered = counter::read_with(libc::CLOCK_MONOTONIC);
        let end = began.tsc.plus(estimate.ticks(spec.duration_ns));
        let above = spec.trigger.stop_above_ns;
        let limit = above.map(|longest| (estimate.ticks(longest), estimate));
        let start = Start { end, threshold, limit };
        spinners.iter().for_each(|spinner| spinner.start(start));
        let whole = Span { start: began.raw, length: spec.duration_ns };
        watch.until_all("spinning", &finished, spinners.len(), whole);
        let results =
            spinners.into_iter().map(Spinner::join).collect::<Result<_, _>>()?;
        let steered = [steered, counter::read_with(libc::CLOCK_MONOTONIC)];
        let after = ProcCounters::now();
        Ok(RawRun { threshold, before, after, began, steered, results })
    })
}

/// The raw data of one part, in ticks of the counter.
struct RawRun {
    threshold: TscDelta,
    before: ProcCounters,
    after: ProcCounters,
    began: Moment,
    /// The counter and `CLOCK_MONOTONIC` at the beginning and at the end.
    steered: [(Tsc, Nanos); 2],
    results: Vec<SpinResult>,
}

/// The data of all parts together, in nanoseconds.
fn series(first: &RawRun, further: &[RawRun], hz: TscHz, facts: &Facts) -> NoiseSeries {
    let began = first.began;
    let last = further.last().unwrap_or(first);
    let steered = [first.steered[0], last.steered[1]];
    let of_part = |part: &RawRun, result: &SpinResult| {
        let proc = part.after.since(&part.before, result.cpu, facts);
        cpu_noise(result, hz, began, proc)
    };
    let cpus = first.results.iter().enumerate().map(|(place, result)| {
        let later =
            further.iter().filter_map(|part| Some((part, part.results.get(place)?)));
        let later = later.map(|(part, result)| of_part(part, result));
        later.fold(of_part(first, result), and_then)
    });
    NoiseSeries {
        clock: counter::NAME.to_owned(),
        clock_hz: hz,
        began_raw_ns: began.raw,
        monotonic: Some(steered.map(|(tsc, time)| (hz.span(tsc.since(began.tsc)), time))),
        source: None,
        threshold_ns: hz.span(first.threshold),
        cpus: cpus.collect(),
    }
}

/// Appends one more part to the data of one CPU.
fn and_then(mut noise: CpuNoise, part: CpuNoise) -> CpuNoise {
    let shift = part.began_ns.saturating_sub(noise.began_ns);
    if noise.phases.is_empty() {
        noise.phases.push(Span { start: Nanos::ZERO, length: noise.elapsed_ns });
    }
    noise.phases.push(Span { start: shift, length: part.elapsed_ns });
    noise.gaps.extend(
        part.gaps.iter().map(|gap| Span { start: gap.start + shift, length: gap.length }),
    );
    noise.lost = match (noise.lost, part.lost) {
        (Some(a), Some(b)) => Some(Lost {
            since_ns: a.since_ns,
            gaps: a.gaps + b.gaps,
            ns: a.ns + b.ns,
            max_ns: a.max_ns.max(b.max_ns),
        }),
        (a, b) => a.or(b.map(|b| Lost { since_ns: b.since_ns + shift, ..b })),
    };
    noise.proc.add(part.proc);
    noise.elapsed_ns = noise.elapsed_ns + part.elapsed_ns;
    noise.passes += part.passes;
    noise.backwards += part.backwards;
    noise
}

pub(crate) fn cpu_noise(
    result: &SpinResult,
    hz: TscHz,
    began: Moment,
    counted: ProcCounts,
) -> CpuNoise {
    let (spun, pass) = (result.spun, result.ordinary.pass);
    let offset = spun.first.since(began.tsc);
    let gap = |delta: TscDelta| hz.span(delta.saturating_sub(pass));
    let gaps = result.ring.passes().iter().map(|long| Span {
        start: hz.span(long.last.since(spun.first)),
        length: gap(long.delta),
    });
    let lost = result.ring.overflow().map(|overflow| {
        let ordinary = pass.ticks().saturating_mul(overflow.passes);
        Lost {
            since_ns: hz.span(overflow.first.last.since(spun.first)),
            gaps: overflow.passes,
            ns: hz.span(overflow.sum.saturating_sub(TscDelta::from_ticks(ordinary))),
            max_ns: gap(overflow.longest),
        }
    });
    CpuNoise {
        cpu: result.cpu,
        // Counters of different CPUs may differ a little.
        began_ns: if offset.is_backwards() { Nanos::ZERO } else { hz.span(offset) },
        elapsed_ns: hz.span(spun.elapsed),
        phases: Vec::new(),
        loop_ns: hz.span(pass),
        passes: spun.passes,
        gaps: gaps.collect(),
        lost,
        blamed: None,
        backwards: spun.backwards,
        proc: ProcCounts {
            preempted: result.proc.preempted,
            waited_ns: result.proc.waited_ns,
            ..counted
        },
    }
}

/// Refuses an invalid specification, and one that would leave the machine no CPU time.
pub(crate) fn refuse(spec: &NoiseSpec, facts: &Facts) -> Result<(), Error> {
    check_length("the duration", spec.duration_ns)?;
    if spec.cpus.is_empty() {
        return Err(Error::new(Kind::Spec, "no CPU to measure"));
    }
    let shorter = |threshold: Nanos| !threshold.is_zero() && threshold < spec.duration_ns;
    if spec.threshold_ns.is_some_and(|threshold| !shorter(threshold)) {
        let text = "the threshold must be greater than 0 and shorter than the duration";
        return Err(Error::new(Kind::Spec, text));
    }
    check_trigger("gap", spec.trigger)?;
    check_priority(spec.fifo, &spec.cpus, facts)
}

pub(crate) fn place(spec: &NoiseSpec, cpu: Cpu) -> Config {
    let seconds = spec.duration_ns.get() / 1_000_000_000 + 1;
    let wanted = (seconds * GAPS_PER_SECOND).clamp(GAPS_MIN, GAPS_MAX);
    let share = GAPS_ALL / u64::try_from(spec.cpus.len()).unwrap_or(1).max(1);
    let capacity = usize::try_from(wanted.min(share)).unwrap_or(0);
    Config { cpu, fifo: spec.fifo, capacity }
}

/// The requested threshold, at least one tick of the counter; else the longest that any of the CPUs
/// needs.
pub(crate) fn threshold(
    spec: &NoiseSpec,
    ordinary: impl Iterator<Item = LoopCost>,
    hz: TscHz,
) -> TscDelta {
    let own = ordinary.map(LoopCost::threshold).max();
    let shortest = TscDelta::from_ticks(1);
    let asked = spec.threshold_ns.map(|asked| hz.ticks(asked).max(shortest));
    asked.or(own).unwrap_or(shortest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::moments::OnMoment;
    use crate::spin::{Ring, spin};
    use recording::Code;
    use std::sync::atomic::AtomicBool;

    fn spec() -> NoiseSpec {
        NoiseSpec {
            cpus: "0".parse().unwrap(),
            duration_ns: Nanos::from_millis(50),
            threshold_ns: None,
            fifo: None,
            trigger: recording::Trigger::default(),
            phases: None,
            at_scale: None,
        }
    }

    /// Check that a run with a full ring retains its gaps, reports where the rest began and its
    /// length, and has a doubt.
    #[test]
    fn full_rings_are_told() {
        let hz = TscHz::new(1_000_000_000).unwrap();
        let began = Moment::now();
        let mut ring = Ring::new(3);
        let ordinary =
            LoopCost { pass: TscDelta::from_ticks(1), step: TscDelta::from_ticks(1) };
        let length = TscDelta::from_ticks(1_000_000);
        let spun = spin(
            length,
            TscDelta::default(),
            OnMoment::stopping(&AtomicBool::new(false)),
            &mut ring,
        );
        let proc = ProcCounts::default();
        let result =
            SpinResult { cpu: Cpu::new(0), ordinary, spun, ring, proc, ended_on: None };

        let noise = cpu_noise(&result, hz, began, ProcCounts::default());
        let lost = noise.lost.unwrap();
        assert_eq!(noise.gaps.len(), 3);
        assert_eq!(
            lost.since_ns,
            noise.gaps[2].start + noise.gaps[2].length + hz.span(ordinary.pass)
        );
        let kept: Nanos = noise.gaps.iter().map(|gap| gap.length).sum();
        let passes = hz.span(TscDelta::from_ticks(lost.gaps + 3));
        assert_eq!(kept + lost.ns + passes, noise.elapsed_ns);

        let facts = serde_json::from_str(r#"{"sources": {}, "unknown": {}}"#).unwrap();
        let doubts = doubts::of_spinners(&[result], &spec(), hz, &facts, true);
        assert!(doubts.iter().any(|doubt| doubt.code == Code::GapsLost), "{doubts:?}");
    }

    /// Check that invalid specifications are refused before anything runs.
    #[test]
    fn nonsense_is_refused() {
        let facts = serde_json::from_str(r#"{"sources": {}, "unknown": {}}"#).unwrap();
        let refused = |change: fn(&mut NoiseSpec)| {
            let mut spec = spec();
            change(&mut spec);
            refuse(&spec, &facts).is_err_and(|error| error.kind() == Kind::Spec)
        };
        assert!(refused(|spec| spec.duration_ns = Nanos::ZERO));
        assert!(refused(|spec| spec.duration_ns = Nanos::MAX));
        assert!(refused(|spec| spec.cpus = units::CpuSet::empty()));
        assert!(refused(|spec| spec.threshold_ns = Some(Nanos::ZERO)));
        assert!(refused(|spec| spec.threshold_ns = Some(spec.duration_ns)));
        assert!(refused(|spec| spec.fifo = Some(0)));
        assert!(refused(|spec| spec.fifo = Some(100)));
        assert!(!refused(|_| {}));
    }
}
