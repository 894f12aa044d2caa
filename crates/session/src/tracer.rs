//! Tracing during a measurement, and the attribution of its results.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use blame::{
    Feedback, MachineWatch, ProgramWatch, SwitchWatch, Threads, TypicalEdges, WakerWatch,
    Watcher,
};
use measure::{Control, Notice, Wait};
use recording::{
    Body, Code, Doubt, MomentKind, NoiseSeries, NoiseSpec, Recording, SlicesSpec, Source,
    Spec, Trigger, WakersSeries, WakersSpec,
};
use units::Nanos;

use crate::error::Error;
use crate::event::{Event, Observer, of_measurement};
use crate::plan::{Plan, Trace};

/// The duration of the busy loop before a program: 10 ticks of 100 Hz, and more of other rates.
const LOOP: Nanos = Nanos::from_millis(100);
/// The highest rate of switches of a CPU, reached by two threads that wake each other up.
const SWITCHES_PER_SECOND: u64 = 100_000;
/// How often delays of a watched program are reported, and after how many of these steps its threads that
/// have ended are removed from the kernel's tables.
const STEP: Nanos = Nanos::from_millis(250);
const STEPS: u64 = 4;
/// 256 MiB of them.
const SWITCHES_ALL: u64 = 1 << 24;

/// A trace of events that stays attached between the measurements of a program: attaching takes tens of
/// milliseconds, and the loop before the program 100 ms.
#[derive(Default)]
pub struct ReusedTrace(Option<Attached>);

impl ReusedTrace {
    /// Repeats the loop before the next measurement: settings have changed, which may change how long
    /// interruptions are outside of their tracepoints.
    pub fn forget_loop(&mut self) {
        if let Some(attached) = &mut self.0 {
            attached.edges = None;
        }
    }
}

/// A trace, and the edges of interruptions that were measured with it.
pub(crate) struct Attached {
    watcher: Watcher,
    edges: Option<TypicalEdges>,
}

/// An active trace.
pub(crate) enum Tracer {
    /// Nothing.
    Nothing,
    /// Events, and whether they are stored.
    Events(Attached, bool),
    /// Switches, or why they are not traced; and wake-ups.
    Switches(Result<SwitchWatch, String>, Option<Box<WakerWatch>>),
    /// Wake-ups, which are the measurement.
    Wakeups(Box<WakerWatch>, Wait),
    /// The threads of a program, which are the measurement.
    Program(Box<ProgramWatch>, Wait),
    /// All CPUs, which are the measurement; with the length of an interval.
    Machine(Box<MachineWatch>, Wait, Nanos),
}

impl Tracer {
    /// Begins to trace, or continues with the trace to reuse, if it is of the same CPUs; traces
    /// that were left behind are removed.
    pub(crate) fn open(
        plan: &Plan,
        reused: &mut ReusedTrace,
        observer: &mut dyn Observer,
    ) -> Result<Self, Error> {
        match (plan.trace, &plan.spec) {
            (_, Spec::Wakers(spec)) => {
                let wait = Wait::new(spec.duration_ns)?;
                let watch = WakerWatch::start(spec, &plan.facts)?;
                Ok(Self::Wakeups(Box::new(watch), wait))
            }
            (_, Spec::Watch(spec)) => {
                let wait = Wait::new(spec.duration_ns)?;
                let watch = ProgramWatch::start(spec, &plan.facts)?;
                Ok(Self::Program(Box::new(watch), wait))
            }
            (_, Spec::Top(spec)) => {
                let wait =
                    spec.duration_ns.map_or(Ok(Wait::until_stopped()), Wait::new)?;
                let watch = MachineWatch::start(spec, &plan.facts)?;
                Ok(Self::Machine(Box::new(watch), wait, spec.interval_ns))
            }
            (Trace::Events { source, threads, stores }, _) => {
                let reused = reused.0.take();
                match reused.filter(|reused| *reused.watcher.cpus() == plan.spec.cpus()) {
                    Some(reused) => Ok(Self::Events(reused, stores)),
                    None => events(plan, source, threads, stores, observer),
                }
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

    /// Measures, and attributes the result. Events continue to be traced until `reused` is dropped.
    pub(crate) fn measure(
        self,
        plan: &Plan,
        reused: &mut ReusedTrace,
        control: &Control,
        observer: &mut dyn Observer,
    ) -> Result<Recording, Error> {
        match self {
            Self::Nothing => {
                let mut recording = measure(plan, control, observer)?;
                let found = recording.body.moments().into_iter();
                recording.moments.found = found.map(|found| found.moment).collect();
                Ok(recording)
            }
            Self::Events(Attached { watcher, edges }, stores) => {
                let needs_loop = watcher.source() != Source::Proc && edges.is_none();
                let watching = watcher.begin_with(feedback(plan, control));
                let before = needs_loop.then(|| gaps_before(plan)).flatten();
                let measured = measure(plan, control, observer);
                let (events, watcher) = watching.pause();
                let edges = edges.or_else(|| Some(events.typical_edges(&before?)));
                let mut recording = measured?;
                let known = edges.clone().unwrap_or_default();
                events.blame_in(&mut recording, stores, &known);
                reused.0 = watcher.map(|watcher| Attached { watcher, edges });
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
            Self::Program(watch, wait) => {
                observer.event(Event::Started);
                let watched = watch_program(plan, watch, wait, control, observer);
                observer.event(Event::Finished);
                watched
            }
            Self::Machine(watch, wait, interval) => {
                observer.event(Event::Started);
                let watched =
                    watch_machine(plan, watch, (wait, interval), control, observer);
                observer.event(Event::Finished);
                watched
            }
        }
    }
}

/// Watches a program until the end, and reports the stored delays as they happen.
fn watch_program(
    plan: &Plan,
    mut watch: Box<ProgramWatch>,
    wait: Wait,
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<Recording, Error> {
    let mut failed = None;
    let mut steps = 0_u64;
    let whole = plan.spec.duration().unwrap_or(Nanos::MAX);
    let is_ended_early = wait.pass_in_steps(control, STEP, |passed| {
        let activity = "watching";
        observer.event(Event::Measurement(Notice::Progress { activity, passed, whole }));
        for delay in watch.next_delays() {
            observer.event(Event::Delay(&delay));
        }
        steps += 1;
        if steps % STEPS == 0 && failed.is_none() {
            failed = watch.update().err();
        }
    });
    match failed {
        Some(failed) => Err(failed.into()),
        None => Ok(watch.end(is_ended_early)?),
    }
}

/// Watches all CPUs until the end, and reports each interval.
fn watch_machine(
    plan: &Plan,
    mut watch: Box<MachineWatch>,
    (wait, interval): (Wait, Nanos),
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<Recording, Error> {
    let mut failed = None;
    let is_stopped = wait.pass_in_steps(control, interval, |passed| {
        let (activity, whole) = ("watching", plan.spec.duration().unwrap_or_default());
        observer.event(Event::Measurement(Notice::Progress { activity, passed, whole }));
        match watch.sample() {
            Ok(sample) => observer.event(Event::Interval(sample)),
            Err(why) => {
                failed = Some(why);
                control.stop.request();
            }
        }
    });
    match failed {
        Some(failed) => Err(failed.into()),
        // Without a duration, there is no other end.
        None => Ok(watch.end(is_stopped && plan.spec.duration().is_some())),
    }
}

/// What the measurement tells the reader of events if it has moments; a program also its interruptions
/// above the limit, which end it, or of which it keeps the worst.
fn feedback(plan: &Plan, control: &Control) -> Option<Feedback> {
    let (kind, trigger) = plan.spec.trigger()?;
    let worst = Arc::clone(&control.moments);
    let feedback = Feedback::new(move || worst.all());
    let Some(above) = trigger.stop_above_ns.filter(|_| kind == MomentKind::Interruption)
    else {
        return Some(feedback);
    };
    let (worst, stop) = (Arc::clone(&control.moments), control.stop.flag());
    Some(feedback.reporting(above, move |cpu, span| match trigger.keep {
        None => stop.store(true, Ordering::Relaxed),
        Some(_) => {
            worst.keep(cpu, span);
        }
    }))
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
        trigger: Trigger::default(),
        phases: None,
        at_scale: None,
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
    Ok(Tracer::Events(Attached { watcher, edges: None }, stores))
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
