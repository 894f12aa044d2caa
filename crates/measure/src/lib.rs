//! The timed loops, and [`run`]: the only source of live recordings, except those that the kernel
//! counts itself (`blame::WakerWatch`).
//!
//! ```text
//! Spec + Facts ──▶ run ──▶ Recording
//! ```
//!
//! The same code runs on the host, as the only process of a guest, and behind the C ABI
//! ([`caller_gaps`], which makes no recording). It measures and does not attribute: the cause of a
//! gap is not known here.

mod calls;
mod check;
mod clock;
mod control;
mod doubts;
mod energy;
mod error;
mod guests;
mod hardware;
mod jitter;
mod latency;
mod nohz;
mod noise;
mod proc_counters;
mod program;
mod run;
mod slices;
pub mod spin;
mod spinner;
mod threads;
mod ticks;
mod time;

pub use control::moments::{OnMoment, WorstMoments};
pub use control::observer::{Control, Listener, Notice, ignore};
pub use control::relay::{Received, Relay};
pub use control::stop::Stop;
pub use control::wait::Wait;
pub use error::{Error, Kind};
pub use jitter::{test_loop, work};
pub use noise::calibrate::LoopCost;
pub use noise::caller::{CallerGaps, caller_gaps};
pub use program::readiness;
pub use run::ended;
pub use time::{counter, mark};

use facts::{ExtState, Facts, Root, Throttling};
use isolate::AvoidedCpus;
use recording::{Body, Code, Doubt, MomentKind, Recording, Spec, WakersSpec, WatchSpec};
use units::{CpuSet, Nanos};

use crate::control::hotplug::Hotplug;
use crate::control::observer::Watch;
use crate::control::watchdog::Watchdog;
use crate::hardware::HardwareMeter;

/// The shortest useful measurement.
const SHORTEST: Nanos = Nanos::from_millis(1);
/// The longest: 30 days. A longer one is a typing error.
const LONGEST: Nanos = Nanos::from_secs(30 * 24 * 3600);
/// How long a measurement may exceed its duration before starved threads are moved.
const OVERTIME: Nanos = Nanos::from_secs(2);

/// Validates a specification as far as it and the facts allow, before a CPU is claimed or a setting
/// is changed for it.
///
/// # Errors
/// Those of [`run`] that can be detected in advance; `Kind::Spec` before all others.
pub fn refuse(spec: &Spec, facts: &Facts) -> Result<(), Error> {
    match spec {
        Spec::Noise(spec) => noise::refuse(spec, facts),
        Spec::Ticks(spec) => ticks::refuse(spec),
        Spec::Check(spec) => check::refuse(spec, facts),
        Spec::Calls(spec) => calls::refuse(spec, facts),
        Spec::Jitter(spec) => jitter::refuse(spec, facts),
        Spec::NohzTest(spec) | Spec::NohzStress(spec) => nohz::refuse(spec, facts),
        Spec::Latency(spec) => latency::refuse(spec, facts),
        Spec::Slices(spec) => slices::refuse(spec, facts),
        Spec::Wakers(WakersSpec { duration_ns, .. })
        | Spec::Watch(WatchSpec { duration_ns, .. }) => {
            check_length("the duration", *duration_ns)
        }
        Spec::Top(spec) => {
            check_length("the interval", spec.interval_ns)?;
            spec.duration_ns
                .map_or(Ok(()), |duration| check_length("the duration", duration))
        }
        Spec::Guests(spec) => guests::refuse(spec),
        Spec::Run(spec) => run::refuse(spec),
        Spec::Program(spec) => program::refuse(spec),
        Spec::Imported(_) | Spec::Benchmarks(_) => Err(of_another_tool()),
        Spec::Scale(_) => Err(simulated()),
    }
}

/// Refuses CPUs that a real-time task occupies, so that the threads of this measurement would not
/// run there. Takes up to 1.2 s if there is such a task.
///
/// # Errors
/// `Kind::Isolate(Taken)`, with the task.
pub fn refuse_occupied(spec: &Spec) -> Result<(), Error> {
    let cpus = pinned(spec);
    // Processes with several allowed CPUs run on those that are free.
    let is_bound = !matches!(spec, Spec::Slices(spec) if !spec.pinned && cpus.len() > 1);
    if is_bound {
        isolate::refuse_occupied(&cpus, spec.fifo())?;
    }
    Ok(())
}

/// The CPUs that a measurement's threads are pinned to.
fn pinned(spec: &Spec) -> CpuSet {
    match spec {
        Spec::Ticks(_)
        | Spec::Run(_)
        | Spec::Wakers(_)
        | Spec::Watch(_)
        | Spec::Top(_)
        | Spec::Guests(_)
        | Spec::Program(_)
        | Spec::Scale(_)
        | Spec::Benchmarks(_)
        | Spec::Imported(_) => CpuSet::empty(),
        Spec::Noise(_)
        | Spec::Check(_)
        | Spec::Calls(_)
        | Spec::Latency(_)
        | Spec::NohzTest(_)
        | Spec::NohzStress(_)
        | Spec::Jitter(_)
        | Spec::Slices(_) => spec.cpus(),
    }
}

/// The upper limit of a measurement's duration, if known in advance.
fn max_duration(spec: &Spec) -> Option<Nanos> {
    match spec {
        Spec::Latency(spec) => Some(spec.duration_ns + spec.interval_ns),
        Spec::Jitter(spec) => jitter::max_duration(spec),
        Spec::NohzTest(spec) => Some(nohz::max_duration(spec)),
        Spec::Noise(_) | Spec::Check(_) => spec.duration(),
        // Its thread may be moved once this is over, even if its processes took long to start.
        Spec::Slices(_) => spec.duration(),
        Spec::Ticks(_)
        | Spec::Calls(_)
        | Spec::NohzStress(_)
        | Spec::Run(_)
        | Spec::Program(_)
        | Spec::Scale(_)
        | Spec::Benchmarks(_)
        | Spec::Imported(_)
        | Spec::Guests(_)
        | Spec::Wakers(_)
        | Spec::Watch(_)
        | Spec::Top(_) => None,
    }
}

/// Runs the measurement that `spec` describes, and reports to `listener`. The stop request
/// of `control` ends it early; the recording then covers the time until that, with a doubt.
///
/// ```
/// use measure::Control;
/// use recording::Spec;
/// use units::Nanos;
///
/// let facts = facts::Facts::read(&facts::Root::live());
/// let cpus = facts.cpus.allowed.get().ok_or("unknown CPUs")?;
/// let spec = Spec::Ticks(recording::TicksSpec {
///     cpus: cpus.clone(),
///     interval_ns: Nanos::from_millis(10),
///     count: Some(1),
/// });
/// let recording = measure::run(&spec, &facts, &Control::new()?, &mut measure::ignore)?;
/// assert!(matches!(recording.body, recording::Body::Ticks { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `Kind::Spec` for an invalid specification, `Kind::Isolate` for a CPU or a privilege that is not
/// available, `Kind::NoProgram` and `Kind::NotExecutable` for a program that cannot be executed,
/// `Kind::System` if a system call fails.
pub fn run(
    spec: &Spec,
    facts: &Facts,
    control: &Control,
    listener: &mut Listener<'_>,
) -> Result<Recording, Error> {
    let mut doubts = Vec::new();
    let watch = &mut Watch { control, listener };
    // Settings may have been changed for the measurement since the facts were read.
    let changed = || facts.clone().with_sched_of(&Root::live());
    let changed = control.has_neighbours.then(changed);
    let facts = changed.as_ref().unwrap_or(facts);
    // The CPUs of a guest stay online.
    let is_on_host = control.has_neighbours || matches!(spec, Spec::Run(_));
    let hotplug = is_on_host.then(Hotplug::start);
    // A guest has no quotas, and its exact cells depend on what is read.
    let throttling = || Throttling::now(&Root::live());
    let throttled = is_on_host.then(throttling).unwrap_or_default();
    if let Some((_, trigger)) = spec.trigger() {
        control.moments.prepare(&spec.cpus(), trigger);
    }
    let meter = is_on_host.then(|| hardware_meter(spec, facts)).flatten();
    let body = match control.has_neighbours {
        true => measure_with_watchdog(spec, facts, watch, &mut doubts)?,
        false => measure(spec, facts, watch, &mut doubts)?,
    };
    let hardware = meter.map(HardwareMeter::end);
    let offline = hotplug.map(|hotplug| hotplug.end(&spec.cpus())).unwrap_or_default();
    doubts::replace_suspicions(&mut doubts, &offline);
    if !throttled.is_empty() {
        doubts.extend(doubts::of_quota(&throttled, &throttling(), facts));
    }
    doubts.extend(hardware.iter().flat_map(hardware::of_hardware));
    doubts.extend(omitted_cpus(spec, facts));
    let schedulers = [ExtState::of(&facts.sched), ExtState::now(&Root::live())];
    doubts.extend(doubts::of_scheduler(schedulers));
    if control.stop.is_requested() {
        doubts.push(ended_early(spec));
    }
    Ok(Recording { hardware, ..Recording::now(facts.clone(), body, doubts) })
}

/// Counts what slows down the CPUs of a measurement whose result depends on it.
fn hardware_meter(spec: &Spec, facts: &Facts) -> Option<HardwareMeter> {
    let is_busy = match spec {
        Spec::Noise(_) | Spec::Jitter(_) => true,
        Spec::Check(_) | Spec::Latency(_) | Spec::Run(_) => false,
        Spec::Ticks(_)
        | Spec::Calls(_)
        | Spec::NohzTest(_)
        | Spec::NohzStress(_)
        | Spec::Slices(_)
        | Spec::Wakers(_)
        | Spec::Watch(_)
        | Spec::Top(_)
        | Spec::Guests(_)
        | Spec::Program(_)
        | Spec::Scale(_)
        | Spec::Benchmarks(_)
        | Spec::Imported(_) => return None,
    };
    Some(HardwareMeter::start(&spec.cpus(), is_busy, facts))
}

/// Measures on a machine with other tasks: the calling thread leaves the measured CPUs if there is
/// another one, and threads that a real-time task prevents from ending are moved.
fn measure_with_watchdog(
    spec: &Spec,
    facts: &Facts,
    watch: &mut Watch<'_>,
    doubts: &mut Vec<Doubt>,
) -> Result<Body, Error> {
    let whole = isolate::allowed()?;
    let _elsewhere = AvoidedCpus::new(pinned(spec));
    let length = max_duration(spec).map(|length| length + OVERTIME);
    let watchdog = Watchdog::start(whole, length, watch.control.stop.clone())?;
    let body = measure(spec, facts, watch, doubts)?;
    let starved = watchdog.end();
    if !starved.is_empty() {
        // noisefloor moved them; the other doubt blames something else.
        doubts.retain(|doubt| doubt.code != Code::Migrated);
        doubts.extend(starved);
    }
    Ok(body)
}

fn measure(
    spec: &Spec,
    facts: &Facts,
    watch: &mut Watch<'_>,
    doubts: &mut Vec<Doubt>,
) -> Result<Body, Error> {
    Ok(match spec.clone() {
        Spec::Noise(spec) => {
            Body::Noise { series: noise::run(&spec, facts, watch, doubts)?, spec }
        }
        Spec::Ticks(spec) => {
            Body::Ticks { series: ticks::run(&spec, watch, doubts)?, spec }
        }
        Spec::Check(spec) => {
            Body::Check { series: check::run(&spec, facts, watch, doubts)?, spec }
        }
        Spec::Calls(spec) => {
            Body::Calls { series: calls::run(&spec, facts, watch, doubts)?, spec }
        }
        Spec::NohzTest(spec) => {
            Body::NohzTest { series: nohz::run(&spec, facts, watch, doubts)?, spec }
        }
        Spec::NohzStress(spec) => {
            Body::NohzStress { series: nohz::run(&spec, facts, watch, doubts)?, spec }
        }
        Spec::Jitter(spec) => {
            Body::Jitter { series: jitter::run(&spec, facts, watch, doubts)?, spec }
        }
        Spec::Latency(spec) => {
            Body::Latency { series: latency::run(&spec, facts, watch, doubts)?, spec }
        }
        Spec::Run(spec) => {
            Body::Run { series: run::run(&spec, facts, watch, doubts)?, spec }
        }
        Spec::Slices(spec) => {
            Body::Slices { series: slices::run(&spec, facts, watch, doubts)?, spec }
        }
        Spec::Guests(spec) => {
            Body::Guests { series: guests::run(&spec, facts, watch, doubts)?, spec }
        }
        Spec::Program(spec) => {
            Body::Program { series: program::run(&spec, watch)?, spec }
        }
        Spec::Wakers(_) | Spec::Watch(_) | Spec::Top(_) => {
            let text = "these sums are made in the kernel (blame::WakerWatch and others), \
                        not by a loop";
            return Err(Error::new(Kind::Spec, text));
        }
        Spec::Imported(_) | Spec::Benchmarks(_) => return Err(of_another_tool()),
        Spec::Scale(_) => return Err(simulated()),
    })
}

fn of_another_tool() -> Error {
    Error::new(Kind::Spec, "a measurement of another tool can be read, not run")
}

fn simulated() -> Error {
    Error::new(Kind::Spec, "noise at scale is simulated (sim::ranks), not measured")
}

fn ended_early(spec: &Spec) -> Doubt {
    let stopping = spec.trigger().filter(|(_, trigger)| trigger.keep.is_none());
    let by = match stopping.map(|(kind, _)| kind) {
        Some(MomentKind::Gap) => ", by a gap above the limit or a stop request",
        Some(MomentKind::Wakeup) => ", by a wake-up above the limit or a stop request",
        Some(MomentKind::Loop) => ", by a test above the limit or a stop request",
        Some(MomentKind::Interruption) => ", by an interruption above the limit",
        Some(MomentKind::Other) | None => "",
    };
    Doubt::ended_early(by)
}

/// A doubt about online CPUs that were neither named nor measured.
fn omitted_cpus(spec: &Spec, facts: &Facts) -> Option<Doubt> {
    let is_of_all = matches!(spec, Spec::Noise(_) | Spec::Check(_) | Spec::Latency(_));
    let used = is_of_all.then(|| spec.cpus())?;
    let (online, allowed) = (facts.cpus.online.get()?, facts.cpus.allowed.get()?);
    let without = online.without(allowed);
    if without.is_empty() || used != online.and(allowed) {
        return None;
    }
    let apart = without.without(&facts.set_apart()).is_empty();
    let why = if apart {
        "isolated, and therefore not measured; isolated CPUs are measured only when listed \
         with -c"
    } else {
        "outside this process's affinity or cpuset, and therefore not measured"
    };
    Some(Doubt::new(Code::CpusLeftOut, format!("{}: {why}", doubts::label(&without))))
}

/// Refuses an invalid `SCHED_FIFO` priority, and one on so many CPUs that no CPU time is left for
/// the rest of the machine.
fn check_priority(fifo: Option<u8>, cpus: &CpuSet, facts: &Facts) -> Result<(), Error> {
    match fifo {
        None => Ok(()),
        Some(1..=99) => isolate::require_ordinary_share(cpus, facts).map_err(Error::from),
        Some(_) => Err(Error::new(Kind::Spec, "SCHED_FIFO priorities are 1 to 99")),
    }
}

/// Refuses a duration outside the supported range.
fn check_length(what: &str, length: Nanos) -> Result<(), Error> {
    if (SHORTEST..=LONGEST).contains(&length) {
        return Ok(());
    }
    let text = format!("{what} must be between 1 ms and 30 days");
    Err(Error::new(Kind::Spec, text))
}
