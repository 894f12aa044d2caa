//! Reasons not to trust the numbers of a simulation.

use recording::{Code, Doubt, Pattern, ScaleSeries, ScaleSpec};
use units::Nanos;

use super::recorded::Recorded;

/// All of them.
pub(super) fn of(
    recorded: &Recorded,
    spec: &ScaleSpec,
    series: &ScaleSeries,
) -> Vec<Doubt> {
    let mut doubts = recorded.doubts.clone();
    let sentences = [
        extrapolated(recorded, spec),
        wrapped(recorded, series),
        shared(recorded, spec),
        flat(spec),
    ];
    let codes = [Code::TooShort, Code::TooShort, Code::Imprecise, Code::Imprecise];
    let found = codes.into_iter().zip(sentences);
    doubts.extend(found.filter_map(|(code, text)| Some(Doubt::new(code, text?))));
    doubts
}

/// More CPUs are simulated than were measured for the time of a step.
fn extrapolated(recorded: &Recorded, spec: &ScaleSpec) -> Option<String> {
    let time = recorded.time();
    let known = time.get() / spec.compute_ns.get().max(1);
    let is_known = spec.ranks.iter().all(|ranks| *ranks <= known);
    let seconds = time.as_secs_f64();
    (!is_known).then(|| {
        format!(
            "the recordings have {seconds:.3} s of CPU time, a step of more than {known} ranks needs more: \
             rarer gaps were not seen, so that the slowdowns of more ranks are lower bounds"
        )
    })
}

/// Recordings are repeated.
fn wrapped(recorded: &Recorded, series: &ScaleSeries) -> Option<String> {
    let runs =
        series.counts.iter().flat_map(|count| &count.runs).flat_map(|runs| &runs.run_ns);
    let (longest, shortest) = (runs.copied().max()?, recorded.shortest());
    (longest > shortest).then(|| {
        let [longest, shortest] = [longest, shortest].map(Nanos::as_secs_f64);
        format!(
            "a run takes {longest:.3} s, and the shortest recording is one of {shortest:.3} s: its noise is \
             repeated, from a random moment of it on"
        )
    })
}

/// Ranks share a CPU.
fn shared(recorded: &Recorded, spec: &ScaleSpec) -> Option<String> {
    let cpus = recorded.cpus();
    (spec.ranks_per_node > cpus as u64).then(|| {
        let ranks = spec.ranks_per_node;
        format!("{ranks} ranks on a node have the noise of {cpus} CPUs: some have that of the same CPU")
    })
}

/// Tori that are lines.
fn flat(spec: &ScaleSpec) -> Option<String> {
    let is_prime =
        |ranks: u64| (2..).take_while(|by| by * by <= ranks).all(|by| ranks % by != 0);
    let is_torus = match spec.pattern {
        Pattern::Halo2d | Pattern::Halo3d => true,
        Pattern::Bsp | Pattern::Allreduce | Pattern::Pipeline => false,
    };
    let line = spec.ranks.iter().find(|ranks| **ranks > 3 && is_prime(**ranks))?;
    is_torus.then(|| {
        format!("{line} ranks are a torus of 1 by {line}, since that number is prime")
    })
}
