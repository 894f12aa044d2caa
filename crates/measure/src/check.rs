//! One look at the machine: ticks while this tool rests, then noise on all CPUs at once.
//! Who ends it early in the first half gets no noise, rather than that of a moment.

use facts::Facts;
use recording::{CheckSeries, CheckSpec, Doubt, NoiseSpec, TicksSpec};

use crate::watch::Watch;
use crate::{Error, noise, ticks};

/// Counts ticks at rest, then spins.
pub(crate) fn run(
    spec: &CheckSpec,
    facts: &Facts,
    watch: &mut dyn Watch,
    doubts: &mut Vec<Doubt>,
) -> Result<CheckSeries, Error> {
    let (cpus, interval_ns) = (spec.rest_cpus.clone(), spec.idle_ns);
    let rest = TicksSpec { cpus, interval_ns, count: Some(1) };
    let rest = ticks::run(&rest, watch, doubts)?;
    if watch.stop().given() {
        return Ok(CheckSeries { rest, noise: noise::none()? });
    }
    let spin = NoiseSpec {
        cpus: spec.cpus.clone(),
        duration_ns: spec.noise_ns,
        threshold_ns: None,
        fifo: None,
        stop_above_ns: None,
        phases: None,
    };
    let noise = noise::run(&spin, facts, watch, doubts)?;
    Ok(CheckSeries { rest, noise })
}
