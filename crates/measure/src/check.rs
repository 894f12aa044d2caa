//! An overview of the machine: ticks while noisefloor is idle, then noise on all CPUs at once. If
//! it is ended in the first half, there is no noise rather than that of a moment.

use facts::Facts;
use recording::{CheckSeries, CheckSpec, Doubt, NoiseSpec, TicksSpec, Trigger};

use crate::control::observer::Watch;
use crate::{Error, noise, ticks};

/// Counts ticks of the idle machine, then measures noise.
pub(crate) fn run(
    spec: &CheckSpec,
    facts: &Facts,
    watch: &mut Watch<'_>,
    doubts: &mut Vec<Doubt>,
) -> Result<CheckSeries, Error> {
    refuse(spec, facts)?;
    let rest = ticks::run(&idle_spec(spec), watch, doubts)?;
    if watch.control.stop.is_requested() {
        return Ok(CheckSeries { rest, noise: noise::none()? });
    }
    let noise = noise::run(&noise_spec(spec), facts, watch, doubts)?;
    Ok(CheckSeries { rest, noise })
}

/// Refuses what either half refuses.
pub(crate) fn refuse(spec: &CheckSpec, facts: &Facts) -> Result<(), Error> {
    ticks::refuse(&idle_spec(spec))?;
    noise::refuse(&noise_spec(spec), facts)
}

fn idle_spec(spec: &CheckSpec) -> TicksSpec {
    let (cpus, interval_ns) = (spec.rest_cpus.clone(), spec.idle_ns);
    TicksSpec { cpus, interval_ns, count: Some(1) }
}

fn noise_spec(spec: &CheckSpec) -> NoiseSpec {
    NoiseSpec {
        cpus: spec.cpus.clone(),
        duration_ns: spec.noise_ns,
        threshold_ns: None,
        fifo: None,
        trigger: Trigger::default(),
        phases: None,
        at_scale: None,
    }
}
