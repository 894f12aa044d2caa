//! Tracing during a measurement, and the attribution of its results.

use blame::{SwitchWatch, Threads, WakerWatch, Watcher};
use measure::{Control, Wait};
use recording::{
    Body, Code, Doubt, NoiseSeries, NoiseSpec, Recording, SlicesSpec, Source, Spec,
    WakersSeries, WakersSpec,
};
use units::Nanos;

use crate::error::Error;
use crate::event::{Event, Observer, of_measurement};
use crate::plan::{Plan, Trace};

/// The duration of the busy loop before a program: 10 ticks of 100 Hz, and more of other rates.
const LOOP: Nanos = Nanos::from_millis(100);
/// The highest rate of switches of a CPU, reached by two threads that wake each other up.
const SWITCHES_PER_SECOND: u64 = 100_000;
/// 256 MiB of them.
const SWITCHES_ALL: u64 = 1 << 24;

/// An active trace.
pub(crate) enum Tracer {
    /// Nothing.
    Nothing,
    /// Events, and whether they are stored.
    Events(Watcher, bool),
    /// Switches, or why they are not traced; and wake-ups.
    Switches(Result<SwitchWatch, String>, Option<Box<WakerWatch>>),
    /// Wake-ups, which are the measurement.
    Wakeups(Box<WakerWatch>, Wait),
}

impl Tracer {
    /// Begins to trace; traces that were left behind are removed.
    pub(crate) fn open(plan: &Plan, observer: &mut dyn Observer) -> Result<Self, Error> {
        match (plan.trace, &plan.spec) {
            (_, Spec::Wakers(spec)) => {
                let wait = Wait::new(spec.duration_ns)?;
                let watch = WakerWatch::start(spec, &plan.facts)?;
                Ok(Self::Wakeups(Box::new(watch), wait))
            }
            (Trace::Events { source, threads, stores }, _) => {
                events(plan, source, threads, stores, observer)
            }
            (Trace::Switches, Spec::Slices(spec)) => Ok(switches(plan, spec)),
            (Trace::NoSwitches, Spec::Slices(_)) => {
                Ok(Self::Switches(Err("disabled by option".to_owned()), None))
            }
            (Trace::Nothing | Trace::Switches | Trace::NoSwitches, _) => {
                Ok(Self::Nothing)
            }
        }
    }

    /// Measures, and attributes the result.
    pub(crate) fn measure(
        self,
        plan: &Plan,
        control: &Control,
        observer: &mut dyn Observer,
    ) -> Result<Recording, Error> {
        match self {
            Self::Nothing => Ok(measure(plan, control, observer)?),
            Self::Events(watcher, stores) => {
                let has_events = watcher.source() != Source::Proc;
                let watching = watcher.begin();
                let before = has_events.then(|| gaps_before(plan)).flatten();
                let measured = measure(plan, control, observer);
                let events = watching.end();
                let mut recording = measured?;
                events.blame_in(&mut recording, stores, before.as_ref());
                Ok(recording)
            }
            Self::Switches(switches, wakers) => {
                let measured = measure(plan, control, observer);
                let wakers = wakers.and_then(wakers_series);
                let mut recording = measured?;
                add_switches(&mut recording, switches, wakers)?;
                Ok(recording)
            }
            Self::Wakeups(watch, wait) => {
                observer.event(Event::Started);
                let activity = "counting wake-ups";
                let is_ended_early =
                    wait.pass(control, &mut of_measurement(observer), activity);
                observer.event(Event::Finished);
                Ok(watch.end(is_ended_early)?)
            }
        }
    }
}

fn measure(
    plan: &Plan,
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<Recording, measure::Error> {
    observer.event(Event::Started);
    let Plan { spec, facts, .. } = plan;
    let measured = measure::run(spec, facts, control, &mut of_measurement(observer));
    observer.event(Event::Finished);
    measured
}

/// The gaps of a short busy loop on the CPU of a program, before that is started: they show how long
/// interruptions are outside of their tracepoints.
fn gaps_before(plan: &Plan) -> Option<NoiseSeries> {
    let Spec::Run(run) = &plan.spec else { return None };
    let spec = NoiseSpec {
        cpus: run.cpus.first()?.into(),
        duration_ns: LOOP,
        threshold_ns: None,
        fifo: None,
        stop_above_ns: None,
        phases: None,
    };
    let control = Control::new().ok()?;
    let looped =
        measure::run(&Spec::Noise(spec), &plan.facts, &control, &mut measure::ignore);
    let Body::Noise { series, .. } = looped.ok()?.body else { return None };
    Some(series)
}

fn events(
    plan: &Plan,
    source: Option<Source>,
    threads: Threads,
    stores: bool,
    observer: &mut dyn Observer,
) -> Result<Tracer, Error> {
    let watcher = Watcher::open_for(&plan.spec.cpus(), source, threads, &plan.facts);
    let watcher = watcher.map_err(Error::Trace)?;
    for folder in watcher.removed() {
        observer.event(Event::TraceLeftBehind(folder));
    }
    if stores && watcher.source() == Source::Proc {
        return Err(no_events(watcher.why_not()));
    }
    Ok(Tracer::Events(watcher, stores))
}

fn no_events(why: &[blame::Error]) -> Error {
    let why: Vec<String> = why.iter().map(|why| units::chain(why)).collect();
    Error::NoEvents(match why.is_empty() {
        true => "/proc has totals only".to_owned(),
        false => why.join("; "),
    })
}

fn switches(plan: &Plan, spec: &SlicesSpec) -> Tracer {
    let switches = SwitchWatch::start(&spec.cpus, capacity(spec), &plan.facts);
    let wakers = WakersSpec {
        cpus: Some(spec.cpus.clone()),
        duration_ns: spec.duration_ns,
        top: u32::MAX,
        process: None,
    };
    let wakers = WakerWatch::start(&wakers, &plan.facts).ok().map(Box::new);
    Tracer::Switches(switches.map_err(|why| units::chain(&why)), wakers)
}

/// The capacity for switches of each CPU: more than are expected, with a limit on the memory of all
/// CPUs together.
fn capacity(spec: &SlicesSpec) -> u32 {
    let steps = u64::try_from(spec.steps.len() + 1).unwrap_or(1);
    let seconds = spec.duration_ns.get() / 1_000_000_000 + 1;
    let expected = seconds.saturating_mul(steps).saturating_mul(SWITCHES_PER_SECOND);
    let share = SWITCHES_ALL / u64::try_from(spec.cpus.len()).unwrap_or(1).max(1);
    u32::try_from(expected.min(share).max(1)).unwrap_or(u32::MAX)
}

fn wakers_series(watch: Box<WakerWatch>) -> Option<WakersSeries> {
    let Body::Wakers { series, .. } = watch.end(false).ok()?.body else { return None };
    Some(series)
}

/// Adds the traced switches; a doubt if there are none.
fn add_switches(
    recording: &mut Recording,
    switches: Result<SwitchWatch, String>,
    wakers: Option<WakersSeries>,
) -> Result<(), Error> {
    let Body::Slices { series, .. } = &mut recording.body else { return Ok(()) };
    match switches {
        Ok(watch) => {
            let (switches, doubts) = watch.end(series.began_ns)?;
            series.switches = Some(switches);
            series.wakers = wakers;
            recording.doubts.extend(doubts);
        }
        Err(why) => {
            let text = format!("scheduler switches were not traced: {why}");
            recording.doubts.push(Doubt::new(Code::Untraced, text));
        }
    }
    Ok(())
}
