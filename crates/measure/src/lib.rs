//! The loops, and [`run`]: the one entry that every live recording comes from, but for those
//! that the kernel counts for itself (`blame::WakerWatch`).
//!
//! ```text
//! Spec + Facts ──▶ run ──▶ Recording
//! ```
//!
//! The same code runs on the host, as the only process of a guest, and behind the C
//! ABI ([`caller_gaps`], which makes no recording). It measures and does not explain: what took a gap is not known here.

mod calls;
mod check;
mod clock;
pub mod counter;
mod doubts;
mod error;
mod jitter;
pub mod jitter_loop;
mod latency;
mod library;
pub mod mark;
mod meanwhile;
mod memory;
mod nohz;
mod noise;
mod observer;
mod phase;
mod relay;
mod run;
mod slices;
pub mod spin;
mod spinner;
mod stop;
mod thread;
mod ticks;
mod timespec;
mod wait;
mod watchdog;
pub mod work;
mod worker;

pub use error::{Error, Kind};
pub use noise::calibrate::Ordinary;
pub use noise::caller::{CallerGaps, caller_gaps};
pub use observer::{Control, Event, Observer, Silent};
pub use relay::Relay;
pub use stop::Stop;
pub use wait::Wait;

use facts::{Facts, Root};
use isolate::AvoidedCpus;
use recording::{Body, Code, Doubt, NoiseSpec, Recording, Spec};
use units::{CpuSet, Nanos};

use crate::observer::Watch;
use crate::watchdog::Watchdog;

/// The shortest measurement that says anything.
const SHORTEST: Nanos = Nanos::from_millis(1);
/// The longest: 30 days. What is longer is a typing error.
const LONGEST: Nanos = Nanos::from_secs(30 * 24 * 3600);
/// So much more time has a measurement until its threads are looked after.
const OVERTIME: Nanos = Nanos::from_secs(2);

/// Refuses what [`run`] would refuse, as far as the question itself and the facts show it: before
/// a CPU is claimed or a setting changed for it.
///
/// # Errors
/// As [`run`], as far as that shows beforehand; `Kind::Spec` goes before all others.
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
        Spec::Wakers(spec) => sensible("the duration", spec.duration_ns),
        // Whether a program can be run shows when it is.
        Spec::Run(_) => Ok(()),
    }
}

/// Refuses CPUs that a real-time task does not leave, so that the threads of this measurement
/// would not get to run there. Takes up to 1.2 s where there is such a task.
///
/// # Errors
/// `Kind::Isolate(Taken)`, with the task.
pub fn refuse_occupied(spec: &Spec) -> Result<(), Error> {
    let cpus = pinned(spec);
    // Processes that may run on several CPUs run on those that are free.
    let is_bound = !matches!(spec, Spec::Slices(spec) if !spec.pinned && cpus.len() > 1);
    if is_bound {
        isolate::refuse_occupied(&cpus, spec.fifo())?;
    }
    Ok(())
}

/// The CPUs that a measurement's threads are pinned to.
fn pinned(spec: &Spec) -> CpuSet {
    match spec {
        Spec::Ticks(_) | Spec::Run(_) | Spec::Wakers(_) => CpuSet::empty(),
        spec => spec.cpus(),
    }
}

/// How long a measurement takes at most, where that is known beforehand.
fn longest(spec: &Spec) -> Option<Nanos> {
    match spec {
        Spec::Noise(spec) => Some(spec.duration_ns),
        Spec::Check(spec) => Some(spec.idle_ns + spec.noise_ns),
        Spec::Latency(spec) => Some(spec.duration_ns + spec.interval_ns),
        Spec::Jitter(spec) => jitter::longest(spec),
        Spec::NohzTest(spec) => Some(nohz::longest(spec)),
        // Until its processes have started, its thread need not run longer.
        Spec::Slices(spec) => Some(spec.duration_ns),
        Spec::Ticks(_)
        | Spec::Calls(_)
        | Spec::NohzStress(_)
        | Spec::Run(_)
        | Spec::Wakers(_) => None,
    }
}

/// Measures what is asked, and reports to `observer` what happens. The order to stop in `control`
/// ends it early; what was measured so far is then recorded, with a doubt.
///
/// # Errors
/// `Kind::Spec` for a question that makes no sense, `Kind::Isolate` for a CPU or a
/// privilege that cannot be had, `Kind::NoProgram` and `Kind::NotExecutable` for a program that
/// cannot be run, `Kind::System` where the kernel does not play along.
pub fn run(
    spec: &Spec,
    facts: &Facts,
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<Recording, Error> {
    let mut doubts = Vec::new();
    let watch = &mut Watch { control, observer };
    // Settings may have been changed for the measurement since the facts were read.
    let changed = || facts.clone().with_sched_of(&Root::live());
    let changed = control.has_neighbours.then(changed);
    let facts = changed.as_ref().unwrap_or(facts);
    let body = match control.has_neighbours {
        true => beside_others(spec, facts, watch, &mut doubts)?,
        false => measured(spec, facts, watch, &mut doubts)?,
    };
    doubts.extend(left_out(spec, facts));
    if control.stop.given() {
        doubts.push(ended_early(spec));
    }
    Ok(Recording::now(facts.clone(), body, doubts))
}

/// Measures on a machine where others run, too: the calling thread stays off the CPUs, where there
/// is another one, and threads that a real-time task keeps from ending are moved.
fn beside_others(
    spec: &Spec,
    facts: &Facts,
    watch: &mut Watch<'_>,
    doubts: &mut Vec<Doubt>,
) -> Result<Body, Error> {
    let whole = isolate::allowed()?;
    let _elsewhere = AvoidedCpus::new(pinned(spec));
    let length = longest(spec).map(|length| length + OVERTIME);
    let watchdog = Watchdog::start(whole, length, watch.control.stop.clone())?;
    let body = measured(spec, facts, watch, doubts)?;
    let starved = watchdog.end();
    if !starved.is_empty() {
        // They were moved by this tool, and the other doubt says that something else did.
        doubts.retain(|doubt| doubt.code != Code::Migrated);
        doubts.extend(starved);
    }
    Ok(body)
}

fn measured(
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
        Spec::Wakers(_) => {
            let text =
                "wake-ups are counted by the kernel (blame::WakerWatch), not by a loop";
            return Err(Error::new(Kind::Spec, text));
        }
    })
}

fn ended_early(spec: &Spec) -> Doubt {
    let text = match spec {
        Spec::Noise(NoiseSpec { stop_above_ns: Some(_), .. }) => {
            "ended at a gap above the limit, or by somebody: the numbers cover what was \
             measured until then"
        }
        _ => "ended early: the numbers cover what was measured until then",
    };
    Doubt::new(Code::Interrupted, text)
}

/// A doubt about online CPUs that were neither named nor measured.
fn left_out(spec: &Spec, facts: &Facts) -> Option<Doubt> {
    let is_of_all = matches!(spec, Spec::Noise(_) | Spec::Check(_) | Spec::Latency(_));
    let used = is_of_all.then(|| spec.cpus())?;
    let (online, allowed) = (facts.cpus.online.get()?, facts.cpus.allowed.get()?);
    let without = online.without(allowed);
    if without.is_empty() || used != online.and(allowed) {
        return None;
    }
    let apart = without.without(&facts.set_apart()).is_empty();
    let why = if apart {
        "set apart for other work, and so not measured; named with -c, it would be"
    } else {
        "outside this process's affinity or cpuset, and so not measured"
    };
    Some(Doubt::new(Code::CpusLeftOut, format!("{}: {why}", doubts::named(&without))))
}

/// Refuses a `SCHED_FIFO` priority that there is none of, and one on so many CPUs that nothing is
/// left for the rest of the machine.
fn sensible_priority(
    fifo: Option<u8>,
    cpus: &CpuSet,
    facts: &Facts,
) -> Result<(), Error> {
    match fifo {
        None => Ok(()),
        Some(1..=99) => isolate::require_ordinary_share(cpus, facts).map_err(Error::from),
        Some(_) => Err(Error::new(Kind::Spec, "SCHED_FIFO priorities are 1 to 99")),
    }
}

/// Refuses a length of time that cannot be meant.
fn sensible(what: &str, length: Nanos) -> Result<(), Error> {
    if (SHORTEST..=LONGEST).contains(&length) {
        return Ok(());
    }
    let text = format!("{what} must be between 1 ms and 30 days");
    Err(Error::new(Kind::Spec, text))
}
