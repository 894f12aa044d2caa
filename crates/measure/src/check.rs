//! One look at the machine: ticks while this tool rests, then noise on all CPUs at once.
//! Who ends it early in the first half gets no noise, rather than that of a moment.

use facts::Facts;
use recording::{CheckSeries, CheckSpec, Doubt, NoiseSpec, TicksSpec};

use crate::observer::Watch;
use crate::{Error, noise, ticks};

/// Counts ticks at rest, then spins.
pub(crate) fn run(
    spec: &CheckSpec,
    facts: &Facts,
    watch: &mut Watch<'_>,
    doubts: &mut Vec<Doubt>,
) -> Result<CheckSeries, Error> {
    refuse(spec, facts)?;
    let rest = ticks::run(&at_rest(spec), watch, doubts)?;
    if watch.control.stop.given() {
        return Ok(CheckSeries { rest, noise: noise::none()? });
    }
    let noise = noise::run(&at_work(spec), facts, watch, doubts)?;
    Ok(CheckSeries { rest, noise })
}

/// Refuses what either half of it would.
pub(crate) fn refuse(spec: &CheckSpec, facts: &Facts) -> Result<(), Error> {
    ticks::refuse(&at_rest(spec))?;
    noise::refuse(&at_work(spec), facts)
}

fn at_rest(spec: &CheckSpec) -> TicksSpec {
    let (cpus, interval_ns) = (spec.rest_cpus.clone(), spec.idle_ns);
    TicksSpec { cpus, interval_ns, count: Some(1) }
}

fn at_work(spec: &CheckSpec) -> NoiseSpec {
    NoiseSpec {
        cpus: spec.cpus.clone(),
        duration_ns: spec.noise_ns,
        threshold_ns: None,
        fifo: None,
        stop_above_ns: None,
        phases: None,
    }
}
