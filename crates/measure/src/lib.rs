//! The loops, and [`run`]: the one entry that every live recording comes from, but for those
//! that the kernel counts for itself (`blame::wakers`).
//!
//! ```text
//! Spec + Facts ──▶ run ──▶ Recording
//! ```
//!
//! The same code runs on the host, as the only process of a guest, and behind the C
//! ABI ([`caller_gaps`], which makes no recording). It measures and does not explain: what took a gap is not known here.

mod alarms;
mod calibrate;
mod caller;
mod calls;
mod check;
mod clock;
pub mod counter;
mod crowd;
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
mod partners;
mod phase;
mod relay;
mod repeats;
mod requests;
mod run;
mod sleeper;
mod slices;
pub mod spin;
mod spinner;
mod stop;
mod task_reading;
mod thread;
mod ticks;
mod wait;
mod wakeups;
mod watch;
pub mod work;

pub use calibrate::Ordinary;
pub use caller::{CallerGaps, caller_gaps};
pub use error::{Error, Kind};
pub use relay::Relay;
pub use stop::Stop;
pub use wait::Wait;
pub use watch::{Silent, Watch};

use facts::Facts;
use recording::{
    Body, CallsSpec, CheckSpec, Code, Doubt, JitterSpec, LatencySpec, NohzSpec,
    NoiseSpec, Recording, RunSpec, SlicesSpec, TicksSpec,
};
use units::{CpuSet, Nanos};

/// The shortest measurement that says anything.
const SHORTEST: Nanos = Nanos::from_millis(1);
/// The longest: 30 days. What is longer is a typing error.
const LONGEST: Nanos = Nanos::from_secs(30 * 24 * 3600);

/// What to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spec {
    /// How much a spinning CPU loses.
    Noise(NoiseSpec),
    /// Timer interrupts per second and CPU.
    Ticks(TicksSpec),
    /// One look at the machine: ticks at rest, then noise on all CPUs at once.
    Check(CheckSpec),
    /// What single requests to the kernel cost.
    Calls(CallsSpec),
    /// Whether the tick of a CPU stops.
    NohzTest(NohzSpec),
    /// How often it does, and how long that takes.
    NohzStress(NohzSpec),
    /// How much a workload's run time varies.
    Jitter(JitterSpec),
    /// How late a timer wakes a thread.
    Latency(LatencySpec),
    /// What a program suffers on a CPU of its own.
    Run(RunSpec),
    /// How long CPU-bound tasks run before something preempts them.
    Slices(SlicesSpec),
}

/// Refuses what [`run`] would refuse of what keeps a CPU free, before anything is changed for
/// it.
///
/// # Errors
/// As [`run`], as far as that shows beforehand.
pub fn refuse(spec: &Spec, facts: &Facts) -> Result<(), Error> {
    match spec {
        Spec::Jitter(spec) => jitter::refuse(spec, facts),
        Spec::NohzTest(spec) | Spec::NohzStress(spec) => nohz::refuse(spec, facts),
        Spec::Slices(spec) => slices::refuse(spec, facts),
        _ => Ok(()),
    }
}

/// Measures what is asked. `watch` is told how it goes and may end it early; what was
/// measured so far is then recorded, with a doubt.
///
/// # Errors
/// `Kind::Spec` for a question that makes no sense, `Kind::Isolate` for a CPU or a
/// privilege that cannot be had, `Kind::NoProgram` and `Kind::NotExecutable` for a program that
/// cannot be run, `Kind::System` where the kernel does not play along.
pub fn run(
    spec: &Spec,
    facts: &Facts,
    watch: &mut dyn Watch,
) -> Result<Recording, Error> {
    let mut doubts = Vec::new();
    let body = measured(spec, facts, watch, &mut doubts)?;
    doubts.extend(left_out(spec, facts));
    if watch.stop().given() {
        doubts.push(ended_early(spec));
    }
    Ok(Recording::now(facts.clone(), body, doubts))
}

fn measured(
    spec: &Spec,
    facts: &Facts,
    watch: &mut dyn Watch,
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

/// Tells of online CPUs that nobody named and that were not measured.
fn left_out(spec: &Spec, facts: &Facts) -> Option<Doubt> {
    let used = match spec {
        Spec::Noise(spec) => &spec.cpus,
        Spec::Check(spec) => &spec.cpus,
        Spec::Latency(spec) => &spec.cpus,
        _ => return None,
    };
    let (online, allowed) = (facts.cpus.online.get()?, facts.cpus.allowed.get()?);
    let without = online.without(allowed);
    if without.is_empty() || *used != online.and(allowed) {
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
        Some(1..=99) => isolate::leave_room(cpus, facts).map_err(Error::from),
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
