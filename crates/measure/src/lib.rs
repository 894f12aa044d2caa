//! The loops, and [`run`]: the one entry that every live recording comes from, but for those
//! that the kernel counts for itself (`blame::wakers`).
//!
//! ```text
//! Spec + Facts ──▶ run ──▶ Recording
//! ```
//!
//! The same code runs on the host, as the only process of a guest, and behind the C
//! ABI ([`caller_gaps`], which makes no recording). It measures and does not explain: what took a gap is not known here.

mod calibrate;
mod caller;
mod calls;
mod check;
mod clock;
pub mod counter;
mod doubts;
mod error;
mod jitter;
pub mod jitter_loop;
mod library;
pub mod mark;
mod meanwhile;
mod memory;
mod nohz;
mod noise;
mod partners;
mod repeats;
mod requests;
pub mod spin;
mod spinner;
mod stop;
mod thread;
mod ticks;
mod wait;
mod watch;
pub mod work;

pub use calibrate::Ordinary;
pub use caller::{CallerGaps, caller_gaps};
pub use error::{Error, Kind};
pub use stop::Stop;
pub use wait::Wait;
pub use watch::{Silent, Watch};

use facts::Facts;
use recording::{
    Body, CallsSpec, CheckSpec, Code, Doubt, JitterSpec, NohzSpec, NoiseSpec, Recording,
    TicksSpec,
};
use units::Nanos;

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
}

/// Measures what is asked. `watch` is told how it goes and may end it early; what was
/// measured so far is then recorded, with a doubt.
///
/// # Errors
/// `Kind::Spec` for a question that makes no sense, `Kind::Isolate` for a CPU or a
/// privilege that cannot be had, `Kind::System` where the kernel does not play along.
pub fn run(
    spec: &Spec,
    facts: &Facts,
    watch: &mut dyn Watch,
) -> Result<Recording, Error> {
    let mut doubts = Vec::new();
    let body = match spec {
        Spec::Noise(spec) => {
            let series = noise::run(spec, facts, watch, &mut doubts)?;
            Body::Noise { spec: spec.clone(), series }
        }
        Spec::Ticks(spec) => {
            let series = ticks::run(spec, watch, &mut doubts)?;
            Body::Ticks { spec: spec.clone(), series }
        }
        Spec::Check(spec) => {
            let series = check::run(spec, facts, watch, &mut doubts)?;
            Body::Check { spec: spec.clone(), series }
        }
        Spec::Calls(spec) => {
            let series = calls::run(spec, facts, watch, &mut doubts)?;
            Body::Calls { spec: spec.clone(), series }
        }
        Spec::NohzTest(spec) => {
            let series = nohz::run(spec, facts, watch, &mut doubts)?;
            Body::NohzTest { spec: spec.clone(), series }
        }
        Spec::NohzStress(spec) => {
            let series = nohz::run(spec, facts, watch, &mut doubts)?;
            Body::NohzStress { spec: spec.clone(), series }
        }
        Spec::Jitter(spec) => {
            let series = jitter::run(spec, facts, watch, &mut doubts)?;
            Body::Jitter { spec: spec.clone(), series }
        }
    };
    doubts.extend(left_out(spec, facts));
    if watch.stop().given() {
        let text = match spec {
            Spec::Noise(NoiseSpec { stop_above_ns: Some(_), .. }) => {
                "ended at a gap above the limit, or by somebody: the numbers cover what was \
                 measured until then"
            }
            _ => "ended early: the numbers cover what was measured until then",
        };
        doubts.push(Doubt::new(Code::Interrupted, text));
    }
    Ok(Recording::now(facts.clone(), body, doubts))
}

/// Tells of online CPUs that nobody named and that were not spun on.
fn left_out(spec: &Spec, facts: &Facts) -> Option<Doubt> {
    let spun = match spec {
        Spec::Noise(spec) => &spec.cpus,
        Spec::Check(spec) => &spec.cpus,
        _ => return None,
    };
    let (online, allowed) = (facts.cpus.online.get()?, facts.cpus.allowed.get()?);
    let without = online.without(allowed);
    if without.is_empty() || *spun != online.and(allowed) {
        return None;
    }
    let apart = without.without(&facts.set_apart()).is_empty();
    let why = if apart {
        "set apart for other work, and so not spun on; named with -c, it would be"
    } else {
        "outside this process's affinity or cpuset, and so not spun on"
    };
    Some(Doubt::new(Code::CpusLeftOut, format!("{}: {why}", doubts::named(&without))))
}

/// Refuses a length of time that cannot be meant.
fn sensible(what: &str, length: Nanos) -> Result<(), Error> {
    if (SHORTEST..=LONGEST).contains(&length) {
        return Ok(());
    }
    let text = format!("{what} must be between 1 ms and 30 days");
    Err(Error::new(Kind::Spec, text))
}
